#include "workloads/layer/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/text/error.h"
#include "base/text/number.h"
#include "workloads/service/requests.h"

namespace cm384::studies {
namespace {

constexpr int kMostTokens = 1'000'000;

}  // namespace

Lengths parse_lengths(std::string_view text) {
  using Kind = Lengths::Kind;
  if (text == "fixed") return {};
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (first != std::string_view::npos && text.substr(0, first) == "requests" && first + 1 < text.size())
    return {Kind::requests, 0, 0, std::string(text.substr(first + 1))};
  if (text.substr(0, first) == "uniform" && second != std::string_view::npos) {
    const auto low = hw::number_of<int>(text.substr(first + 1, second - first - 1)),
               high = hw::number_of<int>(text.substr(second + 1));
    if (low && high && *low >= 1 && *low <= *high && *high <= kMostTokens)
      return {Kind::uniform, *low, *high, {}};
  }
  throw InputError(
      fmt::format("{}; allowed: fixed, uniform:LOW:HIGH with 1 <= LOW <= HIGH <= {}, or requests:FILE", text,
                  kMostTokens));
}

LengthDraw::LengthDraw(const Lengths& lengths, int fixed) : lengths_(lengths), fixed_(fixed) {
  if (lengths.kind != Lengths::Kind::requests) return;
  for (const service::Request& request : service::read_requests(lengths.path).requests) {
    if (request.prompt + request.output > kMostTokens)
      throw InputError(fmt::format("{}: a request of {} tokens; at most {} are cached", lengths.path,
                                   request.prompt + request.output, kMostTokens));
    prompts_.push_back(static_cast<std::uint32_t>(request.prompt));
    steps_.push_back((steps_.empty() ? 0 : steps_.back()) + static_cast<std::uint64_t>(request.output));
  }
  if (steps_.empty()) throw InputError(fmt::format("{}: no requests with output", lengths.path));
}

std::uint32_t LengthDraw::draw(traces::Random& random) const {
  switch (lengths_.kind) {
    case Lengths::Kind::fixed:
      break;
    case Lengths::Kind::uniform:
      return static_cast<std::uint32_t>(lengths_.low) +
             static_cast<std::uint32_t>(
                 random.below(static_cast<std::uint64_t>(lengths_.high - lengths_.low) + 1));
    case Lengths::Kind::requests: {
      const std::uint64_t step = random.below(steps_.back());
      const auto n = static_cast<std::size_t>(std::ranges::upper_bound(steps_, step) - steps_.begin());
      return prompts_[n] + static_cast<std::uint32_t>(step - (n == 0 ? 0 : steps_[n - 1]));
    }
  }
  return static_cast<std::uint32_t>(fixed_);
}

double LengthDraw::mean() const {
  if (lengths_.kind == Lengths::Kind::fixed) return fixed_;
  if (lengths_.kind == Lengths::Kind::uniform) return (lengths_.low + lengths_.high) / 2.0;
  double sum = 0;
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    const auto output = static_cast<double>(steps_[n] - (n == 0 ? 0 : steps_[n - 1]));
    sum += output * (prompts_[n] + (output - 1) / 2);
  }
  return sum / static_cast<double>(steps_.back());
}

void draw_lengths(LayerSetting& setting, const Lengths& lengths, int fixed, int requests, int sets,
                  std::uint64_t seed) {
  // Ranks that share heads have the same requests.
  const auto sharing = static_cast<std::size_t>(setting.tensor),
             ranks = static_cast<std::size_t>(setting.token_ranks()) / sharing;
  const LengthDraw draw(lengths, fixed);
  const auto one_rank = [&](std::size_t rank) {
    traces::Random random(seed, 1000 + rank);
    RankLengths made(static_cast<std::size_t>(setting.microbatches));
    for (int n = 0; n < requests; ++n)
      made[static_cast<std::size_t>(n * setting.microbatches / requests)].push_back(draw.draw(random));
    return made;
  };
  if (lengths.kind == Lengths::Kind::fixed) {
    setting.lengths_of.assign(ranks * sharing, 0);
    setting.lengths = {one_rank(0)};
    return;
  }
  std::vector<RankLengths> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) all.push_back(one_rank(rank));
  share_lengths(setting, all, sets);
  std::vector<int> of_ranks;
  for (const int set : setting.lengths_of) of_ranks.insert(of_ranks.end(), sharing, set);
  setting.lengths_of = std::move(of_ranks);
}

void share_lengths(LayerSetting& setting, const std::vector<RankLengths>& all, int sets) {
  const std::size_t ranks = all.size();
  setting.lengths.clear();
  setting.lengths_of.assign(ranks, 0);
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::uint64_t sum = 0;
    for (const auto& part : all[rank]) sum = std::accumulate(part.begin(), part.end(), sum);
    order.emplace_back(sum, rank);
  }
  std::ranges::sort(order);
  // The last set is that of the longest alone; the others are middle ones of as many ranks each.
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(sets), ranks);
  for (std::size_t set = 0; set < count; ++set) {
    const bool longest = set + 1 == count;
    const std::size_t shared = ranks - 1, parts = std::max<std::size_t>(1, count - 1);
    const std::size_t from = longest ? ranks - 1 : shared * set / parts,
                      to = longest ? ranks : shared * (set + 1) / parts;
    setting.lengths.push_back(all[order[(from + to) / 2].second]);
    for (std::size_t n = from; n < to; ++n) setting.lengths_of[order[n].second] = static_cast<int>(set);
  }
}

}  // namespace cm384::studies
