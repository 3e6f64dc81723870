#include "workloads/frame/lane_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/error.h"
#include "system/observe/observers.h"
#include "system/observe/trace_time.h"

namespace cm384::studies {
namespace {

Time whole_ns(Time t) {
  return t == Time::never() ? t : Time{(t.ps + 500) / 1000 * 1000};
}

// Names may be a user's.
std::string quoted(std::string_view name) {
  return nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

LaneTimeline::LaneTimeline(const std::string& path, const observe::TimelineOptions& window)
    : file_(path, OutputFile::Compression::by_name), from_(window.from), to_(window.to) {}

void LaneTimeline::event(const std::string& text) {
  constexpr std::size_t kBuffer = std::size_t{1} << 20;
  text_ += first_ ? "\n" : ",\n";
  text_ += text;
  first_ = false;
  if (text_.size() < kBuffer) return;
  file_.write(text_);
  text_.clear();
}

void LaneTimeline::process(int pid, std::string_view name) {
  event(
      fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", pid, quoted(name)));
  event(
      fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", pid));
}

void LaneTimeline::lane(int pid, int tid, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", pid, tid,
                    quoted(name)));
  event(fmt::format(
      R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})", pid,
      tid));
}

void LaneTimeline::slice(int pid, int tid, std::string_view name, Time begin, Time end,
                         const std::string& arguments) {
  begin = std::max(begin, from_);
  end = std::min(end, to_);
  if (end <= begin) return;
  // Both ends are rounded: where one slice ends the next begins.
  begin = whole_ns(begin);
  end = whole_ns(end);
  std::string text = fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":)", quoted(name), pid, tid);
  observe::append_us(text, begin);
  text += R"(,"dur":)";
  observe::append_us(text, end - begin);
  event(fmt::format(R"({},"args":{{{}}}}})", text, arguments));
}

void LaneTimeline::counter(int pid, std::string_view name, Time at, std::int64_t value) {
  if (at >= to_) return;
  std::string text = fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":)", quoted(name), pid);
  observe::append_us(text, whole_ns(std::max(at, from_)));
  event(fmt::format(R"({},"args":{{"value":{}}}}})", text, value));
}

void LaneTimeline::finish() {
  file_.write(text_);
  file_.write("\n]}\n");
  file_.finish();
}

bool wants_lanes(const StudyContext& context) {
  if (context.observers == nullptr) return false;
  const observe::ObserverRequest& asked = context.observers->request();
  return !asked.timeline.empty() && !asked.explain && asked.record.empty() && asked.wave.empty() &&
         asked.shown.dies.empty() && asked.shown.cores.empty();
}

std::optional<LaneTimeline> open_own_timeline(StudyContext& context, std::string_view study,
                                              std::string_view shows) {
  if (context.observers == nullptr || context.observers->request().timeline.empty()) return {};
  if (!wants_lanes(context))
    throw InputError(
        fmt::format("run {}: --timeline shows {}; allowed: without --explain, --record, --wave, "
                    "--timeline-dies and --timeline-cores",
                    study, shows));
  const observe::ObserverRequest& asked = context.observers->request();
  context.observers = nullptr;
  return std::optional<LaneTimeline>(std::in_place, asked.timeline, asked.shown);
}

Time time_of_seconds(double seconds) {
  const double ps = seconds * 1e12;
  return ps < static_cast<double>(Time::never().ps) ? Time{std::llround(ps)} : Time::never();
}

}  // namespace cm384::studies
