#include "system/machine/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::supernode {
namespace {

// Of one sub-plane.
struct FabricCounts {
  std::map<std::string, std::int64_t> chips;  // by kind, switches of dies apart
  std::int64_t die_switches = 0;              // that are part of a die
  std::int64_t ports = 0;                     // of switch chips, with something at their other end
  std::int64_t die_links = 0, socket_links = 0, trunks = 0;
  std::int64_t in_node = 0, between_nodes = 0;
  std::int64_t outside = 0;        // switch chips of no rack of nodes
  std::int64_t between_racks = 0;  // links of all sub-planes of a supernode
  std::int64_t diameter = 0;       // links between the two dies farthest apart
};

constexpr int kNoNode = -1;
constexpr std::int64_t kLanesOfLink = 4;  // of a port, UB specification, chapter 4: may drop to two or one

// By chip: the group of nodes, each of `size`, that all its dies and sockets belong to; kNoNode where they
// are of several, or none.
std::vector<int> nodes_of_chips(const ub::Layout& layout, const hw::Topology& topology, int size = 1) {
  std::vector<std::optional<int>> nodes(layout.chips.size());
  for (std::size_t endpoint = 0; endpoint < layout.endpoints.size(); ++endpoint) {
    const int node = topology.node_of(static_cast<int>(endpoint)) / size;
    std::optional<int>& of_chip = nodes[layout.endpoints[endpoint].chip];
    of_chip = of_chip.value_or(node) == node ? node : kNoNode;
  }
  std::vector<int> result;
  for (const std::optional<int>& node : nodes) result.push_back(node.value_or(kNoNode));
  return result;
}

// By chip: it is part of a die. So is a point of a mesh at which a single die stands: that die's own ports.
std::vector<bool> chips_of_dies(const ub::Layout& layout, const hw::Topology& topology) {
  const bool grid = topology.kind == "full-mesh" || topology.kind == "mesh" || topology.kind == "torus";
  std::vector<int> units(layout.chips.size());
  for (const ub::Seat& seat : layout.endpoints) ++units[seat.chip];
  std::vector<bool> of_die;
  for (std::size_t chip = 0; chip < units.size(); ++chip)
    of_die.push_back(layout.chips[chip].of_die || (grid && units[chip] == 1));
  return of_die;
}

// By chip: it has no endpoint and one cable at most, as L2 chips of a single node: it joins nothing, and
// nobody buys it.
std::vector<bool> needless_chips(const ub::Layout& layout) {
  std::vector<int> joined(layout.chips.size());
  for (const ub::Cable& cable : layout.cables) {
    ++joined[cable.a.chip];
    ++joined[cable.b.chip];
  }
  for (const ub::Seat& seat : layout.endpoints) joined[seat.chip] = 2;
  std::vector<bool> needless;
  for (const int links : joined) needless.push_back(links < 2);
  return needless;
}

std::int64_t racks_of(std::int64_t units, std::int64_t units_of_rack, std::int64_t supernodes) {
  // Supernodes share a rack where whole ones of them fit in.
  if (units == 0) return 0;
  if (units >= units_of_rack) return (units + units_of_rack - 1) / units_of_rack * supernodes;
  const std::int64_t sharing = units_of_rack / units;
  return (supernodes + sharing - 1) / sharing;
}

// Cables that leave a rack, of all sub-planes of a supernode. Switch chips without a rack of nodes, which
// `outside` counts, fill racks of their own, sub-plane by sub-plane.
std::int64_t between_racks(const ub::Layout& layout, const hw::Topology& topology,
                           const std::vector<bool>& needless, std::int64_t& outside) {
  std::vector<int> racks = nodes_of_chips(layout, topology, topology.nodes_per_rack);
  std::vector<std::int64_t> number(racks.size());  // among those outside, of a sub-plane
  outside = 0;
  for (std::size_t chip = 0; chip < racks.size(); ++chip)
    if (racks[chip] == kNoNode && !needless[chip]) number[chip] = outside++;
  std::int64_t found = 0;
  for (int plane = 0; plane < topology.sub_planes; ++plane) {
    const auto rack_of = [&](unsigned chip) -> std::int64_t {
      if (racks[chip] != kNoNode) return racks[chip];
      return -1 - (plane * outside + number[chip]) / topology.switches_per_rack;
    };
    for (const ub::Cable& cable : layout.cables)
      if (!needless[cable.a.chip] && !needless[cable.b.chip] &&
          rack_of(cable.a.chip) != rack_of(cable.b.chip))
        ++found;
    for (std::size_t endpoint = 0; endpoint < layout.endpoints.size(); ++endpoint)
      if (rack_of(layout.endpoints[endpoint].chip) !=
          topology.node_of(static_cast<int>(endpoint)) / topology.nodes_per_rack)
        ++found;
  }
  return found;
}

// By chip: cables on the shortest way from one of them; negative: none leads there.
std::vector<int> distances(const std::vector<std::vector<unsigned>>& joined, unsigned from) {
  std::vector<int> far(joined.size(), -1);
  std::vector<unsigned> next{from};
  far[from] = 0;
  for (std::size_t n = 0; n < next.size(); ++n) {
    for (const unsigned chip : joined[next[n]]) {
      if (far[chip] >= 0) continue;
      far[chip] = far[next[n]] + 1;
      next.push_back(chip);
    }
  }
  return far;
}

std::int64_t diameter_of(const ub::Layout& layout, const std::vector<bool>& of_die) {
  std::vector<std::vector<unsigned>> joined(layout.chips.size());
  for (const ub::Cable& cable : layout.cables) {
    joined[cable.a.chip].push_back(cable.b.chip);
    joined[cable.b.chip].push_back(cable.a.chip);
  }
  std::vector<int> dies(layout.chips.size());
  for (unsigned die = 0; die < layout.dies; ++die) ++dies[layout.endpoints[die].chip];
  const auto own = [&](unsigned chip) { return of_die[chip] ? 0 : 1; };  // a die's link is inside
  std::int64_t most = 0;
  for (unsigned from = 0; from < dies.size(); ++from) {
    if (dies[from] == 0) continue;
    const std::vector<int> far = distances(joined, from);
    for (unsigned to = from; to < dies.size(); ++to) {
      if (dies[to] == 0 || far[to] < 0 || (to == from && dies[to] == 1)) continue;
      most = std::max<std::int64_t>(most, far[to] + own(from) + own(to));
    }
  }
  return most;
}

FabricCounts count_fabric(const hw::Topology& topology) {
  const ub::Layout layout = ub::layout_of(topology);
  const std::vector<int> node_of = nodes_of_chips(layout, topology);
  FabricCounts counts;
  const std::vector<bool> needless = needless_chips(layout);
  const std::vector<bool> of_die = chips_of_dies(layout, topology);
  counts.diameter = diameter_of(layout, of_die);
  counts.between_racks = between_racks(layout, topology, needless, counts.outside);
  for (std::size_t n = 0; n < layout.chips.size(); ++n) {
    const ub::ChipName& chip = layout.chips[n];
    if (needless[n]) continue;
    if (of_die[n]) {
      ++counts.die_switches;
    } else {
      ++counts.chips[chip.kind];
    }
  }
  const auto count_port = [&](unsigned chip) { counts.ports += of_die[chip] ? 0 : 1; };
  for (std::size_t endpoint = 0; endpoint < layout.endpoints.size(); ++endpoint) {
    const unsigned chip = layout.endpoints[endpoint].chip;
    if (of_die[chip]) continue;  // its link is inside
    ++(endpoint < layout.dies ? counts.die_links : counts.socket_links);
    ++(node_of[chip] == topology.node_of(static_cast<int>(endpoint)) ? counts.in_node : counts.between_nodes);
    count_port(chip);
  }
  for (const ub::Cable& cable : layout.cables) {
    if (needless[cable.a.chip] || needless[cable.b.chip]) continue;
    ++counts.trunks;
    const int node = node_of[cable.a.chip];
    ++(node != kNoNode && node == node_of[cable.b.chip] ? counts.in_node : counts.between_nodes);
    count_port(cable.a.chip);
    count_port(cable.b.chip);
  }
  return counts;
}

}  // namespace

