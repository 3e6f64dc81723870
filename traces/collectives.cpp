#include "traces/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "base/text/error.h"

namespace cm384::traces {
namespace {

using Algorithm = CollectiveAlgorithm;
using Rounds = std::vector<CollectiveRound>;

constexpr std::array<std::string_view, kCollectiveKinds> kCollectiveNames{
    "all-reduce", "all-to-all", "all-gather", "reduce-scatter", "broadcast",
    "reduce",     "gather",     "scatter",    "barrier"};
constexpr std::array<std::string_view, 5> kAlgorithms{"direct", "ring", "halving", "bruck", "hierarchical"};

bool supports(CollectiveKind kind, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::halving:
      return kind != CollectiveKind::all_to_all;
    case Algorithm::bruck:
      return kind == CollectiveKind::all_to_all || kind == CollectiveKind::all_gather;
    default:
      return true;
  }
}

// Each of `members` sends every other one `bytes`, not all to the same one at the same time.
void pairs(CollectiveRound& round, std::span<const int> members, std::int64_t bytes) {
  const std::size_t n = members.size();
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t step = 1; step < n; ++step)
      round.push_back({members[from], members[(from + step) % n], bytes});
  }
}

class Schedule {
 public:
  Schedule(CollectiveKind kind, std::int64_t bytes, std::span<const int> group)
      : kind_(kind),
        ranks_(static_cast<int>(group.size())),
        part_(std::max<std::int64_t>(1, bytes / ranks_)),
        group_(group) {}

  Rounds direct() const {
    std::vector<int> all;
    for (int rank = 0; rank < ranks_; ++rank) all.push_back(rank);
    CollectiveRound round;
    pairs(round, all, part_);
    return reduces_and_gathers() ? Rounds{round, round} : Rounds{round};
  }

  Rounds ring() const {
    Rounds rounds;
    for (int n = 0; n < (reduces_and_gathers() ? 2 : 1) * (ranks_ - 1); ++n) {
      CollectiveRound& round = rounds.emplace_back();
      for (int rank = 0; rank < ranks_; ++rank) round.push_back({rank, (rank + 1) % ranks_, part_});
    }
    return rounds;
  }

  Rounds halving() const {
    if (!std::has_single_bit(static_cast<unsigned>(ranks_)))
      throw InputError(
          fmt::format("--collective {}=halving: {} ranks; allowed: a power of two", name_of(kind_), ranks_));
    Rounds halves, doubles;
    for (int distance = ranks_ / 2; distance > 0; distance /= 2) {
      CollectiveRound round;
      for (int rank = 0; rank < ranks_; ++rank) round.push_back({rank, rank ^ distance, part_ * distance});
      halves.push_back(round);
      doubles.insert(doubles.begin(), round);
    }
    if (kind_ == CollectiveKind::reduce_scatter) return halves;
    if (kind_ == CollectiveKind::all_gather) return doubles;
    halves.insert(halves.end(), doubles.begin(), doubles.end());
    return halves;
  }

  // All-to-all: in round k blocks whose distance has bit k go on by 2^k. All-gather: what is there doubles.
  Rounds bruck() const {
    Rounds rounds;
    for (int distance = 1; distance < ranks_; distance *= 2) {
      int blocks = 0;
      if (kind_ == CollectiveKind::all_gather) {
        blocks = std::min(distance, ranks_ - distance);
      } else {
        for (int n = 0; n < ranks_; ++n) blocks += (n & distance) != 0 ? 1 : 0;
      }
      CollectiveRound& round = rounds.emplace_back();
      for (int rank = 0; rank < ranks_; ++rank)
        round.push_back({rank, (rank + ranks_ - distance) % ranks_, part_ * blocks});
    }
    return rounds;
  }

