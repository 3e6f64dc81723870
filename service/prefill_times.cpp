#include "service/prefill_times.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cm384::service {
namespace {

using Batch = PrefillCurves::Batch;

double rest_of(const Batch& batch) {
  return batch.latency_ms - batch.attention_ms;
}

// Through the mean of what stands at one x, `but` one x left out; what would fall stays level.
template <class At, class Value>
std::vector<std::pair<double, double>> rising(const std::vector<Batch>& batches, At at, Value value,
                                              std::optional<double> but = {}) {
  std::map<double, std::pair<double, int>> sums;
  for (const Batch& batch : batches) {
    if (at(batch) == but) continue;
    sums[at(batch)].first += value(batch);
    ++sums[at(batch)].second;
  }
  std::vector<std::pair<double, double>> points;
  for (const auto& [x, sum] : sums) {
    const double mean = sum.first / sum.second;
    points.emplace_back(x, points.empty() ? mean : std::max(mean, points.back().second));
  }
  return points;
}

auto rest_points(const std::vector<Batch>& batches, std::optional<double> but = {}) {
  return rising(
      batches, [](const Batch& batch) { return batch.work.tokens; }, rest_of, but);
}
auto attention_points(const std::vector<Batch>& batches, std::optional<double> but = {}) {
  return rising(
      batches, [](const Batch& batch) { return batch.work.pairs; },
      [](const Batch& batch) { return batch.attention_ms; }, but);
}

bool is_inner(const MonotoneCurve& curve, double x) {
  return x > curve.low() && x < curve.high();
}

}  // namespace

PrefillCurves::PrefillCurves(std::vector<Batch> batches, MonotoneCurve rest, MonotoneCurve attention)
    : batches_(std::move(batches)), rest_(std::move(rest)), attention_(std::move(attention)) {
  error_ = leave_one_out();
}

std::optional<PrefillCurves> PrefillCurves::through(std::vector<Batch> batches) {
  const auto rest = rest_points(batches), attention = attention_points(batches);
  if (rest.size() < 2 || attention.size() < 2) return {};
  return PrefillCurves(std::move(batches), MonotoneCurve(rest), MonotoneCurve(attention));
}

// Worst share by which a batch is missed without all that was measured at its tokens and at its pairs; of the
// ends, which nothing else reaches, by what the curves through them miss.
double PrefillCurves::leave_one_out() const {
  double worst = 0;
  for (const Batch& batch : batches_) {
    const auto [tokens, pairs] = batch.work;
    const double rest =
        is_inner(rest_, tokens) ? MonotoneCurve(rest_points(batches_, tokens))(tokens) : rest_(tokens);
    const double attention = is_inner(attention_, pairs)
                                 ? MonotoneCurve(attention_points(batches_, pairs))(pairs)
                                 : attention_(pairs);
    worst = std::max(worst, std::abs((rest + attention) / batch.latency_ms - 1));
  }
  return worst;
}

StepTime PrefillCurves::of(const PrefillWork& work) const {
  constexpr double kSame = 1e-9;
  const double tokens = std::max(work.tokens, rest_.low()), pairs = std::max(work.pairs, attention_.low());
  const double ms = rest_(tokens) + attention_(pairs);
  if (!rest_.has(tokens) || !attention_.has(pairs)) return {ms, Evidence::extrapolated, error_};
  const bool measured = std::ranges::any_of(batches_, [&](const Batch& batch) {
    return batch.work.tokens == tokens && batch.work.pairs == pairs &&
           std::abs(ms - batch.latency_ms) <= kSame * ms;
  });
  if (measured) return {ms, Evidence::measured, 0};
  return {ms, Evidence::interpolated, error_};
}

PrefillTimes::PrefillTimes(const Deployment& deployment, const Library& library) : pool_(deployment.prefill) {
  std::vector<Batch> batches;
  for (const PrefillPoint& point : library.prefill()) {
    if (point.ranks != 2 * pool_.npus) continue;
    const double tokens = static_cast<double>(point.tokens) * pool_.npus;
    // Libraries of before attention was recorded have the deployment's share of it.
    batches.push_back(
        {{tokens, tokens * point.prompt / 2},
         point.latency_ms,
         point.attention_ms > 0 ? point.attention_ms : point.latency_ms * pool_.attention_share});
  }
  measured_ = PrefillCurves::through(std::move(batches));
}

StepTime PrefillTimes::of(const PrefillWork& work) const {
  if (measured_) return measured_->of(work);
  const double share = pool_.attention_share;
  const double least = pool_.least_time.us() * 1e-3, rest = pool_.batch_time.us() * 1e-3 - least;
  const double full = pool_.timed_tokens, pairs = full * pool_.timed_prompt / 2;
  return {least + rest * ((1 - share) * work.tokens / full + share * work.pairs / pairs), Evidence::parameter,
          0};
}

}  // namespace cm384::service
