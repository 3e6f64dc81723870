#include "workloads/moe/batches.h"

#include <fmt/format.h>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "traces/random.h"

namespace cm384::studies {
namespace {

constexpr std::size_t kMostNumbers = 65'535;  // dies that a machine has at most

bool is_batch(int tokens) {
  return tokens >= 1 && tokens <= kMostTokensOfRank;
}

std::vector<int> numbers_in(const std::string& path) {
  LineReader lines(path);
  std::vector<int> numbers;
  for (std::string line; lines.next(line);) {
    const std::string_view text = split_fields(line, '#').front();
    if (text.empty()) continue;
    const auto tokens = hw::number_of<int>(text);
    if (!tokens || !is_batch(*tokens))
      lines.fail(fmt::format("'{}'; allowed: the tokens of a rank in each line, 1 to {}", text.substr(0, 40),
                             kMostTokensOfRank));
    if (numbers.size() == kMostNumbers)
      lines.fail(fmt::format("a number for more ranks than a machine has; allowed: up to {}", kMostNumbers));
    numbers.push_back(*tokens);
  }
  if (numbers.empty()) throw InputError(fmt::format("{}: no numbers of tokens", path));
  return numbers;
}

std::vector<int> list_of(const Batches& batches) {
  return batches.kind == Batches::Kind::file ? numbers_in(batches.path) : batches.list;
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
  const std::vector<int> list = list_of(batches);
  for (std::size_t rank = 0; rank < wanted; ++rank) made.push_back(list[rank % list.size()]);
  return made;
}

std::string note_of(const Batches& batches, int ranks) {
  if (batches.kind == Batches::Kind::uniform) return {};
  const std::size_t numbers = list_of(batches).size(), wanted = static_cast<std::size_t>(ranks);
  if (numbers == wanted) return {};
  return fmt::format("--batches: {} numbers for {} ranks with tokens: {}", numbers, ranks,
                     numbers < wanted ? "they start over" : "the first ones are taken");
}

}  // namespace cm384::studies
