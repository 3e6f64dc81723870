// Point to point by what moves data on its own: the SDMA engine of the initiating die, submitted by its host
// or a core, and any accelerator's queue of transfers.
#pragma once

#include <vector>

#include "system/host/runtime.h"
#include "workloads/fabric/p2p.h"

namespace cm384::studies {

// The buffers of a point at both sides; that of the other one as the point's plane reaches it.
struct Ends {
  std::uint64_t source = 0, destination = 0;
};
Ends allocate_ends(host::Runtime& runtime, const P2pPoint& point, const Counterpart& counterpart);

struct Stage {
  const char* name;
  double us;
};

struct SdmaReading {
  double latency_us = 0;      // from the host's call to the host's seeing the completion
  double startup_us = 0;      // from the call to the first byte at the Unified Bus port
  double bandwidth_GBps = 0;  // of the copy, from its first request to its last acknowledgement
  std::vector<Stage> stages;  // of the latency, in order; their sum is the latency
};

// Copies point.bytes in one entry of a stream, after one that warms up translations.
SdmaReading measure_sdma(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts);

// The copy submitted by a vector core: entries of at most 1 MiB, a doorbell, and a flag that the core polls.
// The latency is from before the first entry is built to the flag's being seen. `prefetch`: into the own L2
// instead of a copy (point.operation, target and distance play no part).
SdmaReading measure_core_sdma(const StudyContext& context, const P2pPoint& point, bool prefetch,
                              SimulatorCounts& counts);

// The copy by the accelerator's own queue of transfers, without a host or a descriptor: no stages, and the
// latency is from the transfer's coming to the queue to its end.
SdmaReading measure_transfer(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts);

}  // namespace cm384::studies