  // Nodes and places in them: a rank talks to those of its node, and to those of its place in other nodes.
  Rounds hierarchical() const {
    std::map<int, std::vector<int>> nodes;
    for (int rank = 0; rank < ranks_; ++rank) nodes[group_[static_cast<std::size_t>(rank)]].push_back(rank);
    const std::size_t places = nodes.begin()->second.size();
    for (const auto& [node, members] : nodes) {
      if (members.size() != places)
        throw InputError(fmt::format(
            "--collective {}=hierarchical: {} ranks on one node and {} on another; allowed: as many on each",
            name_of(kind_), places, members.size()));
    }
    const auto count = static_cast<std::int64_t>(nodes.size());
    const auto within = [&](std::int64_t bytes) {
      CollectiveRound round;
      for (const auto& [node, members] : nodes) pairs(round, members, bytes);
      return round;
    };
    const auto between = [&](std::int64_t bytes) {
      CollectiveRound round;
      for (std::size_t place = 0; place < places; ++place) {
        std::vector<int> peers;
        for (const auto& [node, members] : nodes) peers.push_back(members[place]);
        pairs(round, peers, bytes);
      }
      return round;
    };
    const auto local = static_cast<std::int64_t>(places);
    switch (kind_) {
      case CollectiveKind::all_reduce:
        return {within(part_ * count), between(part_), between(part_), within(part_ * count)};
      case CollectiveKind::all_to_all:
        return {within(part_ * count), between(part_ * local)};
      case CollectiveKind::all_gather:
        return {between(part_), within(part_ * count)};
      default:
        break;
    }
    return {within(part_ * count), between(part_)};
  }

 private:
  bool reduces_and_gathers() const { return kind_ == CollectiveKind::all_reduce; }

  CollectiveKind kind_;
  int ranks_;
  std::int64_t part_;
  std::span<const int> group_;
};

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  return kCollectiveNames.at(static_cast<std::size_t>(kind));
}
std::string_view name_of(CollectiveAlgorithm algorithm) {
  return kAlgorithms.at(static_cast<std::size_t>(algorithm));
}

void parse_collective(std::string_view text, CollectiveChoice& choice) {
  const std::size_t equals = text.find('=');
  const auto known = std::span(kCollectiveNames).first(kChosenKinds);
  const auto kind = std::ranges::find(known, text.substr(0, equals));
  if (equals == std::string_view::npos || kind == known.end())
    throw InputError(
        fmt::format("--collective: '{}'; allowed: {}, each with =ALGORITHM", text, fmt::join(known, ", ")));
  const auto of = static_cast<CollectiveKind>(kind - known.begin());
  std::string allowed;
  for (std::size_t n = 0; n < kAlgorithms.size(); ++n) {
    const auto algorithm = static_cast<Algorithm>(n);
    if (!supports(of, algorithm)) continue;
    if (text.substr(equals + 1) == kAlgorithms[n]) {
      choice.of[static_cast<int>(of)] = algorithm;
      return;
    }
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", kAlgorithms[n]);
  }
  throw InputError(
      fmt::format("--collective: '{}'; allowed of {}: {}", text.substr(equals + 1), *kind, allowed));
}

std::vector<CollectiveRound> collective_rounds(CollectiveKind kind, CollectiveAlgorithm algorithm,
                                               std::int64_t bytes, std::span<const int> group) {
  if (group.size() < 2) return {};
  const Schedule schedule(kind, bytes, group);
  std::vector<CollectiveRound> rounds;
  switch (algorithm) {
    case Algorithm::direct:
      return schedule.direct();
    case Algorithm::ring:
      return schedule.ring();
    case Algorithm::halving:
      return schedule.halving();
    case Algorithm::bruck:
      return schedule.bruck();
    case Algorithm::hierarchical:
      break;
  }
  rounds = schedule.hierarchical();
  std::erase_if(rounds, [](const CollectiveRound& round) { return round.empty(); });
  return rounds;
}

