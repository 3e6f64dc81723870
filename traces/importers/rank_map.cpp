#include "traces/importers/rank_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "traces/random.h"

namespace cm384::traces {

void RankTraffic::add(int one, int other, double bytes) {
  const auto n = static_cast<std::size_t>(ranks_);
  const auto a = static_cast<std::size_t>(one), b = static_cast<std::size_t>(other);
  bytes_[a * n + b] += bytes;
  if (a != b) bytes_[b * n + a] += bytes;
}

std::vector<int> linear_dies(int ranks, const DieRoom& room) {
  std::vector<int> dies;
  for (int rank = 0; rank < ranks; ++rank) dies.push_back(room.first + rank * room.stride);
  if (ranks > 0 && dies.back() >= room.dies)
    throw InputError(fmt::format(
        "--map: {} ranks from die {} on, every {}: the last one would be die {}; the machine has 0 to {}",
        ranks, room.first, room.stride, dies.back(), room.dies - 1));
  return dies;
}

std::vector<int> random_dies(int ranks, const DieRoom& room, std::uint64_t seed) {
  std::vector<int> all(static_cast<std::size_t>(std::max(0, room.dies - room.first)));
  std::iota(all.begin(), all.end(), room.first);
  if (static_cast<std::size_t>(ranks) > all.size())
    throw InputError(
        fmt::format("--map: {} ranks; the machine has {} dies from {} on", ranks, all.size(), room.first));
  Random random(seed, 11);
  for (std::size_t n = 0; n < static_cast<std::size_t>(ranks); ++n)
    std::swap(all[n], all[n + random.below(all.size() - n)]);
  all.resize(static_cast<std::size_t>(ranks));
  return all;
}

namespace {

// Ranks in groups of given sizes.
class Partition {
 public:
  Partition(const RankTraffic& traffic, std::vector<int> ranks, const std::vector<int>& sizes)
      : traffic_(traffic), ranks_(std::move(ranks)), groups_(sizes.size()) {
    grow(sizes);
    exchange();
  }
  const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  // Each group starts with the rank left that has most traffic, and takes the one with most to it.
  void grow(const std::vector<int>& sizes) {
    std::vector<int> left = ranks_;
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      std::vector<double> to_group(left.size());
      const auto total = [&](int rank) {
        double sum = 0;
        for (const int other : left) sum += traffic_.between(rank, other);
        return sum;
      };
      for (std::size_t n = 0; n < left.size(); ++n) to_group[n] = 1e-30 * total(left[n]);
      while (static_cast<int>(groups_[g].size()) < sizes[g]) {
        const auto best = std::ranges::max_element(to_group) - to_group.begin();
        const int rank = left[static_cast<std::size_t>(best)];
        groups_[g].push_back(rank);
        left.erase(left.begin() + best);
        to_group.erase(to_group.begin() + best);
        for (std::size_t n = 0; n < left.size(); ++n) to_group[n] += traffic_.between(rank, left[n]);
      }
    }
  }

  double to_group(int rank, const std::vector<int>& group) const {
    double sum = 0;
    for (const int other : group) sum += other == rank ? 0 : traffic_.between(rank, other);
    return sum;
  }

  void exchange() {
    constexpr int kRounds = 32;
    for (int round = 0; round < kRounds; ++round) {
      bool better = false;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        for (std::size_t h = g + 1; h < groups_.size(); ++h)
          better = exchange_between(groups_[g], groups_[h]) || better;
      }
      if (!better) return;
    }
  }

  bool exchange_between(std::vector<int>& one, std::vector<int>& other) const {
    bool better = false;
    for (int& a : one) {
      const double a_gain = to_group(a, other) - to_group(a, one);
      int* best = nullptr;
      double most = 1e-9 * traffic_.between(a, a) + 1e-6;
      for (int& b : other) {
        const double gain = a_gain + to_group(b, one) - to_group(b, other) - 2 * traffic_.between(a, b);
        if (gain > most) {
          most = gain;
          best = &b;
        }
      }
      if (best == nullptr) continue;
      std::swap(a, *best);
      better = true;
    }
    return better;
  }

  const RankTraffic& traffic_;
  std::vector<int> ranks_;
  std::vector<std::vector<int>> groups_;
};

// Dies of each `size` neighbours, in their order.
std::vector<std::vector<int>> neighbours(const std::vector<int>& dies, int size) {
  std::map<int, std::vector<int>> by_group;
  for (const int die : dies) by_group[die / size].push_back(die);
  std::vector<std::vector<int>> all;
  for (auto& [group, its] : by_group) all.push_back(std::move(its));
  return all;
}

void place(const RankTraffic& traffic, const std::vector<int>& ranks, const std::vector<int>& dies,
           const std::vector<int>& sizes, std::size_t level, std::vector<int>& die_of) {
  if (level == sizes.size()) {
    for (std::size_t n = 0; n < ranks.size(); ++n) die_of[static_cast<std::size_t>(ranks[n])] = dies[n];
    return;
  }
  const auto rooms = neighbours(dies, sizes[level]);
  std::vector<int> counts;
  for (const auto& room : rooms) counts.push_back(static_cast<int>(room.size()));
  const Partition partition(traffic, ranks, counts);
  for (std::size_t g = 0; g < rooms.size(); ++g)
    place(traffic, partition.groups()[g], rooms[g], sizes, level + 1, die_of);
}

}  // namespace

std::vector<int> min_cut_dies(const RankTraffic& traffic, const DieRoom& room) {
  const std::vector<int> dies = linear_dies(traffic.ranks(), room);
  std::vector<int> ranks(dies.size()), die_of(dies.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  place(traffic, ranks, dies, {room.per_node, room.per_package}, 0, die_of);
  return die_of;
}

std::vector<int> dies_from_file(const std::string& path, int ranks, const DieRoom& room) {
  LineReader lines(path);
  std::string line;
  if (!lines.next(line) || (line != "rank,die" && line != "rank,die\r"))
    lines.fail("header: allowed: rank,die");
  const std::vector<std::string> columns{"rank", "die"};
  std::vector<int> dies(static_cast<std::size_t>(ranks), -1);
  while (lines.next(line)) {
    if (line.empty() || line == "\r") continue;
    auto parts = split_fields(line);
    if (parts.size() != 2) lines.fail(fmt::format("line: {} fields; allowed: 2", parts.size()));
    const FieldReader fields(lines, std::move(parts), columns);
    const auto rank = static_cast<std::size_t>(fields.integer(0, 0, ranks - 1));
    const auto die = static_cast<int>(fields.integer(1, 0, room.dies - 1));
    if (dies[rank] >= 0) fields.fail(0, "each rank once");
    if (std::ranges::find(dies, die) != dies.end()) fields.fail(1, "each die once");
    dies[rank] = die;
  }
  for (std::size_t rank = 0; rank < dies.size(); ++rank) {
    if (dies[rank] < 0)
      throw InputError(fmt::format("{}: rank {} is missing; allowed: all of 0 to {}", path, rank, ranks - 1));
  }
  return dies;
}

double cut_between_nodes(const RankTraffic& traffic, const std::vector<int>& dies, const DieRoom& room) {
  double cut = 0;
  for (std::size_t a = 0; a < dies.size(); ++a) {
    for (std::size_t b = a + 1; b < dies.size(); ++b) {
      if (dies[a] / room.per_node != dies[b] / room.per_node)
        cut += traffic.between(static_cast<int>(a), static_cast<int>(b));
    }
  }
  return cut;
}

}  // namespace cm384::traces
