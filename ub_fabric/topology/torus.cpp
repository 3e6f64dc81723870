// A torus of n dimensions. A packet goes the shorter way round, either way where both are as long, in the
// order of the dimensions. A ring has two lane classes: a packet takes the second from the cable on that
// closes the ring (a dateline), so that no circle of waiting packets closes (Dally and Seitz).
#include "ub_fabric/topology/grid.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {
namespace {

// Groups of cables: 2d those of dimension d, 2d + 1 those of it that close a ring.
std::uint8_t group(unsigned dimension, bool closes) {
  return static_cast<std::uint8_t>(2 * dimension + (closes ? 1 : 0));
}

void set_turns(Layout& layout, unsigned dimensions) {
  layout.classes = 2;
  for (unsigned from = 0; from <= Layout::kMostGroups; ++from) {
    for (unsigned to = 0; to < 2 * dimensions; ++to) {
      layout.turns[from][to].keep = from < Layout::kMostGroups && from / 2 == to / 2;
      layout.turns[from][to].add = to % 2;
    }
  }
}

}  // namespace

Layout torus(const hw::Topology& topology) {
  const Grid grid(topology);
  Layout layout = grid.layout(topology);
  struct Ports {
    unsigned up = 0, down = 0;
  };
  std::vector<std::vector<Ports>> port(grid.chips(), std::vector<Ports>(grid.dimensions()));
  for (unsigned d = 0; d < grid.dimensions(); ++d) {
    const unsigned length = grid.length(d);
    for (unsigned chip = 0; chip < grid.chips(); ++chip) {
      const unsigned here = grid.coordinate(chip, d);
      const bool closes = here + 1 == length;
      if (length == 1 || (length == 2 && closes)) continue;  // two chips have one cable
      const unsigned next = grid.moved(chip, d, closes ? 0 : here + 1);
      layout.connect(chip, next, group(d, closes));
      port[chip][d].up = layout.cables.back().a.port;
      port[next][d].down = layout.cables.back().b.port;
    }
  }
  set_turns(layout, grid.dimensions());
  layout.detours = true;
  layout.ways = [grid, port = std::move(port)](unsigned chip, unsigned destination,
                                               std::vector<unsigned>& ports) {
    for (unsigned d = 0; d < grid.dimensions(); ++d) {
      const unsigned length = grid.length(d), here = grid.coordinate(chip, d);
      const unsigned up = (grid.coordinate(destination, d) + length - here) % length;
      if (up == 0) continue;
      if (length == 2) return ports.push_back(here == 0 ? port[chip][d].up : port[chip][d].down);
      if (2 * up <= length) ports.push_back(port[chip][d].up);
      if (2 * up >= length) ports.push_back(port[chip][d].down);
      return;
    }
  };
  return layout;
}

}  // namespace cm384::ub