std::vector<CollectiveRound> direct_rounds(CollectiveKind kind, std::span<const std::int64_t> input,
                                           std::size_t root) {
  const std::size_t ranks = input.size();
  if (ranks < 2 || kind == CollectiveKind::barrier) return {};
  // Which part of `whole` belongs to a rank.
  const auto part = [&](std::int64_t whole, std::size_t of) {
    const auto n = static_cast<std::int64_t>(ranks);
    return whole / n + (static_cast<std::int64_t>(of) < whole % n ? 1 : 0);
  };
  const auto bytes = [&](std::size_t from, std::size_t to, bool second) -> std::int64_t {
    switch (kind) {
      case CollectiveKind::all_reduce:
        return part(input[from], second ? from : to);
      case CollectiveKind::all_to_all:
      case CollectiveKind::reduce_scatter:
        return part(input[from], to);
      case CollectiveKind::all_gather:
        return input[from];
      case CollectiveKind::broadcast:
        return from == root ? input[from] : 0;
      case CollectiveKind::scatter:
        return from == root ? part(input[from], to) : 0;
      default:  // reduce, gather
        return to == root ? input[from] : 0;
    }
  };
  Rounds rounds;
  for (const bool second : {false, true}) {
    if (second && kind != CollectiveKind::all_reduce) break;
    CollectiveRound& round = rounds.emplace_back();
    for (std::size_t from = 0; from < ranks; ++from) {
      // Not all to the same one at the same time.
      for (std::size_t step = 1; step < ranks; ++step) {
        const std::size_t to = (from + step) % ranks;
        if (const std::int64_t moved = bytes(from, to, second); moved > 0)
          round.push_back({static_cast<int>(from), static_cast<int>(to), moved});
      }
    }
  }
  return rounds;
}

std::optional<CollectiveKind> collective_named(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') letters.push_back(static_cast<char>(c - 'A' + 'a'));
    if (c >= 'a' && c <= 'z') letters.push_back(c);
    if (c == '2') letters += "to";
  }
  for (const std::string_view prefix :
       {"hcom", "hccl", "nccl", "nccldevkernel", "ncclkernel", "cd", "dist"}) {
    if (!letters.starts_with(prefix)) continue;
    letters.erase(0, prefix.size());
    if (letters.starts_with("devkernel")) letters.erase(0, 9);
    if (letters.starts_with("kernel")) letters.erase(0, 6);
    break;
  }
  // The longest first: "reducescatter" is no "reduce".
  constexpr std::pair<std::string_view, CollectiveKind> kBegins[] = {
      {"allreduce", CollectiveKind::all_reduce}, {"alltoall", CollectiveKind::all_to_all},
      {"allgather", CollectiveKind::all_gather}, {"reducescatter", CollectiveKind::reduce_scatter},
      {"broadcast", CollectiveKind::broadcast},  {"bcast", CollectiveKind::broadcast},
      {"gather", CollectiveKind::gather},        {"scatter", CollectiveKind::scatter},
      {"barrier", CollectiveKind::barrier},      {"reduce", CollectiveKind::reduce}};
  for (const auto& [name, kind] : kBegins) {
    if (letters.starts_with(name)) return kind;
  }
  return std::nullopt;
}

void add_collective(RecordGraph& graph, const std::vector<CollectiveRound>& rounds,
                    std::vector<std::uint64_t> ready, const std::vector<std::uint64_t>& end,
                    const CollectiveRecords& records) {
  using Dependency = TrafficDependency::Kind;
  for (const CollectiveRound& round : rounds) {
    std::map<int, std::vector<std::uint64_t>> got;
    for (const CollectiveSend& send : round) {
      const auto from = static_cast<std::size_t>(send.from);
      const std::uint64_t record = graph.add(records.transfer(send), records.where);
      graph.wait(record, {ready[from], Dependency::completion, {}});
      graph.wait(end[from], {record, Dependency::completion, {}});
      got[send.to].push_back(record);
    }
    for (const auto& [rank, arrivals] : got) {
      std::uint64_t& before = ready[static_cast<std::size_t>(rank)];
      const std::uint64_t all = graph.add(records.point(rank), records.where);
      graph.wait(all, {before, Dependency::completion, {}});
      for (const std::uint64_t record : arrivals) graph.wait(all, {record, Dependency::arrival, {}});
      before = all;
    }
  }
  for (std::size_t rank = 0; rank < ready.size(); ++rank)
    graph.wait(end[rank], {ready[rank], Dependency::completion, {}});
}

}  // namespace cm384::traces
