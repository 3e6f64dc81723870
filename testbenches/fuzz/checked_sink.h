// Takes the records of an importer and checks that each is good: an importer may refuse its file, but not
// write what a replay would refuse.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "traces/traffic.h"

namespace cm384::fuzz {

class CheckedSink final : public traces::TrafficSink {
 public:
  void add(const traces::TrafficRecord& record) override {
    if (!traces::fault_of(record, records_++).empty()) std::abort();
  }
  void finish() override {}

 private:
  std::uint64_t records_ = 0;
};

}  // namespace cm384::fuzz
