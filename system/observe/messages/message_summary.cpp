#include "system/observe/messages/message_summary.h"

#include <bit>
#include <map>

namespace cm384::observe {
namespace {

struct Named {
  const char* name;
  double share;
};
constexpr std::array<Named, 6> kShares{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"max", 1}}};

Json number(std::optional<double> value) {
  return value ? Json(*value) : Json();
}

// Percentiles with their intervals.
Json percentiles(const Quantiles& of) {
  Json all{{"count", of.count()}, {"mean", of.mean()}};
  for (const auto& [name, share] : kShares) {
    if (share == 1) {
      all[name] = of.max();
      continue;
    }
    const Quantiles::Interval interval = of.interval(share);
    all[name] = {{"value", of.at(share)}, {"low", number(interval.low)}, {"high", number(interval.high)}};
  }
  return all;
}

Json brief(const Quantiles& of) {
  return {{"count", of.count()},
          {"mean", of.mean()},
          {"p50", of.at(0.5)},
          {"p99", of.at(0.99)},
          {"max", of.max()}};
}

// The share of values above each, at most 200 points: what a tail curve shows.
Json tail(const Quantiles& of) {
  Json points = Json::array();
  const std::vector<Quantiles::Point> curve = of.curve();
  double last = 2;
  for (std::size_t n = 0; n < curve.size(); ++n) {
    const double above = 1 - (n == 0 ? 0.0 : curve[n - 1].at_most);
    if (above > last * 0.95 && n + 1 != curve.size()) continue;
    last = above;
    points.push_back({curve[n].value, above});
  }
  return points;
}

// In the order of units: dies, then sockets. Of a key, the lower half.
std::uint64_t key_of(traces::Unit unit) {
  return std::uint64_t{unit.cpu} << 16 | unit.number;
}
traces::Unit unit_of(std::uint64_t key) {
  return {(key >> 16 & 1) != 0, static_cast<std::uint16_t>(key)};
}

}  // namespace

void MessageSummary::Group::add(std::uint64_t message_bytes, const Quantiles::Value& latency,
                                const std::optional<Quantiles::Value>& slow) {
  bytes += message_bytes;
  latency_us.add(latency);
  if (slow) slowdown.add(*slow);
}

void MessageSummary::Group::add(const Group& other) {
  bytes += other.bytes;
  latency_us.add(other.latency_us);
  slowdown.add(other.slowdown);
}

Json MessageSummary::Group::to_json() const {
  return {{"bytes", bytes}, {"latency_us", brief(latency_us)}, {"slowdown", brief(slowdown)}};
}

void MessageSummary::add(const Message& m) {
  bytes_ += m.bytes;
  const Quantiles::Value latency((m.end - m.ready).us());
  std::optional<Quantiles::Value> slow;
  if (const auto slowdown = m.slowdown()) slow.emplace(*slowdown);
  latency_us_.add(latency);
  if (slow) slowdown_.add(*slow);
  by_size_[static_cast<int>(std::bit_width(m.bytes)) - 1].add(m.bytes, latency, slow);
  by_hops_[m.parts.hops].add(m.bytes, latency, slow);
  by_level_[m.level].add(m.bytes, latency, slow);
  while (static_cast<std::size_t>(m.ready.ps / slice_ps_) >= kSlices) {
    slice_ps_ *= 2;
    for (std::size_t n = 0; n < by_time_.size(); ++n) {
      Group both = std::move(by_time_[n]);
      if (++n < by_time_.size()) both.add(by_time_[n]);
      by_time_[n / 2] = std::move(both);
    }
    by_time_.resize((by_time_.size() + 1) / 2);
  }
  const auto slice = static_cast<std::size_t>(m.ready.ps / slice_ps_);
  if (slice >= by_time_.size()) by_time_.resize(slice + 1);
  by_time_[slice].add(m.bytes, latency, slow);
  for (std::size_t n = 0; n < kMessageCauses; ++n) cause_us_[n] += static_cast<double>(m.parts.ps[n]) * 1e-6;
  Pair& pair = pairs_[place_of(m.source) << 32 | place_of(m.target)];
  ++pair.count;
  pair.bytes += m.bytes;
  pair.with_form += slow ? 1 : 0;
  pair.slowdown += slow ? slow->value : 0;
  while (pairs_.size() > kMostPairs) join_places();
}

// The first unit of the neighbours.
std::uint64_t MessageSummary::place_of(traces::Unit unit) const {
  return key_of({unit.cpu, static_cast<std::uint16_t>(unit.number / place_units_ * place_units_)});
}

// Two places become one.
void MessageSummary::join_places() {
  place_units_ *= 2;
  // In order, so that sums do not depend on the table's.
  const std::map<std::uint64_t, Pair> before(pairs_.begin(), pairs_.end());
  pairs_.clear();
  for (const auto& [ends, of] : before) {
    Pair& pair = pairs_[place_of(unit_of(ends >> 32)) << 32 | place_of(unit_of(ends))];
    pair.count += of.count;
    pair.bytes += of.bytes;
    pair.with_form += of.with_form;
    pair.slowdown += of.slowdown;
  }
}

Json MessageSummary::to_json() const {
  Json all{{"count", count()},
           {"bytes", bytes_},
           {"without_closed_form", count() - slowdown_.count()},
           {"latency_us", percentiles(latency_us_)},
           {"slowdown", percentiles(slowdown_)}};
  double whole = 0;
  for (const double us : cause_us_) whole += us;
  for (std::size_t n = 0; n < kMessageCauses; ++n)
    all["causes"].push_back({{"name", name_of(static_cast<MessageCause>(n))},
                             {"us", cause_us_[n]},
                             {"share", whole == 0 ? 0.0 : cause_us_[n] / whole}});
  const auto put = [&all](const char* name, Json what, const Group& group) {
    what.update(group.to_json());
    all[name].push_back(std::move(what));
  };
  for (const char* name : {"by_size", "by_hops", "by_time", "pairs"}) all[name] = Json::array();
  for (const auto& [log, group] : by_size_)
    put("by_size", {{"from_bytes", std::uint64_t{1} << log}, {"to_bytes", (std::uint64_t{2} << log) - 1}},
        group);
  for (const auto& [hops, group] : by_hops_) put("by_hops", {{"hops", hops}}, group);
  for (const auto& [level, group] : by_level_) {
    if (by_level_.size() > 1) put("by_level", {{"level", level}}, group);
  }
  for (std::size_t n = 0; n < by_time_.size(); ++n) {
    if (by_time_[n].latency_us.count() == 0) continue;
    const double width = static_cast<double>(slice_ps_) * 1e-6;
    put("by_time",
        {{"from_us", static_cast<double>(n) * width}, {"to_us", static_cast<double>(n + 1) * width}},
        by_time_[n]);
  }
  for (const auto& [ends, pair] : std::map<std::uint64_t, Pair>(pairs_.begin(), pairs_.end()))
    all["pairs"].push_back(
        {{"source", traces::text_of(unit_of(ends >> 32))},
         {"target", traces::text_of(unit_of(ends))},
         {"count", pair.count},
         {"bytes", pair.bytes},
         {"slowdown",
          pair.with_form == 0 ? Json() : Json(pair.slowdown / static_cast<double>(pair.with_form))}});
  if (place_units_ != 1) all["pair_units"] = place_units_;
  all["tail"] = {{"latency_us", tail(latency_us_)}, {"slowdown", tail(slowdown_)}};
  return all;
}

}  // namespace cm384::observe
