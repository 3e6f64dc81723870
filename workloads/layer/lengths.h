// How long the cached sequences of a decode step are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/random.h"
#include "workloads/layer/layer_setting.h"

namespace cm384::studies {

// What `--kv-lengths` says.
struct Lengths {
  enum class Kind { fixed, uniform, requests };
  Kind kind = Kind::fixed;
  int low = 0, high = 0;  // uniform: drawn evenly from low .. high
  std::string path;       // requests: a file of recorded ones
};
// Of "fixed", "uniform:LOW:HIGH" or "requests:FILE". Throws InputError.
Lengths parse_lengths(std::string_view text);
inline void check_lengths(std::string_view text) {
  parse_lengths(text);
}

// Draws lengths in tokens. Of recorded requests it takes a step of one of them, each of all steps as likely:
// the prompt and what has been answered so far. Throws InputError for a file that read_requests() refuses,
// and for a context of more than 1,000,000 tokens.
class LengthDraw {
 public:
  LengthDraw(const Lengths& lengths, int fixed);
  std::uint32_t draw(traces::Random& random) const;
  double mean() const;

 private:
  Lengths lengths_;
  int fixed_;
  std::vector<std::uint32_t> prompts_;
  std::vector<std::uint64_t> steps_;  // of the requests up to this one and with it
};

// Draws the lengths of `requests` per rank and sorts ranks into `sets` of them by their sums.
void draw_lengths(LayerSetting& setting, const Lengths& lengths, int fixed, int requests, int sets,
                  std::uint64_t seed);
// Gives each rank its lengths; where there are fewer `sets` than ranks, those of the set that it is in.
void share_lengths(LayerSetting& setting, const std::vector<RankLengths>& of_ranks, int sets);

}  // namespace cm384::studies
