// Which of several processes (base/engine/peers.h) simulates which part of one machine.
#pragma once

#include <cstddef>
#include <vector>

#include "hw/machine.h"

namespace cm384::supernode {

// Processes are numbered as sim::Peers does. The owner of a part runs its events and has its bytes.
class Ownership {
 public:
  // Of a process alone, which owns everything.
  Ownership() = default;
  // `packages`, by their first dies, go to processes in blocks. The sub-planes of a supernode go in turn to
  // the owners of its dies; where there is only one supernode, to all processes. The last process has all CPU
  // sockets, the first one the switches of the RDMA plane.
  Ownership(const std::vector<int>& packages, const hw::Topology& topology);

  unsigned of_die(int die) const { return dies_.empty() ? 0 : dies_.at(static_cast<std::size_t>(die)); }
  unsigned of_plane(std::size_t plane) const { return planes_.empty() ? 0 : planes_.at(plane); }
  unsigned of_sockets() const { return processes_ - 1; }
  unsigned of_rdma() const { return 0; }

  // Whether the owner is this process.
  bool is_here(unsigned owner) const { return owner == self_; }
  bool has_die(int die) const { return is_here(of_die(die)); }

 private:
  unsigned self_ = 0, processes_ = 1;
  std::vector<unsigned> dies_, planes_;  // owners; empty: all are of this process
};

}  // namespace cm384::supernode
