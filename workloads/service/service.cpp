#include "workloads/service/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/text/error.h"
#include "traces/fixed_math.h"

namespace cm384::service {

Service::Service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                 const ServiceOptions& options)
    : trace_(trace),
      deployment_(deployment),
      options_(options),
      prefill_times_(deployment, library),
      steps_(library, deployment.decode_dies(), deployment.decode.mtp),
      pool_({deployment.cache.servers, blocks_of(deployment.cache.dram), blocks_of(deployment.cache.evs),
             blocks_of(deployment.cache.obs)}),
      prefill_(static_cast<std::size_t>(deployment.prefill.instances)),
      stepping_(static_cast<std::size_t>(deployment.decode.instances)),
      step_samples_(options.step_samples, options.seed) {
  for (int k = 0; k < deployment.decode.instances; ++k)
    decode_.emplace_back(deployment.decode, options.seed, k);
  result_.served.resize(trace.requests.size());
}

ServiceResult Service::run() {
  for (std::size_t k = 0; k < trace_.requests.size(); ++k) {
    const Request& request = trace_.requests[k];
    if (request.follows >= 0) followers_.emplace(request.follows, static_cast<std::uint32_t>(k));
  }
  plan_faults();
  next_arrival();
  sample_every_ = options_.sample;
  constexpr std::uint64_t kBetweenProgress = 4096;
  for (std::uint64_t events = 0; !events_.empty(); ++events) {
    if (options_.progress && events % kBetweenProgress == 0) options_.progress(share_done(), now_);
    if (options_.interrupted != nullptr && *options_.interrupted != 0) {
      result_.complete = false;
      return std::move(result_);
    }
    const Event event = events_.next();
    sample_until(event.at);
    result_.request_seconds += static_cast<double>(in_system_) * seconds(event.at - now_);
    now_ = event.at;
    take(event);
  }
  if (in_system_ != 0) throw std::logic_error(fmt::format("{} requests never ended", in_system_));
  result_.end = last_done_;
  sum_pools();
  result_.cache = pool_.counts();
  result_.steps_drawn = step_samples_.take();
  return std::move(result_);
}

std::int64_t Service::blocks_of(Bytes bytes) const {
  const std::int64_t tokens = std::max(1, trace_.block_tokens);
  return bytes.count / (tokens * deployment_.decode.token.count);
}

// Arrivals are taken from the trace one after another; those that follow others come when these have ended.
void Service::next_arrival() {
  while (next_ < trace_.requests.size() && trace_.requests[next_].follows >= 0) ++next_;
  if (next_ == trace_.requests.size()) return;
  push(trace_.requests[next_].arrival, Kind::arrival, static_cast<std::uint32_t>(next_));
  ++next_;
}

void Service::take(const Event& event) {
  switch (event.kind) {
    case Kind::arrival:
      arrive(event.subject);
      break;
    case Kind::prefill_done:
      if (event.epoch == prefill_[event.subject].epoch) prefill_done(event.subject);
      break;
    case Kind::transferred:
      transferred(event.subject, event.epoch);
      break;
    case Kind::step_done:
      if (event.epoch == decode_[event.subject].epoch()) step_done(event.subject);
      break;
    case Kind::outage:
      go_away(options_.faults.outages[event.subject], event.subject);
      break;
    case Kind::back:
      come_back(options_.faults.outages[event.subject]);
      break;
    case Kind::die_lost:
      lose_die(options_.faults.dies[event.subject]);
      break;
    case Kind::resume_prefill:
    case Kind::resume_decode:
      resume(event.kind == Kind::resume_prefill, event.subject, event.epoch != 0);
      break;
    case Kind::plane_lost:
      lose_plane(options_.faults.planes[event.subject], event.subject);
      break;
    case Kind::plane_back:
      find_plane(options_.faults.planes[event.subject]);
      break;
    case Kind::role_switch:
      switch_roles(options_.faults.switches[event.subject]);
      break;
    case Kind::role_taken:
      take_role(leaving_[event.subject]);
      break;
  }
}

