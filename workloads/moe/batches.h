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
  std::string path{};       // file: such a list, a number a line; `#` begins a comment
};
// Of "uniform:LOW..HIGH", "N,N,.." or "file:FILE". Throws InputError.
Batches parse_batches(std::string_view text);
inline void check_batches(std::string_view text) {
  parse_batches(text);
}
// Tokens of each of so many ranks; of more numbers than ranks the first of them. Throws InputError for a file
// that holds something else than numbers of tokens, or more of them than there are ranks on any machine.
std::vector<int> batches_of(const Batches& batches, int ranks, std::uint64_t seed);
// That a list or file has not as many numbers as ranks; empty: it has.
std::string note_of(const Batches& batches, int ranks);

}  // namespace cm384::studies
