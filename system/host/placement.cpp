#include "system/host/placement.h"

#include <fmt/format.h>

#include <numeric>
#include <random>

#include "base/text/error.h"
#include "base/text/number.h"

namespace cm384::host {
namespace {

std::vector<int> strided(int ranks, int dies, int dies_per_node) {
  const int nodes = dies / dies_per_node;
  std::vector<int> placed;
  for (int r = 0; r < ranks; ++r) placed.push_back((r % nodes) * dies_per_node + r / nodes);
  return placed;
}

std::vector<int> shuffled(int ranks, int dies, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(dies));
  std::iota(order.begin(), order.end(), 0);
  // The engine's sequence is fixed by the standard; its distributions are not, so the draw is done here.
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  order.resize(static_cast<std::size_t>(ranks));
  return order;
}

std::vector<int> listed(std::string_view text, int ranks, int dies) {
  std::vector<int> placed;
  std::vector<bool> taken(static_cast<std::size_t>(dies), false);
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const auto number = hw::number_of<int>(item);
    if (!number)
      throw InputError(
          fmt::format("--placement: `{}` is neither a policy nor a die number; allowed: linear, strided, "
                      "random, or a list of dies",
                      item));
    const int die = *number;
    if (die < 0 || die >= dies)
      throw InputError(fmt::format("--placement: die {} is out of range; allowed: 0 to {}", die, dies - 1));
    if (taken[static_cast<std::size_t>(die)])
      throw InputError(fmt::format("--placement: die {} is named twice", die));
    taken[static_cast<std::size_t>(die)] = true;
    placed.push_back(die);
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  if (static_cast<int>(placed.size()) < ranks)
    throw InputError(fmt::format("--placement: lists {} dies for {} ranks", placed.size(), ranks));
  placed.resize(static_cast<std::size_t>(ranks));
  return placed;
}

}  // namespace

std::vector<int> place_ranks(std::string_view policy, int ranks, int dies, int dies_per_node,
                             std::uint64_t seed) {
  if (ranks < 1 || ranks > dies)
    throw InputError(
        fmt::format("--ranks: {} ranks, but the machine has {} dies; allowed: 1 to {}", ranks, dies, dies));
  if (policy == "linear") {
    std::vector<int> placed(static_cast<std::size_t>(ranks));
    std::iota(placed.begin(), placed.end(), 0);
    return placed;
  }
  if (policy == "strided") return strided(ranks, dies, dies_per_node);
  if (policy == "random") return shuffled(ranks, dies, seed);
  return listed(policy, ranks, dies);
}

std::vector<int> place_ranks(std::string_view policy, int ranks, const hw::Topology& topology,
                             std::uint64_t seed) {
  const int supernodes = topology.supernodes;
  const bool list = !policy.empty() && policy.front() >= '0' && policy.front() <= '9';
  if (supernodes == 1 || list)
    return place_ranks(policy, ranks, topology.dies(), topology.dies_per_node, seed);
  if (ranks % supernodes != 0)
    throw InputError(
        fmt::format("--ranks: {} ranks do not spread evenly over {} supernodes; allowed: a "
                    "multiple of {}, or --placement with a list of dies",
                    ranks, supernodes, supernodes));
  const int dies = topology.one_supernode().dies();
  std::vector<int> placed;
  for (int s = 0; s < supernodes; ++s) {
    for (const int die : place_ranks(policy, ranks / supernodes, dies, topology.dies_per_node, seed))
      placed.push_back(s * dies + die);
  }
  return placed;
}

}  // namespace cm384::host
