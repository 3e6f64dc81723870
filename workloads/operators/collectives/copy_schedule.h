// What a collective by copies moves between ranks, round by round. Pure: no machine takes part.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/parameters/ub.h"
#include "workloads/operators/reference/collectives.h"

namespace cm384::operators {

// direct: each with each at once; ring: a part to the next rank, a sum to the one before, each round;
// halving: recursive halving and doubling, 2^n ranks; hierarchical: package by package what the dies of one
// place need of each other, then within packages.
enum class CopyAlgorithm : std::uint8_t { direct, ring, halving, hierarchical };
std::string_view name_of(CopyAlgorithm algorithm);

// A part, or what a rank has added up of it so far, goes from a rank to another one.
struct PartMove {
  int from = 0, to = 0, part = 0;
};
// A rank begins a round when all that it sends and gets in the round before is there.
using CopyRound = std::vector<PartMove>;

// How many ranks share a package, how many packages a node, how many nodes there are; those of one are left
// out. Ranks stand on consecutive dies from 0 on. Empty: they do not fill packages and nodes evenly.
std::vector<int> levels_of(int ranks, const hw::Topology& topology);

// Of an all-gather part n is what rank n begins with; of a reduce-scatter what it ends with, and the rounds
// are those of the all-gather backwards. An all-reduce has both, one after the other; `gathers_from` is the
// first round that adds nothing. Throws InputError where the algorithm does not take so many ranks.
struct CopyRounds {
  std::vector<CopyRound> rounds;
  std::size_t gathers_from = 0;
};
CopyRounds rounds_of(reference::CollectiveKind kind, CopyAlgorithm algorithm, int ranks,
                     const hw::Topology& topology);

}  // namespace cm384::operators
