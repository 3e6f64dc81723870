#include "workloads/moe/batches.h"

#include <fmt/format.h>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "traces/random.h"

namespace cm384::studies {
namespace {

bool is_batch(int tokens) {
  return tokens >= 1 && tokens <= kMostTokensOfRank;
}

}  // namespace

Batches parse_batches(std::string_view text) {
  constexpr std::string_view kUniform = "uniform:", kFile = "file:";
  const auto refuse = [text](std::string_view found) {
    return InputError(
        fmt::format("{}{}; allowed: uniform:LOW..HIGH, N,N,.. or file:FILE with 1 to {} tokens "
                    "of a rank",
                    text, found, kMostTokensOfRank));
  };
  if (text.starts_with(kFile) && text.size() > kFile.size())
    return {Batches::Kind::file, 0, 0, {}, std::string(text.substr(kFile.size()))};
  if (text.starts_with(kUniform)) {
    const std::string_view range = text.substr(kUniform.size());
    const std::size_t dots = range.find("..");
    if (dots == std::string_view::npos) throw refuse("");
    const auto low = hw::number_of<int>(range.substr(0, dots)),
               high = hw::number_of<int>(range.substr(dots + 2));
    if (!low || !high || !is_batch(*low) || !is_batch(*high) || *low > *high) throw refuse("");
    return {Batches::Kind::uniform, *low, *high, {}, {}};
  }
  Batches made;
  for (const std::string_view field : split_fields(text)) {
    const auto tokens = hw::number_of<int>(field);
    if (!tokens || !is_batch(*tokens)) throw refuse(fmt::format(": {}", field.empty() ? "nothing" : field));
    made.list.push_back(*tokens);
  }
  return made;
}

std::vector<int> batches_of(const Batches& batches, int ranks, std::uint64_t seed) {
  std::vector<int> made;
  const auto wanted = static_cast<std::size_t>(ranks);
  if (batches.kind == Batches::Kind::uniform) {
    constexpr std::uint64_t kBatchSeed = 0xba7c4;
    traces::Random random(seed ^ kBatchSeed, 0);
    const auto count = static_cast<std::uint64_t>(batches.high - batches.low) + 1;
    while (made.size() < wanted) made.push_back(batches.low + static_cast<int>(random.below(count)));
    return made;
  }
  std::vector<int> list = batches.list;
  if (batches.kind == Batches::Kind::file) {
    LineReader lines(batches.path);
    std::string line;
    while (list.size() < wanted && lines.next(line)) {
      if (line.empty() || line.front() == '#') continue;
      const auto tokens = hw::number_of<int>(line);
      if (!tokens || !is_batch(*tokens))
        lines.fail(fmt::format("{}; allowed: 1 to {} tokens of a rank", line, kMostTokensOfRank));
      list.push_back(*tokens);
    }
    if (list.empty()) throw InputError(fmt::format("{}: no numbers of tokens", batches.path));
  }
  for (std::size_t rank = 0; rank < wanted; ++rank) made.push_back(list[rank % list.size()]);
  return made;
}

}  // namespace cm384::studies
