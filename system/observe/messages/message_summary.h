// A summary of the messages of a replay, in constant memory: percentiles with confidence, slowdown by size,
// by distance, by time, by pair and by service level, and what their time was spent on.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/text/json.h"
#include "system/observe/messages/message_times.h"
#include "system/observe/messages/quantiles.h"
#include "traces/traffic.h"

namespace cm384::observe {

struct Message {
  std::uint64_t record = 0;
  traces::Unit source, target;
  sim::Operation operation{};
  std::uint64_t bytes = 0;
  int level = 0;  // of service
  Time ready, start, end;
  std::optional<Time> unloaded;
  MessageParts parts;
  // Empty without a closed form.
  std::optional<double> slowdown() const {
    if (!unloaded || unloaded->ps == 0) return std::nullopt;
    return static_cast<double>((end - ready).ps) / static_cast<double>(unloaded->ps);
  }
};

class MessageSummary {
 public:
  void add(const Message& message);
  std::uint64_t count() const { return latency_us_.count(); }
  // `messages` of result.json, as docs/trace-studies.md describes it.
  Json to_json() const;

 private:
  struct Group {
    std::uint64_t bytes = 0;
    Quantiles latency_us, slowdown;
    void add(std::uint64_t message_bytes, const Quantiles::Value& latency,
             const std::optional<Quantiles::Value>& slow);
    void add(const Group& other);
    Json to_json() const;
  };
  struct Pair {
    std::uint64_t count = 0, bytes = 0, with_form = 0;
    double slowdown = 0;  // sum
  };
  static constexpr std::size_t kSlices = 64;  // of time, at most
  static constexpr std::size_t kMostPairs = 1u << 16;

  std::uint64_t place_of(traces::Unit unit) const;
  void join_places();

  std::uint64_t bytes_ = 0;
  Quantiles latency_us_, slowdown_;
  std::map<int, Group> by_size_;  // by floor(log2(bytes))
  std::map<int, Group> by_hops_;
  std::map<int, Group> by_level_;
  std::vector<Group> by_time_;  // by when it was ready
  std::int64_t slice_ps_ = 1'000'000;
  // By the places of both ends: so many neighbours each, that there are not too many pairs.
  unsigned place_units_ = 1;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::array<double, kMessageCauses> cause_us_{};
};

}  // namespace cm384::observe