void Service::arrive(std::uint32_t k) {
  served(k).arrival = now_;
  ++in_system_;
  ++arrivals_;
  waiting_.push_back(k);
  if (request(k).follows < 0) next_arrival();
  for (std::uint32_t i = 0; i < prefill_.size(); ++i) start_prefill(i);
}

// First come, first served; of a prompt that is longer than a batch the whole takes several batches' time. A
// batch is no larger than what the library has measured; the prompt that it has no room for opens the next
// one.
void Service::start_prefill(std::uint32_t i) {
  PrefillInstance& instance = prefill_[i];
  if (instance.busy || instance.closed || instance.away > 0 || instance.paused > 0 || waiting_.empty())
    return;
  PrefillWork work;
  double read_ms = 0;
  bool from_store = false;
  instance.batch.clear();
  while (!waiting_.empty()) {
    const std::uint32_t k = waiting_.front();
    const Request& r = request(k);
    if (!instance.batch.empty() && work.context + r.prompt > deployment_.prefill.batch_tokens) break;
    Served& s = served(k);
    const double own_read_ms = held_over_ && held_over_->first == k ? held_over_->second : look_up(r, s);
    held_over_.reset();
    const double cached = s.cached();
    PrefillWork with_it = work;
    with_it.add(r.prompt - cached, cached);
    if (!instance.batch.empty() && is_beyond(with_it, static_cast<int>(instance.batch.size()) + 1)) {
      held_over_ = {k, own_read_ms};
      ++result_.cut_batches;
      break;
    }
    waiting_.pop_front();
    s.prefill_start = now_;
    s.instance = static_cast<std::int16_t>(i);
    read_ms += own_read_ms;
    from_store = from_store || s.cached_obs > 0;
    work = with_it;
    result_.prompt_tokens += r.prompt;
    instance.batch.push_back(k);
  }
  result_.computed_tokens += static_cast<std::int64_t>(work.tokens);
  const StepTime time = prefill_times_.of(work, static_cast<int>(instance.batch.size()));
  count(time, "a batch of prompts ({:.0f} tokens, {:.0f} pairs of attention)", work.tokens, work.pairs);
  if (read_ms > 0) read_ms += deployment_.cache.latency.us() * 1e-3;
  if (from_store) read_ms += deployment_.cache.obs_latency.us() * 1e-3;
  const int dies = 2 * deployment_.prefill.npus;
  const double slower =
      traces::power(deployment_.recovery.plane_batch, static_cast<unsigned>(planes_.size())) * dies /
      (dies - instance.lost_dies);
  result_.evidence_s[static_cast<std::size_t>(Evidence::parameter)] += time.ms * (slower - 1) * 1e-3;
  const Time span = of_ms(time.ms * slower + read_ms);
  result_.prefill_busy_s += seconds(span);
  ++result_.batches;
  instance.busy = true;
  instance.begin = now_;
  instance.end = now_ + span;
  instance.tokens = static_cast<std::int64_t>(work.tokens);
  push(instance.end, Kind::prefill_done, i, instance.epoch);
}

// Whether a batch would take a time that is not to be had.
bool Service::is_beyond(const PrefillWork& work, int prompts) const {
  return !options_.allow_extrapolation && prefill_times_.of(work, prompts).evidence == Evidence::extrapolated;
}

// A lost batch was busy until now only.
void Service::end_batch(std::uint32_t i, bool lost) {
  PrefillInstance& instance = prefill_[i];
  instance.busy = false;
  result_.prefill_busy_s -= seconds(instance.end - now_);
  Activity activity{Activity::Kind::batch, true, static_cast<int>(i)};
  activity.begin = instance.begin;
  activity.end = now_;
  activity.requests = static_cast<int>(instance.batch.size());
  activity.tokens = instance.tokens;
  activity.lost = lost;
  tell(activity);
}

