// Lanes of slices as Chrome trace JSON, which Perfetto and chrome://tracing read, of what no single machine's
// timeline has: the requests of a service, the layers of a decode step, the passes of a training step, jobs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "system/observe/timeline.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

class LaneTimeline {
 public:
  // Opens the file. Throws OutputError.
  LaneTimeline(const std::string& path, const observe::TimelineOptions& window);

  Time from() const { return from_; }
  Time to() const { return to_; }
  // Nothing is shown from `to` on, if that is earlier than the window's end.
  void end_at(Time to) { to_ = to < to_ ? to : to_; }

  // Processes and their lanes are shown by rising number.
  void process(int pid, std::string_view name);
  void lane(int pid, int tid, std::string_view name);
  // Cut to the window; `arguments`: JSON within braces.
  void slice(int pid, int tid, std::string_view name, Time begin, Time end,
             const std::string& arguments = {});
  // A curve of the process; the value holds until the next one.
  void counter(int pid, std::string_view name, Time at, std::int64_t value);
  // Throws OutputError.
  void finish();

 private:
  void event(const std::string& text);

  OutputFile file_;
  Time from_, to_;
  std::string text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  bool first_ = true;
};

// Whether a timeline is asked for and nothing else that looks at a machine.
bool wants_lanes(const StudyContext& context);

// The timeline of a study that writes its own, if it is asked for; then `context` has no observers. Throws
// InputError where something else that looks at a machine is asked for; `shows`: what the timeline does.
std::optional<LaneTimeline> open_own_timeline(StudyContext& context, std::string_view study,
                                              std::string_view shows);

// A time within the range of a timeline: 106 days.
Time time_of_seconds(double seconds);

}  // namespace cm384::studies
