// The observers of a run's machines, which write files beside its result: `--record`, `--timeline`, `--wave`,
// `--profile`; and what explains it.
//
// A study may build several machines, one after another; the first one's file has the name asked for, those
// after it get a number before its ending: dispatch.trace, dispatch-2.trace.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "system/machine/rtl_chips.h"
#include "system/machine/supernode.h"
#include "system/observe/explain/explainer.h"
#include "system/observe/line_profile.h"
#include "system/observe/timeline.h"
#include "system/observe/traffic_recorder.h"
#include "system/observe/wave.h"
#include "traces/traffic.h"

namespace cm384::observe {

struct ObserverRequest {
  std::string record, timeline, wave;           // files; empty: not asked for
  observe::TimelineOptions shown;               // of the timeline
  std::vector<supernode::LinkSelection> links;  // of the wave
  std::string study, machine;
  bool explain = false;
  bool span = false;  // of an explanation nothing else; not beside one
  std::string lines;  // folder of the profile by source line; empty: not asked for

  bool any() const {
    return explain || span || !record.empty() || !timeline.empty() || !wave.empty() || !lines.empty();
  }
};

class Observers {
 public:
  // Throws OutputError if a file that is asked for cannot be written.
  explicit Observers(ObserverRequest request);

  // What is asked for.
  const ObserverRequest& request() const { return request_; }

  // What a kernel's phases are called, from 0; of the machine that was attached last.
  void name_phases(std::string_view kernel, std::span<const std::string_view> names);

  // Attaches the observers to a machine, before its first launch. Waves of its RTL chips are written beside
  // the wave and end with it.
  void attach(supernode::Supernode& machine, supernode::RtlChips& chips);
  // It has ended, while it still stands: puts its files under their names. What fails is kept for rethrow():
  // the rows of the run come first.
  void finish();
  // Throws the OutputError of the first file that could not be written, if any.
  void rethrow() const;
  // Discards what was observed so far on the machine that was attached last: it was warm-up.
  void begin_counted();
  // One for each machine that has ended.
  const std::vector<Explanation>& explanations() const { return explanations_; }
  const std::vector<double>& spans_us() const { return spans_us_; }
  // The profiles by source line, likewise.
  const std::vector<LineReport>& line_reports() const { return line_reports_; }
  // Whether a machine was ever watched.
  bool used() const { return machines_ > 0; }

 private:
  ObserverRequest request_;
  int machines_ = 0;
  std::unique_ptr<traces::TrafficSink> trace_;
  std::unique_ptr<observe::TrafficRecorder> recorder_;
  std::unique_ptr<observe::Timeline> timeline_;
  std::unique_ptr<observe::Wave> wave_;
  std::unique_ptr<Explainer> explainer_;
  std::vector<Explanation> explanations_;
  std::unique_ptr<SpanWatch> span_;
  std::vector<double> spans_us_;
  std::unique_ptr<LineProfile> lines_;
  std::vector<LineReport> line_reports_;
  supernode::RtlChips* chips_ = nullptr;
  std::exception_ptr failure_;
};

// The name of the file of machine `number`, from 1.
std::string numbered(const std::string& path, int number);
// The name without its ending: `out/links` of out/links.vcd.gz.
std::string stem_of(const std::string& path);

}  // namespace cm384::observe
