// A full mesh of n dimensions (UB-Mesh has four): chips that differ in one coordinate are joined. A packet
// sets its coordinates right in the order of the dimensions, one hop each.
#include "ub_fabric/topology/grid.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {

Layout full_mesh(const hw::Topology& topology) {
  const Grid grid(topology);
  Layout layout = grid.layout(topology);
  // port[chip][dimension][coordinate] of the other chip.
  std::vector<std::vector<std::vector<unsigned>>> port(grid.chips());
  for (auto& of_chip : port) {
    for (unsigned d = 0; d < grid.dimensions(); ++d) of_chip.emplace_back(grid.length(d));
  }
  for (unsigned d = 0; d < grid.dimensions(); ++d) {
    for (unsigned chip = 0; chip < grid.chips(); ++chip) {
      const unsigned here = grid.coordinate(chip, d);
      for (unsigned there = here + 1; there < grid.length(d); ++there) {
        layout.connect(chip, grid.moved(chip, d, there), static_cast<std::uint8_t>(d));
        port[chip][d][there] = layout.cables.back().a.port;
        port[grid.moved(chip, d, there)][d][here] = layout.cables.back().b.port;
      }
    }
  }
  layout.detours = true;
  layout.ways = [grid, port = std::move(port)](unsigned chip, unsigned destination,
                                               std::vector<unsigned>& ports) {
    for (unsigned d = 0; d < grid.dimensions(); ++d) {
      const unsigned there = grid.coordinate(destination, d);
      if (there != grid.coordinate(chip, d)) return ports.push_back(port[chip][d][there]);
    }
  };
  return layout;
}

}  // namespace cm384::ub
