#include "workloads/operators/collectives/copy_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "base/text/error.h"

namespace cm384::operators {

using reference::CollectiveKind;

namespace {

std::vector<CopyRound> direct_gather(int ranks) {
  CopyRound round;
  for (int to = 0; to < ranks; ++to) {
    for (int step = 1; step < ranks; ++step) {
      const int from = (to + step) % ranks;
      round.push_back({from, to, from});
    }
  }
  return {round};
}

std::vector<CopyRound> ring_gather(int ranks) {
  std::vector<CopyRound> rounds;
  for (int step = 0; step + 1 < ranks; ++step) {
    CopyRound& round = rounds.emplace_back();
    for (int from = 0; from < ranks; ++from)
      round.push_back({from, (from + 1) % ranks, (from - step + ranks) % ranks});
  }
  return rounds;
}

// What is there doubles.
std::vector<CopyRound> doubling_gather(int ranks) {
  if (!std::has_single_bit(static_cast<unsigned>(ranks)))
    throw InputError(fmt::format("--algorithm halving: {} ranks; allowed: a power of two", ranks));
  std::vector<CopyRound> rounds;
  for (int distance = 1; distance < ranks; distance *= 2) {
    CopyRound& round = rounds.emplace_back();
    for (int to = 0; to < ranks; ++to) {
      const int from = to ^ distance, first = from / distance * distance;
      for (int part = first; part < first + distance; ++part) round.push_back({from, to, part});
    }
  }
  return rounds;
}

// From the outermost level to the package: a rank takes of those that differ from it at this level alone what
// they have got by then.
std::vector<CopyRound> hierarchical_gather(int ranks, const std::vector<int>& levels) {
  std::vector<CopyRound> rounds;
  int unit = ranks;  // ranks that a group of this level has
  for (std::size_t level = levels.size(); level-- > 0;) {
    const int size = levels[level], stride = unit / size;
    CopyRound& round = rounds.emplace_back();
    for (int to = 0; to < ranks; ++to) {
      const int place = to / stride % size;
      for (int step = 1; step < size; ++step) {
        const int from = to + ((place + step) % size - place) * stride;
        for (int part = from % unit; part < ranks; part += unit) round.push_back({from, to, part});
      }
    }
    unit = stride;
  }
  return rounds;
}

std::vector<CopyRound> gather(CopyAlgorithm algorithm, int ranks, const hw::Topology& topology) {
  switch (algorithm) {
    case CopyAlgorithm::direct:
      return direct_gather(ranks);
    case CopyAlgorithm::ring:
      return ring_gather(ranks);
    case CopyAlgorithm::halving:
      return doubling_gather(ranks);
    case CopyAlgorithm::hierarchical:
      break;
  }
  const std::vector<int> levels = levels_of(ranks, topology);
  if (levels.empty())
    throw InputError(fmt::format(
        "--algorithm hierarchical: {} ranks; allowed: what fills packages of {} dies and nodes of {}", ranks,
        topology.dies_per_package, topology.dies_per_node));
  return hierarchical_gather(ranks, levels);
}

// What goes from a rank to another one comes back, the last round first.
std::vector<CopyRound> backwards(std::vector<CopyRound> rounds) {
  std::ranges::reverse(rounds);
  for (CopyRound& round : rounds) {
    for (PartMove& move : round) std::swap(move.from, move.to);
  }
  return rounds;
}

}  // namespace

std::string_view name_of(CopyAlgorithm algorithm) {
  constexpr std::array<std::string_view, 4> kNames{"direct", "ring", "halving", "hierarchical"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::vector<int> levels_of(int ranks, const hw::Topology& topology) {
  std::vector<int> levels;
  int left = ranks;
  for (const int size : {topology.dies_per_package, topology.dies_per_node / topology.dies_per_package}) {
    const int here = std::min(size, left);
    if (left % here != 0) return {};
    if (here > 1) levels.push_back(here);
    left /= here;
  }
  if (left > 1) levels.push_back(left);
  return levels;
}

CopyRounds rounds_of(CollectiveKind kind, CopyAlgorithm algorithm, int ranks, const hw::Topology& topology) {
  CopyRounds made;
  if (kind == CollectiveKind::all_to_all) {
    if (algorithm != CopyAlgorithm::direct)
      throw InputError(
          fmt::format("--algorithm {} takes no all-to-all; allowed: direct", name_of(algorithm)));
    made.rounds = backwards(direct_gather(ranks));  // part n is for rank n
    return made;
  }
  std::vector<CopyRound> rounds = gather(algorithm, ranks, topology);
  if (kind == CollectiveKind::all_gather) return {std::move(rounds), 0};
  made.rounds = backwards(rounds);
  made.gathers_from = made.rounds.size();
  if (kind == CollectiveKind::all_reduce) made.rounds.insert(made.rounds.end(), rounds.begin(), rounds.end());
  return made;
}

}  // namespace cm384::operators
