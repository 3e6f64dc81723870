#include "traces/importers/node_placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace cm384::traces {
namespace {

using Mapping = std::vector<std::pair<std::int64_t, int>>;

int rounded_up(std::size_t count, int multiple) {
  return (static_cast<int>(count) + multiple - 1) / multiple * multiple;
}

NodePlacement by_leaf(const std::vector<std::int64_t>& nodes,
                      const std::map<std::int64_t, std::int64_t>& leaves, int dies, int dies_per_node) {
  std::map<std::int64_t, std::vector<std::int64_t>> of_leaf;
  for (const std::int64_t node : nodes) {
    const auto leaf = leaves.find(node);
    of_leaf[leaf == leaves.end() ? -1 : leaf->second].push_back(node);
  }
  int room = 0;
  for (const auto& [leaf, members] : of_leaf) room += rounded_up(members.size(), dies_per_node);
  const bool apart = room <= dies;
  NodePlacement placed;
  placed.rule = fmt::format(
      "by leaf switch: {} leaves, {}", of_leaf.size(),
      apart ? "each on nodes of its own" : "one behind the other, since the machine has fewer nodes");
  int next = 0;
  for (const auto& [leaf, members] : of_leaf) {
    for (const std::int64_t node : members) placed.dies.emplace_back(node, next++);
    if (apart) next = rounded_up(static_cast<std::size_t>(next), dies_per_node);
  }
  std::ranges::sort(placed.dies);
  return placed;
}

}  // namespace

NodePlacement place_nodes(std::vector<std::int64_t> nodes, const std::map<std::int64_t, std::int64_t>& leaves,
                          int dies, int dies_per_node) {
  std::ranges::sort(nodes);
  if (nodes.empty()) return {};
  if (std::ranges::any_of(nodes, [&](std::int64_t node) { return leaves.contains(node); }))
    return by_leaf(nodes, leaves, dies, dies_per_node);
  NodePlacement placed;
  const std::int64_t first = nodes.front() - nodes.front() % dies_per_node;
  const bool fits = nodes.back() - first < dies;
  placed.rule = first == 0 && fits ? "by number"
                : fits             ? fmt::format("by number, node {} on die 0", first)
                                   : "in the order of their numbers";
  int next = 0;
  for (const std::int64_t node : nodes)
    placed.dies.emplace_back(node, fits ? static_cast<int>(node - first) : next++);
  return placed;
}

std::string text_of(const Mapping& mapping) {
  std::string text;
  for (std::size_t first = 0; first < mapping.size();) {
    std::size_t end = first + 1;
    while (end < mapping.size() && mapping[end].first == mapping[end - 1].first + 1 &&
           mapping[end].second == mapping[end - 1].second + 1)
      ++end;
    if (!text.empty()) text += ", ";
    if (end == first + 1) {
      text += fmt::format("{} on die {}", mapping[first].first, mapping[first].second);
    } else {
      text += fmt::format("{}-{} on dies {}-{}", mapping[first].first, mapping[end - 1].first,
                          mapping[first].second, mapping[end - 1].second);
    }
    first = end;
  }
  return text;
}

}  // namespace cm384::traces