// Time to read what is cached, ms.
double Service::look_up(const Request& r, Served& s) {
  s.cached_dram = s.cached_evs = s.cached_obs = 0;
  if (!deployment_.cache.on || r.blocks == 0) return 0;
  const ContextCache& cache = deployment_.cache;
  const PrefixHits hits = pool_.read(trace_.blocks_of(r), tenant_of(r));
  // The last token is computed in any case: the answer's first comes of it.
  auto most = static_cast<std::int64_t>(r.prompt) - 1;
  double ms = 0;
  const auto take = [&](std::int64_t blocks, const Bandwidth& rate) {
    const std::int64_t tokens = std::min(blocks * trace_.block_tokens, most);
    most -= tokens;
    if (tokens > 0)
      ms += static_cast<double>(tokens * deployment_.decode.token.count) /
            static_cast<double>(rate.bytes_per_second) * 1e3;
    return static_cast<std::int32_t>(tokens);
  };
  s.cached_dram = take(hits.dram, cache.dram_rate);
  s.cached_evs = take(hits.ssd, cache.evs_rate);
  s.cached_obs = take(hits.store, cache.obs_rate);
  return ms;
}

void Service::prefill_done(std::uint32_t i) {
  PrefillInstance& instance = prefill_[i];
  end_batch(i, false);
  for (const std::uint32_t k : instance.batch) {
    const Request& r = request(k);
    served(k).first_token = now_;
    ++result_.output_tokens;
    // Written behind the batch, by whoever has time: no one waits for it.
    if (deployment_.cache.on && r.blocks > 0) pool_.write(trace_.blocks_of(r), tenant_of(r));
    if (r.output == 1) {
      done(k);
    } else {
      ++instance.held;
      ready_.push_back(k);
    }
  }
  instance.batch.clear();
  admit();
  start_prefill(i);
  leave_prefill(i);
}

void Service::done(std::uint32_t k) {
  served(k).done = last_done_ = now_;
  --in_system_;
  const auto [from, to] = followers_.equal_range(static_cast<std::int32_t>(k));
  for (auto it = from; it != to; ++it) push(now_ + request(it->second).arrival, Kind::arrival, it->second);
}

// Nothing changes between two events: samples are taken when the later one is known. Of more than fit, every
// other one is dropped, and from then on half as many are taken.
void Service::sample_until(Time end) {
  if (sample_every_ == Time{} || (in_system_ == 0 && arrivals_ == trace_.requests.size())) return;
  for (; next_sample_ < end; next_sample_ += sample_every_) {
    std::vector<Occupancy>& kept = result_.occupancy;
    if (kept.size() == kMostOccupancies) {
      for (std::size_t k = 0; k < kept.size() / 2; ++k) kept[k] = kept[2 * k];
      kept.resize(kept.size() / 2);
      sample_every_ += sample_every_;
    }
    kept.push_back(occupancy());
  }
}

Occupancy Service::occupancy() const {
  Occupancy o;
  o.at = next_sample_;
  o.waiting = static_cast<std::int32_t>(waiting_.size());
  o.waiting_decode = static_cast<std::int32_t>(ready_.size());
  o.transferring = transferring_;
  o.out_of_order = broken_;
  for (const PrefillInstance& instance : prefill_) o.prefill_busy += instance.busy ? 1 : 0;
  for (const DecodeInstance& decode : decode_) {
    o.decoding += decode.requests();
    o.kv_share += decode.kv_share() / static_cast<double>(decode_.size());
  }
  o.dram_blocks = pool_.dram_blocks();
  o.evs_blocks = pool_.ssd_blocks();
  o.obs_blocks = pool_.store_blocks();
  return o;
}

void Service::count(const StepTime& time, const char* what, double first, double second) {
  if (time.evidence == Evidence::extrapolated && !options_.allow_extrapolation)
    throw InputError(fmt::format(fmt::runtime(what), first, second) +
                     " is outside of what the library has measured; allowed: requests within it, or "
                     "--allow-extrapolation");
  result_.evidence_s[static_cast<std::size_t>(time.evidence)] += time.ms * 1e-3;
  result_.worst_error = std::max(result_.worst_error, time.error);
}

}  // namespace cm384::service
