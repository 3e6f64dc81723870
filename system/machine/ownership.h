// Where several processes simulate the machine (base/engine/peers.h): which of them owns which part. A
// process has one machine at a time. A process alone owns everything.
#pragma once

#include <cstddef>
#include <vector>

#include "base/engine/peers.h"
#include "hw/machine.h"

namespace cm384::supernode {

// Of the machine that is made: packages, by their first dies, go to processes in blocks. The sub-planes of a
// supernode go in turn to those that own dies of it; where there is only one supernode, to all.
void set_owners(const std::vector<int>& packages, const hw::Topology& topology);

unsigned owner_of_die(int die);
// All of them, with the last packages.
inline unsigned owner_of_sockets() {
  return sim::peers().count() - 1;
}
unsigned owner_of_plane(std::size_t plane);
// The switches of the RDMA plane.
inline unsigned owner_of_rdma() {
  return 0;
}
inline bool owned(unsigned owner) {
  return owner == sim::peers().self();
}

}  // namespace cm384::supernode
