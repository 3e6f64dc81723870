// Groups of chips (Kim, Dally, Scott and Abts): a chip per node, all chips of a group joined, and
// global_links of every chip to other groups, spread evenly over them. The shortest way has at most one hop
// in the own group, one between groups, one in the other group; the last takes a lane class of its own.
#include <fmt/format.h>

#include "base/text/error.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub {
namespace {

enum Group : std::uint8_t { kLocal, kGlobal };

}  // namespace

Layout dragonfly(const hw::Topology& topology) {
  const auto nodes = static_cast<unsigned>(topology.nodes), groups = static_cast<unsigned>(topology.groups);
  if (nodes % groups != 0)
    throw InputError(fmt::format("topology.groups: {} groups do not share {} nodes evenly", groups, nodes));
  const unsigned of_group = nodes / groups, globals = of_group * static_cast<unsigned>(topology.global_links);
  if (groups > 1 && (globals % (groups - 1) != 0))
    throw InputError(fmt::format(
        "topology.global_links: {} links of a group do not reach {} other groups equally often; allowed: "
        "nodes / groups x global_links a multiple of groups - 1",
        globals, groups - 1));
  Layout layout;
  for (unsigned chip = 0; chip < nodes; ++chip) layout.add_chip("chip", chip);
  attach_nodes(layout, topology, [](int node) { return static_cast<unsigned>(node); });
  std::vector<std::vector<unsigned>> local(nodes, std::vector<unsigned>(of_group));
  for (unsigned chip = 0; chip < nodes; ++chip) {
    for (unsigned other = chip + 1; other % of_group != 0; ++other) {
      layout.connect(chip, other, kLocal);
      local[chip][other % of_group] = layout.cables.back().a.port;
      local[other][chip % of_group] = layout.cables.back().b.port;
    }
  }
  // Link n of a group goes to the group n % (groups - 1) further on, counted from 1; its chips take turns.
  std::vector<std::vector<std::vector<unsigned>>> global(nodes, std::vector<std::vector<unsigned>>(groups));
  const unsigned pairs = groups > 1 ? globals / (groups - 1) : 0;
  for (unsigned a = 0; a < groups; ++a) {
    for (unsigned b = a + 1; b < groups; ++b) {
      for (unsigned n = 0; n < pairs; ++n) {
        const auto chip_in = [&](unsigned from, unsigned to) {
          const unsigned offset = (to + groups - from) % groups - 1;
          return from * of_group + (n * (groups - 1) + offset) / static_cast<unsigned>(topology.global_links);
        };
        const unsigned at_a = chip_in(a, b), at_b = chip_in(b, a);
        layout.connect(at_a, at_b, kGlobal);
        global[at_a][b].push_back(layout.cables.back().a.port);
        global[at_b][a].push_back(layout.cables.back().b.port);
      }
    }
  }
  layout.classes = 2;
  layout.turns[kGlobal][kLocal].add = 1;
  layout.detours = true;
  layout.ways = [of_group, local = std::move(local), global = std::move(global)](
                    unsigned chip, unsigned destination, std::vector<unsigned>& ports) {
    const unsigned home = chip / of_group, away = destination / of_group;
    if (home == away) return ports.push_back(local[chip][destination % of_group]);
    if (!global[chip][away].empty()) {
      ports = global[chip][away];
      return;
    }
    for (unsigned other = home * of_group; other < (home + 1) * of_group; ++other) {
      if (!global[other][away].empty()) ports.push_back(local[chip][other % of_group]);
    }
  };
  return layout;
}

}  // namespace cm384::ub
