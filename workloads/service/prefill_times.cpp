#include "workloads/service/prefill_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "base/text/error.h"

namespace cm384::service {
namespace {

using Batch = PrefillCurves::Batch;

double rest_of(const Batch& batch) {
  return batch.latency_ms - batch.attention_ms - batch.context_ms;
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

auto context_points(const std::vector<Batch>& batches, std::optional<double> but = {}) {
  return rising(
      batches, [](const Batch& batch) { return batch.work.context; },
      [](const Batch& batch) { return batch.context_ms; }, but);
}

bool is_inner(const MonotoneCurve& curve, double x) {
  return x > curve.low() && x < curve.high();
}

}  // namespace

PrefillCurves::PrefillCurves(std::vector<Batch> batches, MonotoneCurve rest, MonotoneCurve attention,
                             MonotoneCurve context)
    : batches_(std::move(batches)),
      rest_(std::move(rest)),
      attention_(std::move(attention)),
      context_(std::move(context)) {
  error_ = leave_one_out();
  for (const Batch& batch : batches_) scaled_error_ = std::max(scaled_error_, batch.scaled_error);
}

std::optional<PrefillCurves> PrefillCurves::through(std::vector<Batch> batches) {
  const auto rest = rest_points(batches), attention = attention_points(batches);
  if (rest.size() < 2 || attention.size() < 2) return {};
  const auto context = context_points(batches);
  return PrefillCurves(std::move(batches), MonotoneCurve(rest), MonotoneCurve(attention),
                       MonotoneCurve(context));
}

// The curve at x without what was measured there; of the ends, which nothing else reaches, with it.
template <class Points>
double without(const MonotoneCurve& curve, double x, Points&& points) {
  return is_inner(curve, x) ? MonotoneCurve(points(x))(x) : curve(x);
}

// Worst share by which a batch is missed without all that was measured at its tokens, its pairs and its
// context.
double PrefillCurves::leave_one_out() const {
  double worst = 0;
  for (const Batch& batch : batches_) {
    const double ms =
        without(rest_, batch.work.tokens, [&](double x) { return rest_points(batches_, x); }) +
        without(attention_, batch.work.pairs, [&](double x) { return attention_points(batches_, x); }) +
        without(context_, batch.work.context, [&](double x) { return context_points(batches_, x); });
    worst = std::max(worst, std::abs(ms / batch.latency_ms - 1));
  }
  return worst;
}

StepTime PrefillCurves::of(const PrefillWork& work) const {
  constexpr double kSame = 1e-9;
  const double tokens = std::max(work.tokens, rest_.low()), pairs = std::max(work.pairs, attention_.low()),
               context = std::max(work.context, context_.low());
  const double ms = rest_(tokens) + attention_(pairs) + context_(context);
  if (!rest_.has(tokens) || !attention_.has(pairs) || !context_.has(context))
    return {ms, Evidence::extrapolated, error_};
  const auto point = std::ranges::find_if(batches_, [&](const Batch& batch) {
    return batch.work.tokens == tokens && batch.work.pairs == pairs && batch.work.context == context &&
           std::abs(ms - batch.latency_ms) <= kSame * ms;
  });
  if (point != batches_.end()) {
    if (point->scaled_error < 0) return {ms, Evidence::measured, 0};
    return {ms, Evidence::scaled, 0, point->scaled_error};
  }
  if (scaled_error_ < 0) return {ms, Evidence::interpolated, error_};
  return {ms, Evidence::scaled, error_, scaled_error_};
}

PrefillTimes::PrefillTimes(const Deployment& deployment, const Library& library) : spec_(deployment.prefill) {
  std::array<std::vector<Batch>, 2> batches;  // by microbatches
  std::optional<std::string> way;
  for (const PrefillPoint& point : library.prefill()) {
    if (point.ranks != spec_.dies() || point.microbatches > spec_.microbatches) continue;
    if (point.microbatches < 1)
      throw InputError(
          fmt::format("library of {}: a batch of prompts with {} microbatches; allowed: 1 or more",
                      library.machine(), point.microbatches));
    if (way.value_or(point.way) != point.way)
      throw InputError(
          fmt::format("library of {}: batches of prompts of {} ranks were measured in several ways ({}; {}); "
                      "allowed: one",
                      library.machine(), point.ranks, *way, point.way));
    way = point.way;
    PrefillWork work;
    const double fresh = point.prompt - point.cached;
    work.add(fresh, point.cached);
    const double prompts = static_cast<double>(point.tokens) * spec_.npus / point.prompt;
    const double latency_ms = point.latency_ms - point.read_ms;
    // Libraries of before attention was recorded have the deployment's share of it.
    batches[static_cast<std::size_t>(point.microbatches) - 1].push_back(
        {{prompts * work.tokens, prompts * work.pairs, prompts * work.context},
         latency_ms,
         point.attention_ms > 0 ? point.attention_ms : latency_ms * spec_.attention_share,
         point.context_ms,
         point.from.empty() ? -1 : point.error});
  }
  one_ = PrefillCurves::through(std::move(batches[0]));
  two_ = PrefillCurves::through(std::move(batches[1]));
}

bool PrefillTimes::takes_two(const PrefillWork& work, int prompts) const {
  if (!one_ || !two_ || prompts < 2) return false;
  const StepTime two = two_->of(work);
  return two.ms < one_->of(work).ms && two.evidence != Evidence::extrapolated;
}

StepTime PrefillTimes::of(const PrefillWork& work, int prompts) const {
  if (one_) return takes_two(work, prompts) ? two_->of(work) : one_->of(work);
  const double share = spec_.attention_share;
  const double least = spec_.least_time.us() * 1e-3, rest = spec_.batch_time.us() * 1e-3 - least;
  const double full = spec_.timed_tokens, pairs = full * spec_.timed_prompt / 2;
  return {least + rest * ((1 - share) * work.tokens / full + share * work.pairs / pairs), Evidence::parameter,
          0};
}

}  // namespace cm384::service
