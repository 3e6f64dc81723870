// Where several processes simulate the machine (sim/peers.h): which of them owns which part. A process has
// one machine at a time. A process alone owns everything.
#pragma once

#include <cstddef>
#include <vector>

#include "hw/machine.h"
#include "sim/peers.h"

namespace cm384::supernode {

// Of the machine that is made: packages, by their first dies, go to processes in blocks.
void set_owners(const std::vector<int>& packages, const hw::Topology& topology);

unsigned owner_of_die(int die);
// All of them, with the last packages.
inline unsigned owner_of_sockets() {
  return sim::peers().count() - 1;
}
// In turn.
inline unsigned owner_of_plane(std::size_t plane) {
  return static_cast<unsigned>(plane % sim::peers().count());
}
inline bool owned(unsigned owner) {
  return owner == sim::peers().self();
}

}  // namespace cm384::supernode
