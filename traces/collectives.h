// How a collective operation is written out as messages between its ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/record_graph.h"

namespace cm384::traces {

enum class CollectiveKind : std::uint8_t { all_reduce, all_to_all, all_gather, reduce_scatter };
inline constexpr int kCollectiveKinds = 4;

//                   all-reduce   all-to-all   all-gather   reduce-scatter
//     direct        x            x            x            x               every pair at once; all-reduce in
//     two rounds ring          x                         x            x               to the next rank, a
//     part each round halving       x                         x            x               recursive halving
//     and doubling: 2^n ranks bruck                      x            x                            log2
//     rounds, any number of ranks hierarchical  x            x            x            x               within
//     nodes, then between ranks of one place
enum class CollectiveAlgorithm : std::uint8_t { direct, ring, halving, bruck, hierarchical };

struct CollectiveChoice {
  CollectiveAlgorithm of[kCollectiveKinds]{};
  CollectiveAlgorithm operator[](CollectiveKind kind) const { return of[static_cast<int>(kind)]; }
};

std::string_view name_of(CollectiveKind kind);
std::string_view name_of(CollectiveAlgorithm algorithm);
// Reads "all-reduce=ring" into a choice. Throws InputError.
void parse_collective(std::string_view text, CollectiveChoice& choice);

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
