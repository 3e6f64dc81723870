// How a collective operation is written out as messages between its ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/record_graph.h"

namespace cm384::traces {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_to_all,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  gather,
  scatter,
  barrier
};
inline constexpr int kCollectiveKinds = 9;
inline constexpr int kChosenKinds = 4;  // the first ones know several algorithms, the others one
// One rank has a role of its own.
constexpr bool is_rooted(CollectiveKind kind) {
  return kind >= CollectiveKind::broadcast && kind <= CollectiveKind::scatter;
}

// direct: every pair at once; all-reduce in two rounds. ring: to the next rank, a part each round. halving:
// recursive halving and doubling, 2^n ranks. bruck: log2 rounds, any number of ranks. hierarchical: within
// nodes, then between ranks of one place. All-to-all knows direct, bruck and hierarchical; all-gather all of
// them; all-reduce and reduce-scatter all but bruck.
enum class CollectiveAlgorithm : std::uint8_t { direct, ring, halving, bruck, hierarchical };

struct CollectiveChoice {
  CollectiveAlgorithm of[kCollectiveKinds]{};
  CollectiveAlgorithm operator[](CollectiveKind kind) const { return of[static_cast<int>(kind)]; }
};

std::string_view name_of(CollectiveKind kind);
std::string_view name_of(CollectiveAlgorithm algorithm);
// Reads "all-reduce=ring" into a choice. Throws InputError.
void parse_collective(std::string_view text, CollectiveChoice& choice);

// "all-reduce", "allreduce", "AllReduce", "_allgather_base" and the like: by letters alone, after prefixes of
// libraries. Nothing for other texts.
std::optional<CollectiveKind> collective_named(std::string_view text);

struct CollectiveSend {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
};
// A rank's sends of a round wait for all it got in the rounds before.
using CollectiveRound = std::vector<CollectiveSend>;

// `bytes`: of the whole vector of a rank; its `ranks`-th part, at least 1 B, is what belongs to one rank.
// `group`: the node of each rank. Throws InputError where the algorithm does not take that many ranks or such
// groups.
std::vector<CollectiveRound> collective_rounds(CollectiveKind kind, CollectiveAlgorithm algorithm,
                                               std::int64_t bytes, std::span<const int> group);

// Directly between all pairs, where ranks may differ. `input`: bytes that each rank puts in: all of its
// vector of an all-reduce, all-to-all, reduce-scatter or reduce, its own block of an all-gather or gather,
// what the root has of a broadcast or scatter. A vector's parts differ by one byte at most. `root`: of rooted
// kinds.
std::vector<CollectiveRound> direct_rounds(CollectiveKind kind, std::span<const std::int64_t> input,
                                           std::size_t root = 0);

// Puts rounds into a graph. `ready`: the record of each rank that it begins after, `end`: the one that waits
// for all of it that the rank sends and gets. `transfer` and `point` make the records of a message and of a
// rank's moment.
struct CollectiveRecords {
  std::function<TrafficRecord(const CollectiveSend&)> transfer;
  std::function<TrafficRecord(int rank)> point;
  std::string where;  // for errors
};
void add_collective(RecordGraph& graph, const std::vector<CollectiveRound>& rounds,
                    std::vector<std::uint64_t> ready, const std::vector<std::uint64_t>& end,
                    const CollectiveRecords& records);

}  // namespace cm384::traces
