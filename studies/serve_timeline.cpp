#include "studies/serve_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace cm384::studies {

using service::Activity;

ServeTimeline::ServeTimeline(const std::string& path, const observe::TimelineOptions& window, int requests)
    : file_(path, OutputFile::Compression::by_name),
      from_(window.from),
      to_(window.to),
      requests_(requests) {}

void ServeTimeline::add(const Activity& activity) {
  if (activity.end > from_ && activity.begin < to_) activities_.push_back(activity);
}

void ServeTimeline::event(const std::string& text) {
  constexpr std::size_t kBuffer = std::size_t{1} << 20;
  text_ += first_ ? "\n" : ",\n";
  text_ += text;
  first_ = false;
  if (text_.size() < kBuffer) return;
  file_.write(text_);
  text_.clear();
}

void ServeTimeline::process(int pid, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", pid, name));
  event(
      fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", pid));
}

void ServeTimeline::lane(int pid, int tid, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", pid, tid,
                    name));
  event(fmt::format(
      R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})", pid,
      tid));
}

void ServeTimeline::slice(int pid, int tid, std::string_view name, Time begin, Time end,
                          const std::string& arguments) {
  begin = std::max(begin, from_);
  end = std::min(end, to_);
  if (end <= begin) return;
  event(fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                    name, pid, tid, begin.us(), (end - begin).us(), arguments));
}

// From its arrival on it is always in one of these.
void ServeTimeline::request(std::uint32_t k, const service::Request& request, const service::Served& served) {
  const int tid = static_cast<int>(k);
  lane(kRequests, tid, fmt::format("request {}", k));
  const std::string size = fmt::format(R"("prompt":{},"output":{},"cached":{},"restarts":{})", request.prompt,
                                       request.output, served.cached(), served.restarts);
  slice(kRequests, tid, served.restarts > 0 ? "queue, lost attempts" : "queue", served.arrival,
        served.prefill_start, size);
  slice(kRequests, tid, "prefill", served.prefill_start, served.first_token,
        fmt::format(R"("instance":{})", served.instance));
  if (served.die < 0) return;
  const std::string die = fmt::format(R"("die":{})", served.die);
  slice(kRequests, tid, "wait for decode", served.first_token, served.transfer_start);
  slice(kRequests, tid, "transfer", served.transfer_start, served.transferred, die);
  slice(kRequests, tid, "decode", served.transferred, served.done,
        fmt::format(R"({},"steps":{})", die, served.steps));
}

void ServeTimeline::activity(const Activity& a) {
  const int pid = a.prefill ? kPrefill : kDecode;
  const char* lost = a.lost ? ", lost" : "";
  switch (a.kind) {
    case Activity::Kind::batch:
      slice(pid, a.instance, fmt::format("batch{}", lost), a.begin, a.end,
            fmt::format(R"("prompts":{},"tokens":{})", a.requests, a.tokens));
      break;
    case Activity::Kind::step:
      slice(pid, a.instance, fmt::format("step{}", lost), a.begin, a.end,
            fmt::format(R"("requests":{},"tokens_each":{})", a.requests, a.tokens));
      break;
    case Activity::Kind::away:
      slice(pid, a.instance, "away", a.begin, a.end);
      break;
    case Activity::Kind::transfer:
      break;
  }
}

int ServeTimeline::finish(const service::RequestTrace& trace, const service::ServiceResult& result,
                          const service::Deployment& deployment) {
  std::vector<std::uint32_t> shown;
  for (std::uint32_t k = 0; k < result.served.size(); ++k)
    if (result.served[k].arrival >= from_ && result.served[k].arrival < to_) shown.push_back(k);
  std::ranges::stable_sort(shown, {}, [&](std::uint32_t k) { return result.served[k].arrival; });
  shown.resize(std::min(shown.size(), static_cast<std::size_t>(requests_)));
  std::ranges::stable_sort(activities_, {}, &Activity::begin);
  // Instances are shown for as long as the last of these is there.
  Time last = from_;
  for (const std::uint32_t k : shown) last = std::max(last, result.served[k].done);
  to_ = std::min(to_, last);
  text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  process(kRequests, "requests");
  process(kPrefill, "prefill instances");
  process(kLinks, "transfer links");
  process(kDecode, "decode instances");
  const std::set<std::uint32_t> chosen(shown.begin(), shown.end());
  for (const std::uint32_t k : shown) request(k, trace.requests[k], result.served[k]);
  std::set<std::pair<int, int>> named;  // by pid and lane
  for (const Activity& a : activities_) {
    const bool link = a.kind == Activity::Kind::transfer;
    if (a.begin >= to_ || (link && !chosen.contains(a.request))) continue;
    const int pid = link ? kLinks : a.prefill ? kPrefill : kDecode;
    const int tid = link ? a.instance * deployment.decode_dies() + a.die : a.instance;
    if (named.emplace(pid, tid).second)
      lane(pid, tid, link ? fmt::format("into die {}", tid) : fmt::format("instance {}", tid));
    if (link)
      slice(pid, tid, fmt::format("request {}", a.request), a.begin, a.end);
    else
      activity(a);
  }
  file_.write(text_);
  file_.write("\n]}\n");
  file_.finish();
  return static_cast<int>(shown.size());
}

}  // namespace cm384::studies
