#include "ub_fabric/topology/layout.h"

namespace cm384::ub {

unsigned Layout::add_chip(std::string kind, unsigned number) {
  chips.push_back({std::move(kind), number, 0});
  return static_cast<unsigned>(chips.size() - 1);
}

void Layout::attach(unsigned chip) {
  endpoints.push_back({chip, chips[chip].ports++});
}

void Layout::connect(unsigned a, unsigned b, std::uint8_t group) {
  const Seat at_a{a, chips[a].ports++};
  cables.push_back({at_a, {b, chips[b].ports++}, group});
}

void attach_nodes(Layout& layout, const hw::Topology& topology,
                  const std::function<unsigned(int node)>& chip_of) {
  layout.dies = static_cast<unsigned>(topology.dies());
  for (int die = 0; die < topology.dies(); ++die) layout.attach(chip_of(die / topology.dies_per_node));
  for (int socket = 0; socket < topology.sockets(); ++socket)
    layout.attach(chip_of(socket / topology.sockets_per_node));
}

}  // namespace cm384::ub
