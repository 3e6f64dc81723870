// All-gather, reduce-scatter, all-reduce and all-to-all: inputs from a seed, and what every rank must hold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cm384::reference {

enum class CollectiveKind : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };

struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::all_gather;
  int ranks = 2;
  std::uint64_t bytes = 1024;  // of a part; of all-reduce, of all: BF16
  std::uint64_t seed = 1;
  bool rounded_pairs = false;  // sums of the ranks 2k and 2k + 1 are rounded to BF16 before they are added up
  int roundings = 0;           // rounds whose sums, of any ranks, are rounded before further ones are added

  // Elements of a rank's input and of its output.
  std::uint64_t in() const;
  std::uint64_t out() const;
};

std::vector<std::uint16_t> make_collective_input(const CollectiveCase& collective, int rank);
// What `rank` holds: the first difference; empty: none. Gathered values are the same bits, sums within 2^-8,
// of each rounded pair and of all terms' magnitudes for each rounding as well, and the rounding of FP32 sums
// of these.
std::string compare_collective(const CollectiveCase& collective, int rank,
                               std::span<const std::uint16_t> out);

}  // namespace cm384::reference
