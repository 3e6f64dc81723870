// What a trace says of itself: how long its messages and kernels took when it was recorded, and what a replay
// of it will and will not answer.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "system/observe/messages/quantiles.h"
#include "traces/traffic.h"

namespace cm384::observe {

class TraceReading {
 public:
  void add(const traces::TrafficRecord& record);
  // `message_us`: from first request to last answer, of transfers to other memory; `kernel_us`: from a
  // launch's first block to its last end, of each die; {count, mean, p50, p99, max}. `after_polls`: share of
  // records that wait for what another die wrote, and so for a loop that looked for it. `replay`: sentences.
  Json to_json() const;

 private:
  struct Span {
    Time begin = Time::never(), end;
  };
  std::uint64_t records_ = 0, of_host_ = 0, at_recorded_time_ = 0, through_fabric_ = 0, after_polls_ = 0;
  Quantiles message_us_;
  std::map<std::pair<traces::Unit, std::uint64_t>, Span> kernels_;  // by die and launch
  std::vector<std::uint16_t> die_of_;                               // of a record, ring over traces::kReach
};

}  // namespace cm384::observe
