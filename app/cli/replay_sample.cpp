#include "app/cli/replay_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/error.h"

namespace cm384::cli {
namespace {

// Of what is measured, at most so much may have waited for nothing but what was left out.
constexpr double kMostCut = 0.05;

}  // namespace

ReplaySample::ReplaySample(const std::string& path, const SamplingOptions& options)
    : path_(path),
      options_(options),
      plan_(traces::plan_sample(traces::count_records(path),
                                {options.sample, static_cast<std::uint64_t>(options.window),
                                 static_cast<std::uint64_t>(options.warm_up), options.seed.value()})) {}

host::TrafficUnits ReplaySample::units() const {
  struct Read final : traces::TrafficSource {
    using SampledTrace = traces::SampledTrace;
    explicit Read(SampledTrace& from) : trace(from) {}
    const traces::TrafficHeader& header() const override { return trace.header(); }
    bool next(traces::TrafficRecord& record) override {
      if (!trace.next(record)) return false;
      trace.drop();
      return true;
    }
    SampledTrace& trace;
  };
  traces::SampledTrace trace(path_, plan_);
  Read read(trace);
  return host::units_of(read);
}

traces::TrafficSource& ReplaySample::open() {
  trace_ = std::make_unique<traces::SampledTrace>(path_, plan_);
  return *trace_;
}

bool ReplaySample::message(host::ReplayedMessage& message) {
  const traces::SampledTrace::Origin& origin = trace_->front();
  message.number = origin.record;
  if (origin.window < 0) return false;
  if (message.recorded.target != message.recorded.source)
    latency_us_.add(origin.window, (message.end - message.ready).us());
  return true;
}

void ReplaySample::finished(Time start) {
  const traces::SampledTrace::Origin origin = trace_->front();
  trace_->drop();
  if (origin.record == traces::SampledTrace::Origin::kNone) return;
  if (origin.run != run_) {
    run_ = origin.run;
    run_begin_ = start;
    warm_.resize(static_cast<std::size_t>(run_) + 1);
  }
  run_begin_ = std::min(run_begin_, start);
  if (origin.window < 0) return;
  ++measured_;
  cut_ += origin.cut ? 1 : 0;
  // Before the first record of all there is nothing that a window could miss.
  const auto run = static_cast<std::size_t>(run_);
  if (warm_[run] || plan_.replayed[run].begin == 0) return;
  warm_[run] = true;
  shortest_ = std::min(shortest_, start - run_begin_);
}

Json ReplaySample::result() const {
  if (latency_us_.windows() < 2)
    throw InputError(
        fmt::format("--sample: {} of {} windows have messages to other memory; allowed: 2 or more",
                    latency_us_.windows(), options_.sample));
  const double cut = static_cast<double>(cut_) / static_cast<double>(measured_);
  if (cut > kMostCut)
    throw InputError(
        fmt::format("--warm-up: {} records; {:.0f} % of what is measured waited only for what was "
                    "before these; allowed: {:.0f} %",
                    options_.warm_up, 100 * cut, 100 * kMostCut));
  const double longest = latency_us_.at(0.99);
  if (shortest_ != Time::never() && shortest_.us() < longest)
    throw InputError(
        fmt::format("--warm-up: {} records, which pass within {:.2f} us; allowed: more than 99 % of the "
                    "messages take, {:.2f} us",
                    options_.warm_up, shortest_.us(), longest));
  Json all{{"windows", options_.sample},
           {"window_records", options_.window},
           {"warm_up_records", options_.warm_up},
           {"seed", options_.seed.seed},
           {"trace_records", plan_.records},
           {"replayed_records", plan_.replayed_records()},
           {"measured_records", measured_},
           {"with_messages", latency_us_.windows()},
           {"begin_as_recorded", cut}};
  if (shortest_ != Time::never()) all["warm_up_us"] = shortest_.us();
  all["latency_us"] = latency_us_.to_json(options_.sample);
  return all;
}

std::string text_of_sample(const Json& sample) {
  std::string text =
      fmt::format("\n{} windows of {} records, {:.2g} % of the trace; {:.2g} % replayed\n{:<12}",
                  sample["windows"].get<int>(), sample["window_records"].get<int>(),
                  100 * sample["measured_records"].get<double>() / sample["trace_records"].get<double>(),
                  100 * sample["replayed_records"].get<double>() / sample["trace_records"].get<double>(), "");
  std::string values = fmt::format("\n{:<12}", "latency_us"), intervals = fmt::format("\n{:<12}", "  95 %");
  const auto end = [](const Json& at) {
    return at.is_null() ? "-" : fmt::format("{:.4g}", at.get<double>());
  };
  for (const auto& [name, estimate] : sample["latency_us"].items()) {
    if (!estimate.is_object()) continue;
    text += fmt::format("{:>16}", name);
    values += fmt::format("{:>16.3f}", estimate["value"].get<double>());
    intervals += fmt::format("{:>16}", fmt::format("{}..{}", end(estimate["low"]), end(estimate["high"])));
  }
  return text + values + intervals + "\n";
}

}  // namespace cm384::cli