std::vector<Counted> inventory(const hw::Machine& machine) {
  const hw::Topology& t = machine.topology;
  const FabricCounts fabric = count_fabric(t.one_supernode());
  const std::int64_t dies = t.dies(), planes = t.planes();
  const bool cores = machine.accelerator.has_cores();
  std::int64_t chips = 0;
  for (const auto& [kind, count] : fabric.chips) chips += count;
  const std::int64_t compute_racks = racks_of(t.nodes, t.nodes_per_rack, t.supernodes);
  const std::int64_t switch_racks =
      racks_of(t.sub_planes * fabric.outside, t.switches_per_rack, t.supernodes);
  const std::int64_t between_racks = t.supernodes * fabric.between_racks;
  std::vector<Counted> all{
      {"supernodes", t.supernodes, "supernodes"},
      {"racks", compute_racks + switch_racks, "racks; those of RDMA and VPC switches are not counted"},
      {"compute_racks", compute_racks, "of them: with nodes"},
      {"switch_racks", switch_racks, "of them: with switch chips outside nodes"},
      {"nodes", std::int64_t{t.supernodes} * t.nodes, "compute nodes"},
      {"packages", dies / t.dies_per_package, "packages of dies (NPUs)"},
      {"dies", dies, "accelerator dies"},
      {"sockets", t.sockets(), "CPU sockets"},
      {"cube_cores", cores ? dies * machine.die.aic : 0, "AIC (cube) cores"},
      {"vector_cores", cores ? dies * machine.die.aiv : 0, "AIV (vector) cores"},
      {"compute_units", cores ? 0 : dies * machine.processor.units,
       "compute units of dies without cores, such as streaming multiprocessors"},
      {"hbm_stacks", dies * (cores ? machine.memory.hbm.stacks : machine.transfer_engine.memory_stacks),
       "HBM stacks"},
      {"hbm_bytes",
       dies * static_cast<std::int64_t>(
                  (cores ? machine.memory.hbm.capacity : machine.transfer_engine.memory).count),
       "bytes of HBM that can be addressed"},
      {"sub_planes", planes, "sub-planes: of the Unified Bus, or of what joins dies in its place"},
      {"switch_chips", planes * chips, "switch chips of sub-planes that are no part of a die"},
  };
  for (const auto& [kind, count] : fabric.chips)
    all.push_back({"chips_" + kind, planes * count, fmt::format("of them: {}", kind)});
  const std::vector<Counted> links{
      {"die_switches", planes * fabric.die_switches, "switches that are part of a die"},
      {"switch_ports", planes * fabric.ports, "ports of switch chips with something at their other end"},
      {"links", planes * (fabric.in_node + fabric.between_nodes),
       "links of sub-planes, both directions as one"},
      {"die_links", planes * fabric.die_links, "of them: from dies to switch chips"},
      {"socket_links", planes * fabric.socket_links, "of them: from CPU sockets to switch chips"},
      {"trunks", planes * fabric.trunks, "of them: between switches"},
      {"links_in_node", planes * fabric.in_node, "links whose ends belong to one node: boards, below 1 m"},
      {"links_between_nodes", planes * fabric.between_nodes,
       "links that leave a node, for a switch outside or another node"},
      {"links_in_rack", planes * fabric.between_nodes - between_racks,
       "of them: within a rack: copper of 1 to 3 m (assumed)"},
      {"links_between_racks", between_racks, "of them: from rack to rack: above 3 m (assumed)"},
      {"optical_links", between_racks, "links with optics: those from rack to rack (assumed)"},
      {"diameter", fabric.diameter,
       "links on the shortest way between the two dies of a supernode farthest apart"},
      {"rdma_ports", dies, "ports of dies to the RDMA plane"},
      {"vpc_ports", t.sockets_per_node > 0 ? std::int64_t{t.supernodes} * t.nodes : 0,
       "ports of nodes with CPU sockets to the VPC plane"},
  };
  all.insert(all.end(), links.begin(), links.end());
  if (!cores) return all;  // links of others have lanes of their own kind
  const std::int64_t lanes = kLanesOfLink * planes * (fabric.in_node + fabric.between_nodes);
  all.push_back({"lanes", lanes, "lanes of these links, four each, both directions as one"});
  all.push_back({"serdes", 2 * lanes, "serialisers with deserialisers: one at each end of a lane"});
  return all;
}

std::int64_t counted(const hw::Machine& machine, std::string_view name) {
  if (name.starts_with(kCountPrefix)) name.remove_prefix(kCountPrefix.size());
  const std::vector<Counted> all = inventory(machine);
  const auto found = std::ranges::find(all, name, &Counted::name);
  if (found != all.end()) return found->count;
  std::vector<std::string> names;
  for (const Counted& one : all) names.push_back(one.name);
  throw InputError(fmt::format("'{}{}': nothing of that name is counted in {}{}", kCountPrefix, name,
                               machine.name, hw::suggestion(name, names)));
}

}  // namespace cm384::supernode
