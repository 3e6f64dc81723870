// A part of a long trace that stands for all of it.
//
// The trace is cut into windows of equally many records, and these into as many equal parts as windows are
// asked for; of each part one window is drawn, all equally likely. What is measured is a window; what is
// replayed begins some records before it and ends as many behind it, so that its messages meet what they met
// in the whole trace. Runs of records that touch go on without a pause; otherwise the next begins when all
// has ended. A record that waited only for what is left out begins as long after its run's begin as recorded.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "traces/shape.h"
#include "traces/traffic.h"

namespace cm384::traces {

struct SampleOptions {
  int windows = 2;
  std::uint64_t window = 10'000, warm_up = 20'000;  // records
  std::uint64_t seed = 1;
};

struct SamplePlan {
  struct Run {
    std::uint64_t begin = 0, end = 0;  // records of the trace: [begin, end)
  };
  std::uint64_t records = 0;  // of the trace
  std::vector<Run> measured;  // windows, rising
  std::vector<Run> replayed;  // apart from each other, rising
  std::uint64_t replayed_records() const;
};

// Throws InputError, naming options, where the trace is too short for a sample to be less work.
SamplePlan plan_sample(std::uint64_t records, const SampleOptions& options);

// Counts records by the index of a binary file, or by reading a CSV.
std::uint64_t count_records(const std::string& path);

class SampledTrace final : public TrafficSource {
 public:
  // The plan outlives it.
  SampledTrace(const std::string& path, const SamplePlan& plan);
  ~SampledTrace() override;

  const TrafficHeader& header() const override { return shaped_->header(); }
  bool next(TrafficRecord& record) override;

  // Where a record comes from.
  struct Origin {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t record = kNone;  // number in the trace; kNone: a pause
    int run = 0;                   // that it is replayed in
    int window = -1;               // that it is measured in; -1: none
    bool cut = false;              // all it waited for was left out
  };
  // The first of the records that were handed out and not yet dropped.
  const Origin& front() const { return origins_.front(); }
  void drop() { origins_.pop_front(); }

 private:
  class Runs;
  const SamplePlan& plan_;
  Runs* runs_ = nullptr;  // of shaped_
  std::unique_ptr<ShapedTrace> shaped_;
  std::size_t window_ = 0;  // that is measured next
  std::deque<Origin> origins_;
};

}  // namespace cm384::traces
