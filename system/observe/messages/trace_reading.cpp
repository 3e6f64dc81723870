#include "system/observe/messages/trace_reading.h"

#include <fmt/format.h>

#include <algorithm>

namespace cm384::observe {

using traces::TrafficDependency;
using traces::TrafficRecord;

void TraceReading::add(const TrafficRecord& r) {
  const std::size_t slot = records_ % traces::kReach;
  if (slot >= die_of_.size()) die_of_.resize(slot + 1);
  const auto polled = [&](const TrafficDependency& d) {
    return d.kind == TrafficDependency::Kind::arrival && die_of_[d.on % traces::kReach] != r.source.number;
  };
  after_polls_ += std::ranges::any_of(r.dependencies, polled) ? 1 : 0;
  die_of_[slot] = r.source.number;
  ++records_;
  of_host_ += r.of_host() ? 1 : 0;
  at_recorded_time_ += r.at_recorded_time() ? 1 : 0;
  through_fabric_ += enters_fabric(r) ? 1 : 0;
  if (r.kind == TrafficRecord::Kind::transfer && r.target != r.source)
    message_us_.add((r.end - r.start).us());
  if (r.words.empty() || (r.kind != TrafficRecord::Kind::launch && r.kind != TrafficRecord::Kind::end))
    return;
  Span& span = kernels_[{r.source, r.words[0]}];
  span.begin = std::min(span.begin, r.start);
  span.end = std::max(span.end, r.end);
}

Json TraceReading::to_json() const {
  const auto brief = [](const Quantiles& of) -> Json {
    return {{"count", of.count()},
            {"mean", of.mean()},
            {"p50", of.at(0.5)},
            {"p99", of.at(0.99)},
            {"max", of.max()}};
  };
  const auto share = [this](std::uint64_t count) {
    return records_ == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(records_);
  };
  Quantiles kernel_us;
  for (const auto& [launch, span] : kernels_) kernel_us.add((span.end - span.begin).us());
  Json all{{"after_polls", share(after_polls_)}};
  if (message_us_.count() != 0) all["message_us"] = brief(message_us_);
  if (kernel_us.count() != 0) all["kernel_us"] = brief(kernel_us);
  Json told = Json::array();
  if (through_fabric_ == 0) told.push_back("nothing enters the fabric: its links and chips change nothing");
  if (at_recorded_time_ != 0)
    told.push_back(fmt::format(
        "{:.1f} % of the records begin at their recorded time, on a faster or slower machine as well",
        100 * share(at_recorded_time_)));
  if (at_recorded_time_ != records_)
    told.push_back(
        "what waits for other records begins earlier or later as these do on the machine of the replay");
  if (of_host_ != 0)
    told.push_back(
        "host threads, streams and kernels are the machine's own: its host, scheduler and SDMA parameters "
        "matter; it needs cores");
  if (after_polls_ != 0)
    told.push_back(fmt::format(
        "{:.1f} % of the records wait for what another die wrote: how often a loop looks for it is as "
        "recorded, and so is what it would have done after a timeout",
        100 * share(after_polls_)));
  told.push_back(
      "which transfers there are, their sizes and targets stay as recorded; computing takes as long as it "
      "did");
  all["replay"] = std::move(told);
  return all;
}

}  // namespace cm384::observe
