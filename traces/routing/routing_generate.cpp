#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "traces/fixed_math.h"
#include "traces/random.h"
#include "traces/routing/routing.h"

namespace cm384::traces {

namespace {

void check(std::int64_t rows, int top_k, int experts) {
  if (rows < 0) throw InputError(fmt::format("routing: {} rows; allowed: 0 or more", rows));
  if (experts < 1) throw InputError(fmt::format("routing: {} experts; allowed: 1 or more", experts));
  if (top_k < 1 || top_k > experts) {
    throw InputError(
        fmt::format("routing: top-k {} of {} experts; allowed: 1 to the number of experts", top_k, experts));
  }
}

bool contains(const std::vector<std::int32_t>& ids, std::size_t from, std::int32_t id) {
  return std::find(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.end(), id) != ids.end();
}

// Draws by weight without putting back.
class WeightedDraw {
 public:
  explicit WeightedDraw(std::vector<double> weights) : weights_(std::move(weights)) {
    double sum = 0;
    for (const double w : weights_) cumulative_.push_back(sum += w);
  }

  // An expert that is not among ids[from ..].
  std::int32_t draw(Random& random, const std::vector<std::int32_t>& ids, std::size_t from) const {
    // Rejecting what was drawn before gives the same distribution as removing it; when little weight is left,
    // remove.
    for (int attempt = 0; attempt < 32; ++attempt) {
      const double point = random.real() * cumulative_.back();
      const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, point);
      const auto id = static_cast<std::int32_t>(at - cumulative_.begin());
      if (!contains(ids, from, id)) return id;
    }
    double left = 0;
    std::int32_t last = 0;
    for (std::size_t e = 0; e < weights_.size(); ++e) {
      const auto id = static_cast<std::int32_t>(e);
      if (!contains(ids, from, id)) left += weights_[e], last = id;
    }
    double point = random.real() * left;
    for (std::size_t e = 0; e < weights_.size(); ++e) {
      const auto id = static_cast<std::int32_t>(e);
      if (contains(ids, from, id)) continue;
      if ((point -= weights_[e]) < 0) return id;
    }
    return last;
  }

 private:
  std::vector<double> weights_, cumulative_;
};

}  // namespace

Routing uniform_routing(std::int64_t rows, int top_k, int experts, std::uint64_t seed) {
  check(rows, top_k, experts);
  Routing routing{top_k, experts, {}};
  routing.ids.reserve(static_cast<std::size_t>(rows * top_k));
  Random random(seed, 1);
  std::vector<std::int32_t> order(static_cast<std::size_t>(experts));
  for (int e = 0; e < experts; ++e) order[static_cast<std::size_t>(e)] = e;
  for (std::int64_t row = 0; row < rows; ++row) {
    // The first top_k steps of a shuffle; any order to start from will do.
    for (int k = 0; k < top_k; ++k) {
      const auto other =
          static_cast<std::uint64_t>(k) + random.below(static_cast<std::uint64_t>(experts - k));
      std::swap(order[static_cast<std::size_t>(k)], order[other]);
      routing.ids.push_back(order[static_cast<std::size_t>(k)]);
    }
  }
  return routing;
}

Routing zipf_routing(std::int64_t rows, int top_k, int experts, double exponent, std::uint64_t seed) {
  return drifting_routing(rows, top_k, experts, exponent, std::max<std::int64_t>(rows, 1), seed);
}

Routing drifting_routing(std::int64_t rows, int top_k, int experts, double exponent, std::int64_t period,
                         std::uint64_t seed) {
  check(rows, top_k, experts);
  if (period < 1) throw InputError(fmt::format("routing: drift after {} rows; allowed: 1 or more", period));
  if (!(exponent >= 0 && exponent <= 10)) {
    throw InputError(fmt::format("routing: zipf exponent {}; allowed: 0 to 10", exponent));
  }
  std::vector<double> weights;
  for (int e = 0; e < experts; ++e) weights.push_back(exponential(-exponent * natural_log(e + 1.0)));
  const WeightedDraw draw(std::move(weights));
  Routing routing{top_k, experts, {}};
  routing.ids.reserve(static_cast<std::size_t>(rows * top_k));
  Random random(seed, 2);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t from = routing.ids.size();
    for (int k = 0; k < top_k; ++k) routing.ids.push_back(draw.draw(random, routing.ids, from));
  }
  for (std::size_t n = 0; n < routing.ids.size(); ++n) {
    const std::int64_t moved = static_cast<std::int64_t>(n) / top_k / period;
    routing.ids[n] = static_cast<std::int32_t>((routing.ids[n] + moved) % experts);
  }
  return routing;
}

Routing group_limited_routing(std::int64_t rows, int top_k, int experts, int groups, int top_groups,
                              std::uint64_t seed) {
  check(rows, top_k, experts);
  if (groups < 1 || experts % groups != 0 || top_groups < 1 || top_groups > groups ||
      experts / groups * top_groups < top_k) {
    throw InputError(
        fmt::format("routing: {} of {} groups of {} experts; allowed: groups that divide the experts, and "
                    "enough of them for top-k {}",
                    top_groups, groups, experts, top_k));
  }
  Routing routing{top_k, experts, {}};
  routing.ids.reserve(static_cast<std::size_t>(rows * top_k));
  Random random(seed, 3);
  const int size = experts / groups;
  std::vector<double> scores(static_cast<std::size_t>(experts));
  std::vector<std::pair<double, int>> ranked;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (double& score : scores) score = random.real();
    ranked.clear();
    for (int g = 0; g < groups; ++g) {
      double best = 0, second = 0;
      for (int e = g * size; e < (g + 1) * size; ++e) {
        const double score = scores[static_cast<std::size_t>(e)];
        if (score > best) {
          second = best;
          best = score;
        } else {
          second = std::max(second, score);
        }
      }
      ranked.emplace_back(-(best + second), g);
    }
    std::sort(ranked.begin(), ranked.end());
    ranked.resize(static_cast<std::size_t>(top_groups));
    std::vector<std::pair<double, int>> candidates;
    for (const auto& [score, g] : ranked) {
      for (int e = g * size; e < (g + 1) * size; ++e)
        candidates.emplace_back(-scores[static_cast<std::size_t>(e)], e);
    }
    std::sort(candidates.begin(), candidates.end());
    for (int k = 0; k < top_k; ++k) routing.ids.push_back(candidates[static_cast<std::size_t>(k)].second);
  }
  return routing;
}

Routing hot_routing(std::int64_t rows, int top_k, int experts, double share, std::uint64_t seed) {
  check(rows, top_k, experts);
  if (!(share >= 0 && share <= 1) || top_k == experts) {
    throw InputError(
        fmt::format("routing: hot share {} with top-k {} of {} experts; allowed: 0 to 1, and fewer than all",
                    share, top_k, experts));
  }
  // Sets of the other experts, numbered from 1; the hot one takes the first place.
  Routing routing = uniform_routing(rows, top_k, experts - 1, seed);
  routing.experts = experts;
  for (std::int32_t& id : routing.ids) ++id;
  Random random(seed, 4);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (random.real() < share) routing.ids[static_cast<std::size_t>(row * top_k)] = 0;
  }
  return routing;
}

}  // namespace cm384::traces
