#include "workloads/frame/lane_timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "system/observe/trace_time.h"

namespace cm384::studies {
namespace {

Time whole_ns(Time t) {
  return Time{(t.ps + 500) / 1000 * 1000};
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
  event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", pid, name));
  event(
      fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", pid));
}

void LaneTimeline::lane(int pid, int tid, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", pid, tid,
                    name));
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
  std::string text = fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":)", name, pid, tid);
  observe::append_us(text, begin);
  text += R"(,"dur":)";
  observe::append_us(text, end - begin);
  event(fmt::format(R"({},"args":{{{}}}}})", text, arguments));
}

void LaneTimeline::finish() {
  file_.write(text_);
  file_.write("\n]}\n");
  file_.finish();
}

}  // namespace cm384::studies
