// How many tokens each rank has, where they are unlike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cm384::studies {

inline constexpr int kMostTokensOfRank = 512;

// What `--batches` says.
struct Batches {
  enum class Kind : std::uint8_t { uniform, list, file };
  Kind kind = Kind::list;
  int low = 0, high = 0;    // uniform: drawn evenly from low .. high
  std::vector<int> list{};  // of rank 0, 1, ..; ranks beyond its end begin anew
  std::string path{};       // file: such a list, a number a line
};
// Of "uniform:LOW..HIGH", "N,N,.." or "file:FILE". Throws InputError.
Batches parse_batches(std::string_view text);
inline void check_batches(std::string_view text) {
  parse_batches(text);
}
// Tokens of each of so many ranks. Throws InputError for a file that holds something else than numbers of
// tokens; one of more numbers than ranks gives the first of them.
std::vector<int> batches_of(const Batches& batches, int ranks, std::uint64_t seed);

}  // namespace cm384::studies
