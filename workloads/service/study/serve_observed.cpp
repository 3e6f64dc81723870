#include "workloads/service/study/serve_observed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <tuple>

#include "base/text/quantity.h"

namespace cm384::studies {
namespace {

constexpr Time kMostStepBubble = 100_ms, kMostPrefillBubble = 1_s;

using Times = std::vector<service::ObservedTimes>;

Times times_of(const service::ServiceResult& served) {
  Times times;
  for (const service::Served& one : served.served) {
    const bool done = one.state == service::RequestState::done;
    times.push_back(done ? service::ObservedTimes{one.ttft_ms(), one.e2e_ms()}
                         : service::ObservedTimes{-1, -1});
  }
  return times;
}

// Of a request; nothing where it has no such time.
using Metric = std::optional<double> (*)(const service::ObservedTimes&, const service::Request&);
struct NamedMetric {
  const char* name;
  Metric of;
};
constexpr std::array kMetrics{
    NamedMetric{"ttft",
                [](const service::ObservedTimes& t, const service::Request&) -> std::optional<double> {
                  return t.ttft_ms;
                }},
    NamedMetric{"tpot",
                [](const service::ObservedTimes& t, const service::Request& r) -> std::optional<double> {
                  if (r.output < 2) return {};
                  return (t.e2e_ms - t.ttft_ms) / (r.output - 1);
                }},
    NamedMetric{"e2e",
                [](const service::ObservedTimes& t, const service::Request&) -> std::optional<double> {
                  return t.e2e_ms;
                }},
};

struct Pairs {
  std::vector<double> observed, modelled;
  double difference() const {  // of the sums
    double sum = 0;
    for (std::size_t k = 0; k < observed.size(); ++k) sum += modelled[k] - observed[k];
    return sum;
  }
};

Pairs pairs_of(const service::ObservedRun& observed, const Times& modelled, Metric metric, std::size_t from,
               std::size_t to) {
  Pairs pairs;
  for (std::size_t k = from; k < to; ++k) {
    if (modelled[k].e2e_ms < 0) continue;
    const auto seen = metric(observed.times[k], observed.trace.requests[k]),
               made = metric(modelled[k], observed.trace.requests[k]);
    if (!seen) continue;
    pairs.observed.push_back(*seen);
    pairs.modelled.push_back(*made);
  }
  return pairs;
}

Row row_of(const char* metric, const char* part, const char* host, const Pairs& pairs) {
  std::vector<double> errors;
  double seen = 0, made = 0;
  for (std::size_t k = 0; k < pairs.observed.size(); ++k) {
    seen += pairs.observed[k];
    made += pairs.modelled[k];
    if (pairs.observed[k] > 0) errors.push_back(std::abs(pairs.modelled[k] / pairs.observed[k] - 1));
  }
  std::ranges::sort(errors);
  const auto at = [&](double share) -> Value {
    if (errors.empty()) return {};
    return errors[static_cast<std::size_t>(std::ceil(share * static_cast<double>(errors.size()))) - 1];
  };
  const auto count = static_cast<double>(std::max<std::size_t>(1, pairs.observed.size()));
  return {{"metric", metric},
          {"part", part},
          {"host", host},
          {"requests", std::ssize(pairs.observed)},
          {"observed_ms", seen / count},
          {"modelled_ms", made / count},
          {"error_mean", seen > 0 ? Value(made / seen - 1) : Value()},
          {"error_p50", at(0.5)},
          {"error_p90", at(0.9)}};
}

}  // namespace

// Each of both times moves its own latency, and the other one little: the one of steps, then the one of
// batches, and both again.
std::optional<ServeObserved> ServeObserved::calibrate(const service::ObservedRun& observed,
                                                      const ServeRuns& runs,
                                                      const service::Deployment& deployment,
                                                      const service::ServiceResult& served,
                                                      std::uint64_t seed) {
  constexpr int kHalvings = 16, kRounds = 2;
  ServeObserved made(observed);
  made.as_given_ = times_of(served);
  service::Deployment changed = deployment;
  std::optional<service::ServiceResult> last;
  const std::size_t half = (observed.times.size() + 1) / 2;
  // How much too slow the first half is then: up to first tokens, or from there on.
  const auto difference = [&](bool steps) -> std::optional<double> {
    last = runs.run(changed, observed.trace, seed, false);
    if (!last->complete) return {};
    const Times times = times_of(*last);
    const double first = pairs_of(observed, times, kMetrics[0].of, 0, half).difference();
    return steps ? pairs_of(observed, times, kMetrics[2].of, 0, half).difference() - first : first;
  };
  const auto fit = [&](Time& bubble, Time most, bool steps) {
    bubble = Time{};
    auto miss = difference(steps);
    if (!miss) return false;
    if (*miss >= 0) return true;
    Time low{}, high = most;
    for (int k = 0; k < kHalvings; ++k) {
      bubble = Time{(low.ps + high.ps) / 2};
      if (!(miss = difference(steps))) return false;
      (*miss < 0 ? low : high) = bubble;
    }
    if (high == most) bubble = most;  // and still too fast
    return true;
  };
  for (int round = 0; round < kRounds; ++round)
    if (!fit(changed.decode.bubble, kMostStepBubble, true) ||
        !fit(changed.prefill.bubble, kMostPrefillBubble, false))
      return {};
  made.step_bubble_ = changed.decode.bubble;
  made.prefill_bubble_ = changed.prefill.bubble;
  last = runs.run(changed, observed.trace, seed, false);
  if (!last->complete) return {};
  made.calibrated_ = times_of(*last);
  return made;
}

void ServeObserved::add_to(Row& row) const {
  const std::size_t all = observed_->times.size(), half = (all + 1) / 2;
  Rows rows;
  for (const auto& [name, of] : kMetrics) {
    rows.push_back(row_of(name, "all", "as given", pairs_of(*observed_, as_given_, of, 0, all)));
    rows.push_back(row_of(name, "first half", "calibrated", pairs_of(*observed_, calibrated_, of, 0, half)));
    rows.push_back(row_of(name, "second half", "as given", pairs_of(*observed_, as_given_, of, half, all)));
    rows.push_back(
        row_of(name, "second half", "calibrated", pairs_of(*observed_, calibrated_, of, half, all)));
  }
  row.set("observed", std::move(rows));
  row.set("prefill_bubble_ms", prefill_bubble_.us() * 1e-3).set("step_bubble_ms", step_bubble_.us() * 1e-3);
}

std::vector<std::string> ServeObserved::notes() const {
  std::vector<std::string> notes;
  for (const auto& [key, found, most, what] :
       {std::tuple{"decode.bubble", step_bubble_, kMostStepBubble, "between tokens"},
        {"prefill.bubble", prefill_bubble_, kMostPrefillBubble, "to the first token"}}) {
    if (found == Time{})
      notes.push_back(
          fmt::format("{} would have to be below 0: without it the service is as slow as the server {}, or "
                      "slower, in the first half",
                      key, what));
    if (found == most)
      notes.push_back(
          fmt::format("{} ends at {}, the most that is tried: the service is still faster than "
                      "the server {} in the first half",
                      key, hw::format(most), what));
  }
  return notes;
}

std::string ServeObserved::csv() const {
  std::string text =
      "request,arrival_s,prompt,output,observed_ttft_ms,ttft_ms,calibrated_ttft_ms,observed_e2e_ms,e2e_ms,"
      "calibrated_e2e_ms\n";
  auto out = std::back_inserter(text);
  for (std::size_t k = 0; k < observed_->times.size(); ++k) {
    const service::Request& request = observed_->trace.requests[k];
    fmt::format_to(out, "{},{:.6f},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f}\n", k,
                   request.arrival.us() * 1e-6, request.prompt, request.output, observed_->times[k].ttft_ms,
                   as_given_[k].ttft_ms, calibrated_[k].ttft_ms, observed_->times[k].e2e_ms,
                   as_given_[k].e2e_ms, calibrated_[k].e2e_ms);
  }
  return text;
}

}  // namespace cm384::studies
