#include "workloads/service/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace cm384::service {

Service::Service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                 const ServiceOptions& options)
    : run_(trace, deployment, options),
      pools_(run_, library, [this](std::uint32_t request) { complete(request); }),
      faults_(run_, pools_),
      sample_every_(options.sample) {}

ServiceResult Service::run() {
  begin();
  while (!is_done()) advance();
  return finish();
}

void Service::begin() {
  link_followers();
  faults_.schedule();
  schedule_arrival();
  if (run_.deployment.scale.acts()) run_.events.push(run_.deployment.scale.interval, Event::Kind::scale, 0);
}

void Service::advance() {
  constexpr std::uint64_t kBetweenProgress = 4096;
  if (run_.options.progress && events_++ % kBetweenProgress == 0)
    run_.options.progress(share_done(), run_.now());
  const Time at = run_.events.next_at();
  sample_until(at);
  result_.request_seconds += static_cast<double>(in_system_) * seconds(at - run_.now());
  handle(run_.events.pop());
}

ServiceResult Service::finish() {
  result_.complete = run_.events.empty();
  if (result_.complete && in_system_ != 0)
    throw std::logic_error(fmt::format("{} requests never ended", in_system_));
  result_.end = last_done_;
  pools_.add_to(result_);
  run_.evidence.add_to(result_);
  result_.degraded_s = faults_.degraded_s(result_.end);
  result_.gaps = run_.gaps.release();
  result_.evidence_of = run_.latencies.release();
  result_.served = run_.requests.release();
  return std::move(result_);
}

double Service::share_done() const {
  const auto ended = static_cast<std::int64_t>(arrivals_) - in_system_;
  return static_cast<double>(ended) / std::max(1u, run_.requests.size());
}

bool Service::is_interrupted() const {
  return run_.options.interrupted != nullptr && *run_.options.interrupted != 0;
}

// Arrivals are taken from the trace one after another; those that follow others come when these have ended.
void Service::schedule_arrival() {
  while (next_ < run_.requests.size() && run_.trace.requests[next_].follows >= 0) ++next_;
  if (next_ == run_.requests.size()) return;
  run_.events.push(run_.trace.requests[next_].arrival, Event::Kind::arrival,
                   static_cast<std::uint32_t>(next_));
  ++next_;
}

void Service::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::arrival:
      return arrive(event.subject);
    case Event::Kind::prefill_done:
      return pools_.complete_batch(event.subject, event.epoch);
    case Event::Kind::transferred:
      return pools_.complete_transfer(event.subject, event.epoch);
    case Event::Kind::step_done:
      return pools_.complete_step(event.subject, event.epoch);
    case Event::Kind::scale:
      pools_.scale();
      // As long as anything is to come.
      if (arrivals_ == run_.requests.size() && in_system_ == 0) return pools_.end_scaling();
      run_.events.push(run_.now() + run_.deployment.scale.interval, Event::Kind::scale, 0);
      return;
    case Event::Kind::scaled_up:
      return pools_.complete_start(event.subject != 0);
    case Event::Kind::mixed_done:
      return pools_.complete_mixed(event.subject, event.epoch != 0);
    case Event::Kind::swapped_in:
      return pools_.complete_return(event.subject);
    default:
      return faults_.handle(event);
  }
}

void Service::arrive(std::uint32_t request) {
  ++in_system_;
  ++arrivals_;
  if (run_.requests.request(request).follows < 0) schedule_arrival();
  pools_.enqueue(request);
}

void Service::complete(std::uint32_t request) {
  if (run_.requests.state(request) == RequestState::done) last_done_ = run_.now();
  --in_system_;
  if (first_follower_.empty()) return;
  for (std::uint32_t k = first_follower_[request]; k != kNobody; k = next_follower_[k])
    run_.events.push(run_.now() + run_.requests.request(k).arrival, Event::Kind::arrival, k);
}

void Service::link_followers() {
  if (std::ranges::none_of(run_.trace.requests, [](const Request& r) { return r.follows >= 0; })) return;
  first_follower_.assign(run_.requests.size(), kNobody);
  next_follower_.assign(run_.requests.size(), kNobody);
  for (std::uint32_t k = run_.requests.size(); k-- > 0;) {
    const std::int32_t before = run_.requests.request(k).follows;
    if (before < 0) continue;
    next_follower_[k] = first_follower_[static_cast<std::size_t>(before)];
    first_follower_[static_cast<std::size_t>(before)] = k;
  }
}

// Nothing changes between two events: samples are taken when the later one is known. Of more than fit, every
// other one is dropped, and from then on half as many are taken.
void Service::sample_until(Time end) {
  if (sample_every_ == Time{} || (in_system_ == 0 && arrivals_ == run_.requests.size())) return;
  for (; next_sample_ < end; next_sample_ += sample_every_) {
    std::vector<Occupancy>& kept = result_.occupancy;
    if (kept.size() == kMostOccupancies) {
      for (std::size_t k = 0; k < kept.size() / 2; ++k) kept[k] = kept[2 * k];
      kept.resize(kept.size() / 2);
      sample_every_ += sample_every_;
    }
    Occupancy& sample = kept.emplace_back();
    sample.at = next_sample_;
    sample.out_of_order = faults_.out_of_order();
    pools_.set_occupancy(sample);
  }
}

}  // namespace cm384::service
