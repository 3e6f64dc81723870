#include "workloads/frame/request_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"

namespace cm384::studies {

service::DrawnRequests RequestOptions::drawn(std::uint64_t seed, double rate) const {
  service::DrawnRequests drawn;
  drawn.rate = rate == 0 ? 10 : rate;
  drawn.duration = duration == Time{} ? 60_s : duration;
  drawn.prompt = prompt;
  drawn.output = output;
  drawn.reuse = reuse;
  drawn.block_tokens = block;
  drawn.seed = seed;
  return drawn;
}

service::RequestTrace RequestOptions::load(const StudyContext& context, std::string_view study,
                                           std::uint64_t seed, double rate) const {
  if (requests.empty()) return service::draw_requests(drawn(seed, rate));
  refuse_given(context.given, fmt::format("run {}: ", study), {"prompt", "output", "reuse"},
               "with --requests");
  const service::RequestTrace trace = service::read_requests(requests, block);
  if (!trace.timed)
    throw InputError(
        fmt::format("run {}: --requests: {} does not say when its requests arrived; allowed: a benchmark's "
                    "result with start_times, or --lengths with it",
                    study, requests));
  return service::at_rate(trace, rate, duration);
}

std::string RequestOptions::note_of(const service::RequestTrace& trace) {
  double prompts = 0, outputs = 0;
  for (const service::Request& request : trace.requests) {
    prompts += request.prompt;
    outputs += request.output;
  }
  const auto count = static_cast<double>(trace.requests.size());
  const double rate = service::rate_of(trace);
  // A follower comes when the one before it has been answered: what comes by itself are sessions.
  const bool sessions = std::ranges::any_of(trace.requests, [](const auto& r) { return r.follows >= 0; });
  std::string note = fmt::format(
      "{} requests ({}), {}{:.0f} tokens in and {:.0f} out on the average", trace.requests.size(),
      trace.format, rate > 0 ? fmt::format("{:.2f} {}per second, ", rate, sessions ? "sessions " : "") : "",
      prompts / count, outputs / count);
  if (trace.failed > 0) note += fmt::format("; {} without output tokens left out", trace.failed);
  return note;
}

}  // namespace cm384::studies
