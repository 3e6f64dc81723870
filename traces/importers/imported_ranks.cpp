#include "traces/importers/imported_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text/error.h"
#include "base/text/number.h"

namespace cm384::traces {

ImportedRanks::ImportedRanks(std::vector<std::int64_t> numbers, const std::string& first,
                             const ImportOptions& options)
    : numbers_(std::move(numbers)), options_(options) {
  const std::size_t room =
      options.onto.empty() ? static_cast<std::size_t>(options.dies) : options.onto.size();
  if (count() > room)
    throw InputError(fmt::format("{}: {} ranks, but {} has {} dies to put them on", first, count(),
                                 options.machine.empty() ? "the machine" : options.machine, room));
}

std::optional<int> ImportedRanks::rank_of(std::int64_t number) const {
  const auto found = std::ranges::lower_bound(numbers_, number);
  if (found == numbers_.end() || *found != number) return std::nullopt;
  return static_cast<int>(found - numbers_.begin());
}

Unit ImportedRanks::unit(int rank) const {
  return {false, static_cast<std::uint16_t>(
                     options_.onto.empty() ? rank : options_.onto[static_cast<std::size_t>(rank)])};
}

TrafficRecord ImportedRanks::point(int rank) const {
  TrafficRecord r;
  r.kind = TrafficRecord::Kind::barrier;
  r.source = r.target = unit(rank);
  return r;
}

TrafficRecord ImportedRanks::compute(int rank, Time duration, int turn) const {
  TrafficRecord r = point(rank);
  r.kind = TrafficRecord::Kind::compute;
  r.end = r.start + duration;
  r.lane = static_cast<std::uint8_t>(turn);
  return r;
}

TrafficRecord ImportedRanks::transfer(int from, int to, std::int64_t bytes, int lane) {
  TrafficRecord r;
  r.operation = sim::Operation::write;
  r.source = unit(from);
  r.target = unit(to);
  r.core = TrafficRecord::kAnyCore;
  r.bytes = static_cast<std::uint64_t>(bytes);
  r.lane = static_cast<std::uint8_t>(lane);
  r.offset = placing_.allocate(r.target.number, r.bytes);
  return r;
}

namespace {

// Directly between all pairs, not all to the same one at the same time.
CollectiveRound uneven_round(const std::vector<std::vector<std::int64_t>>& parts) {
  CollectiveRound round;
  for (std::size_t from = 0; from < parts.size(); ++from) {
    for (std::size_t step = 1; step < parts.size(); ++step) {
      const std::size_t to = (from + step) % parts.size();
      if (parts[from][to] > 0)
        round.push_back({static_cast<int>(from), static_cast<int>(to), parts[from][to]});
    }
  }
  return round;
}

}  // namespace

void ImportedRanks::add(RecordGraph& graph, const Collective& c) {
  const bool moves = std::ranges::any_of(c.inputs, [](std::int64_t bytes) { return bytes > 0; });
  if (c.kind == CollectiveKind::barrier || !moves) {
    const std::uint64_t all =
        graph.join(c.ready, TrafficDependency::Kind::completion, unit(c.members.front()), c.where);
    for (const std::uint64_t end : c.end) graph.wait(end, {all, TrafficDependency::Kind::completion, {}});
    return;
  }
  const CollectiveAlgorithm algorithm = options_.collectives[c.kind];
  std::vector<CollectiveRound> rounds;
  if (!c.parts.empty()) {
    if (algorithm != CollectiveAlgorithm::direct)
      throw InputError(fmt::format("{}: its parts are of unequal size; allowed by {}: equal ones", c.where,
                                   name_of(algorithm)));
    rounds = {uneven_round(c.parts)};
  } else if (algorithm == CollectiveAlgorithm::direct) {
    rounds = direct_rounds(c.kind, c.inputs, c.root);
  } else {
    std::vector<int> node;
    for (const int rank : c.members) node.push_back(unit(rank).number / options_.dies_per_node);
    for (std::size_t n = 0; n < c.members.size(); ++n) {
      if (c.inputs[n] != c.inputs[0])
        throw InputError(fmt::format("{}: rank {} puts in {} B, rank {} {} B; allowed by {}: the same",
                                     c.where, number(c.members[n]), c.inputs[n], number(c.members[0]),
                                     c.inputs[0], name_of(algorithm)));
    }
    const auto members = static_cast<std::int64_t>(c.members.size());
    rounds = collective_rounds(c.kind, algorithm,
                               c.inputs[0] * (c.kind == CollectiveKind::all_gather ? members : 1), node);
  }
  const auto member = [&](int n) { return c.members[static_cast<std::size_t>(n)]; };
  add_collective(
      graph, rounds, c.ready, c.end,
      {[&](const CollectiveSend& s) { return transfer(member(s.from), member(s.to), s.bytes, c.lane); },
       [&](int n) { return point(member(n)); }, c.where});
}

ImportResult ImportedRanks::write(const RecordGraph& graph, TrafficSink& sink,
                                  std::vector<std::uint64_t>* numbers) const {
  ImportResult result;
  result.placement = options_.onto.empty() ? "by rank" : "as --onto says, in the order of the ranks";
  for (std::size_t rank = 0; rank < count(); ++rank)
    result.mapping.emplace_back(numbers_[rank], unit(static_cast<int>(rank)).number);
  const Written written = graph.write(sink, numbers);
  result.records = written.records;
  note_missing(result);
  note_locality(written, result);
  return result;
}

// Numbers between those of the ranks, of which there is no file.
void ImportedRanks::note_missing(ImportResult& result) const {
  constexpr std::size_t kShown = 3;
  std::int64_t missing = 0;
  std::vector<std::int64_t> first;
  for (std::size_t rank = 1; rank < count(); ++rank) {
    missing += numbers_[rank] - numbers_[rank - 1] - 1;
    for (std::int64_t n = numbers_[rank - 1] + 1; n < numbers_[rank] && first.size() < kShown; ++n)
      first.push_back(n);
  }
  if (missing != 0)
    result.notes.push_back(fmt::format("warning: ranks between those given are missing, {} in all: {}{}",
                                       missing, fmt::join(first, ", "),
                                       missing > static_cast<std::int64_t>(kShown) ? ", ..." : ""));
}

RankFiles in_order_of_ranks(const std::vector<std::string>& paths) {
  RankFiles files{paths, std::vector<std::int64_t>(paths.size())};
  std::iota(files.numbers.begin(), files.numbers.end(), 0);
  if (paths.size() < 2) return files;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t head = paths[0].size(), tail = paths[0].size();
  for (const std::string& path : paths) {
    head = std::min(head, static_cast<std::size_t>(std::ranges::mismatch(path, paths[0]).in1 - path.begin()));
    std::size_t same = 0;
    while (same < std::min(path.size(), paths[0].size()) &&
           path[path.size() - 1 - same] == paths[0][paths[0].size() - 1 - same])
      ++same;
    tail = std::min(tail, same);
  }
  // Digits at both ends belong to the number.
  while (head > 0 && is_digit(paths[0][head - 1])) --head;
  while (tail > 0 && is_digit(paths[0][paths[0].size() - tail])) --tail;
  std::map<std::int64_t, std::string> by_number;
  for (const std::string& path : paths) {
    if (path.size() < head + tail) return files;
    const auto number =
        hw::number_of<std::int64_t>(std::string_view(path).substr(head, path.size() - head - tail));
    if (!number || *number < 0 || !by_number.emplace(*number, path).second) return files;
  }
  files = {};
  for (auto& [number, path] : by_number) {
    files.numbers.push_back(number);
    files.paths.push_back(std::move(path));
  }
  return files;
}

}  // namespace cm384::traces
