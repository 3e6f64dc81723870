// `--sample` of `cm384 trace replay`: windows in place of the whole trace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/common_options.h"
#include "base/text/json.h"
#include "system/host/replay.h"
#include "system/observe/messages/sample_estimate.h"
#include "traces/sample.h"

namespace cm384::cli {

struct SamplingOptions {
  int sample = 0, window = 10'000, warm_up = 20'000;
  SeedOption seed;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using studies::Needs;
    using studies::Range;
    visit("sample", self.sample, Range{2, 100'000},
          "replay so many windows, drawn one out of each of equal parts of the trace, and tell how long its "
          "messages take with confidence");
    visit("window", self.window, Range{1, 100'000'000}, "records of a window", Needs{"sample", {}});
    visit("warm-up", self.warm_up, Range{0, 100'000'000},
          "records replayed before each window and behind it, and not counted", Needs{"sample", {}});
    SeedOption::describe(self.seed, visit);
  }
};

class ReplaySample {
 public:
  // Throws InputError where the trace is too short.
  ReplaySample(const std::string& path, const SamplingOptions& options);

  host::TrafficUnits units() const;  // of the windows
  // What is replayed.
  traces::TrafficSource& open();
  // Of a transfer, before finished() for its record: whether it is measured. Its number becomes the trace's.
  bool message(host::ReplayedMessage& message);
  void finished(Time start);

  // `sample` of result.json. Throws InputError where the windows do not stand for the trace: too few have
  // messages, or the warm-up is too short for what the messages take.
  Json result() const;

 private:
  std::string path_;
  SamplingOptions options_;
  traces::SamplePlan plan_;
  std::unique_ptr<traces::SampledTrace> trace_;
  observe::SampleEstimate latency_us_;
  std::uint64_t measured_ = 0, cut_ = 0;  // records
  int run_ = -1;
  Time run_begin_;
  std::vector<bool> warm_;         // by run: something of it is measured
  Time shortest_ = Time::never();  // warm-up
};

std::string text_of_sample(const Json& sample);

}  // namespace cm384::cli
