// A mesh of n dimensions: chips in a grid, neighbours joined. A packet sets its coordinates right in the
// order of the dimensions, so that no circle of waiting packets closes.
#include "ub_fabric/topology/grid.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {

Layout mesh(const hw::Topology& topology) {
  const Grid grid(topology);
  Layout layout = grid.layout(topology);
  struct Ports {
    unsigned up = 0, down = 0;
  };
  std::vector<std::vector<Ports>> port(grid.chips(), std::vector<Ports>(grid.dimensions()));
  for (unsigned d = 0; d < grid.dimensions(); ++d) {
    for (unsigned chip = 0; chip < grid.chips(); ++chip) {
      const unsigned here = grid.coordinate(chip, d);
      if (here + 1 == grid.length(d)) continue;
      const unsigned next = grid.moved(chip, d, here + 1);
      layout.connect(chip, next, static_cast<std::uint8_t>(d));
      port[chip][d].up = layout.cables.back().a.port;
      port[next][d].down = layout.cables.back().b.port;
    }
  }
  layout.detours = true;
  layout.ways = [grid, port = std::move(port)](unsigned chip, unsigned destination,
                                               std::vector<unsigned>& ports) {
    for (unsigned d = 0; d < grid.dimensions(); ++d) {
      const unsigned there = grid.coordinate(destination, d), here = grid.coordinate(chip, d);
      if (there != here) return ports.push_back(there > here ? port[chip][d].up : port[chip][d].down);
    }
  };
  return layout;
}

}  // namespace cm384::ub
