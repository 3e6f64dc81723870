// A traffic trace that a test has made, for replays.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/traffic.h"

namespace cm384 {

struct InMemoryTrace : traces::TrafficSource {
  std::vector<traces::TrafficRecord> records;
  std::size_t at = 0;  // the next record
  traces::TrafficHeader head;

  const traces::TrafficHeader& header() const override { return head; }
  bool next(traces::TrafficRecord& record) override {
    if (at == records.size()) return false;
    record = records[at++];
    return true;
  }
};

}  // namespace cm384
