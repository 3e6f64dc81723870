// One switch chip under a synthetic load: senders and receivers at its ports, the chip itself in a sub-plane
// of one node, as the machine has it. The chip is the transaction-level one or RTL; all else is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/engine/event_queue.h"
#include "hw/machine.h"
#include "ub_fabric/rtl_switch.h"
#include "ub_fabric/sub_plane.h"
#include "workloads/fabric/switch_pattern.h"
#include "workloads/frame/confidence.h"

namespace cm384::studies {

struct SwitchCase {
  bool rtl = false;
  Pattern pattern = Pattern::uniform;
  unsigned ports = 16;
  unsigned lanes = 2;
  int bytes = 512;  // written by a packet
  // Flits a port sends, as a share of what its link carries; 0: as many as go.
  double offered = 0;
  std::uint64_t packets = 20'000;  // counted, of all ports; a fifth more go before them to warm up
  bool block_lane_0 = false;       // its receivers give no credits back
  std::uint64_t seed = 1;
  std::string waves;  // FST file of the RTL's signals; empty: none
};

struct SwitchReading {
  Summary latency_ns;  // from a packet's creation to its last flit leaving the chip, the cable not counted
  Summary chip_latency_ns;  // of that, from its head at the chip
  double throughput = 0;    // flits delivered, as a share of what all links carry
  double accepted = 0;      // the same of the links of ports that send
  double jain = 0;          // fairness between the ports that send
  std::vector<double> lane_mean_ns;
  std::uint64_t sent = 0, delivered = 0;
  std::uint64_t wrong = 0;  // packets twice, out of order in their lane and flow, or at the wrong port
  std::uint64_t events = 0;
  std::uint64_t rtl_cycles = 0;
  Time simulated;
};

// Throws InputError where the RTL cannot be that chip, and where all packets were created before the first
// that counts arrived.
SwitchReading run_switch(const hw::Machine& machine, const SwitchCase& setting);

}  // namespace cm384::studies
