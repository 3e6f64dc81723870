#include "workloads/service/study/serve_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace cm384::studies {

using service::Activity;

ServeTimeline::ServeTimeline(const std::string& path, const observe::TimelineOptions& window, int requests)
    : lanes_(path, window), requests_(requests) {}

void ServeTimeline::add(const Activity& activity) {
  if (activity.end > lanes_.from() && activity.begin < lanes_.to()) activities_.push_back(activity);
}

// From its arrival on it is always in one of these.
void ServeTimeline::request(std::uint32_t k, const service::Request& request, const service::Served& served) {
  const int tid = static_cast<int>(k);
  lanes_.lane(kRequests, tid, fmt::format("request {}", k));
  const std::string size = fmt::format(R"("prompt":{},"output":{},"cached":{},"restarts":{})", request.prompt,
                                       request.output, served.cached(), served.restarts);
  lanes_.slice(kRequests, tid, served.restarts > 0 ? "queue, lost attempts" : "queue", served.arrival,
               served.prefill_start, size);
  lanes_.slice(kRequests, tid, "prefill", served.prefill_start, served.first_token,
               fmt::format(R"("instance":{})", served.instance));
  if (served.die < 0) return;
  const std::string die = fmt::format(R"("die":{})", served.die);
  lanes_.slice(kRequests, tid, served.preemptions > 0 ? "decode, preempted" : "wait for decode",
               served.first_token, served.transfer_start);
  lanes_.slice(kRequests, tid, "transfer", served.transfer_start, served.transferred, die);
  lanes_.slice(kRequests, tid, "decode", served.transferred, served.done,
               fmt::format(R"({},"steps":{})", die, served.steps));
}

void ServeTimeline::activity(const Activity& a) {
  const int pid = a.prefill ? kPrefill : kDecode;
  const char* lost = a.lost ? ", lost" : "";
  switch (a.kind) {
    case Activity::Kind::batch:
      lanes_.slice(pid, a.instance, fmt::format("batch{}", lost), a.begin, a.end,
                   fmt::format(R"("prompts":{},"tokens":{})", a.requests, a.tokens));
      break;
    case Activity::Kind::step:
      lanes_.slice(pid, a.instance, fmt::format("step{}", lost), a.begin, a.end,
                   fmt::format(R"("requests":{},"tokens_each":{})", a.requests, a.tokens));
      break;
    case Activity::Kind::away:
      lanes_.slice(pid, a.instance, "away", a.begin, a.end);
      break;
    case Activity::Kind::transfer:
      break;
  }
}

int ServeTimeline::finish(const service::RequestTrace& trace, const service::ServiceResult& result,
                          const service::Deployment& deployment) {
  std::vector<std::uint32_t> shown;
  for (std::uint32_t k = 0; k < result.served.size(); ++k)
    if (result.served[k].arrival >= lanes_.from() && result.served[k].arrival < lanes_.to() &&
        result.served[k].state != service::RequestState::refused)
      shown.push_back(k);
  std::ranges::stable_sort(shown, {}, [&](std::uint32_t k) { return result.served[k].arrival; });
  shown.resize(std::min(shown.size(), static_cast<std::size_t>(requests_)));
  std::ranges::stable_sort(activities_, {}, &Activity::begin);
  // Instances are shown for as long as the last of these is there.
  Time last = lanes_.from();
  for (const std::uint32_t k : shown) last = std::max(last, result.served[k].done);
  lanes_.end_at(last);
  lanes_.process(kRequests, "requests");
  lanes_.process(kPrefill, "prefill instances");
  lanes_.process(kLinks, "transfer links");
  lanes_.process(kDecode, "decode instances");
  const std::set<std::uint32_t> chosen(shown.begin(), shown.end());
  for (const std::uint32_t k : shown) request(k, trace.requests[k], result.served[k]);
  std::set<std::pair<int, int>> named;  // by pid and lane
  for (const Activity& a : activities_) {
    const bool link = a.kind == Activity::Kind::transfer;
    if (a.begin >= lanes_.to() || (link && !chosen.contains(a.request))) continue;
    const int pid = link ? kLinks : a.prefill ? kPrefill : kDecode;
    const int tid = link ? a.instance * deployment.decode_dies() + a.die : a.instance;
    if (named.emplace(pid, tid).second)
      lanes_.lane(pid, tid, link ? fmt::format("into die {}", tid) : fmt::format("instance {}", tid));
    if (link)
      lanes_.slice(pid, tid, fmt::format("request {}", a.request), a.begin, a.end);
    else
      activity(a);
  }
  lanes_.finish();
  return static_cast<int>(shown.size());
}

}  // namespace cm384::studies
