// Point to point: latency, start-up and bandwidth of remote reads, writes and atomic adds (table 1 of the
// paper).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/engine/peers.h"
#include "base/text/units.h"
#include "system/machine/ownership.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

// One row.
struct P2pPoint {
  std::string operation = "read";       // read, write, atomic
  std::string target = "npu";           // npu, cpu, sibling-die
  std::string distance = "intra-node";  // intra-node, inter-node, inter-supernode
  Bytes bytes{512};                     // of one MTE instruction, for latency
  int cores = 48;                       // AIVs that move `volume` each, for bandwidth
  Bytes volume{16 << 20};
  bool rdma = false;  // by the RDMA plane instead of the Unified Bus; copies and transfers only
};

struct P2pReading {
  double latency_us = 0;      // issue of one instruction to its completion flag
  double startup_us = 0;      // issue to the first byte at the Unified Bus port
  double bandwidth_GBps = 0;  // 0: not asked for (volume 0)
};

// Where the initiator, die 0, finds its counterpart.
struct Counterpart {
  std::vector<int> dies{0};
  std::vector<int> sockets;
};
// Throws InputError where the machine has none.
Counterpart find_counterpart(const P2pPoint& point, const hw::Topology& topology);

// Observations on a die; of several processes the one that simulates it has them.
template <class Seen>
Seen of_die(const supernode::Ownership& owners, int die, const Seen& seen) {
  return sim::peers().list_from(owners.of_die(die), std::span(&seen, 1)).front();
}

// Runs the point on a machine of its own, counters added to `counts`.
P2pReading measure_p2p(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts);

// Cores that share a size: each moves the same number of bytes, so all of them may move more than was asked
// for.
struct P2pShares {
  int cores = 0;
  std::uint64_t bytes = 0;  // of each
  std::uint64_t moved() const { return static_cast<std::uint64_t>(cores) * bytes; }
};
P2pShares shares_of(const P2pPoint& point);

// Time that point.cores AIVs take to move point.bytes together, from the first issue to the last completion;
// as many of them as get 512 B each.
double measure_shared_p2p(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts);

}  // namespace cm384::studies
