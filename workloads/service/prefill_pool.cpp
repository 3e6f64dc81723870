#include "workloads/service/prefill_pool.h"

#include <algorithm>
#include <cassert>

#include "traces/fixed_math.h"

namespace cm384::service {

PrefillPool::PrefillPool(ServiceRun& run, const Library& library)
    : run_(run),
      times_(run.deployment, library),
      cache_(run.trace, run.deployment.cache, run.deployment.decode.token, run.options.tenants),
      instances_(static_cast<std::size_t>(run.deployment.prefill.instances)),
      context_at_(run.requests.size()) {}

int PrefillPool::busy() const {
  return static_cast<int>(std::ranges::count(instances_, true, &Instance::busy));
}

void PrefillPool::requeue(const std::vector<std::uint32_t>& requests) {
  waiting_.insert(waiting_.begin(), requests.begin(), requests.end());
}

void PrefillPool::start_batch(std::uint32_t i) {
  Instance& instance = instances_[i];
  if (instance.busy || !instance.member.open() || instance.stopped > 0 || waiting_.empty()) return;
  const auto [work, prompts_read_ms, from_store] = fill_batch(i);
  computed_tokens_ += static_cast<std::int64_t>(work.tokens);
  const StepTime time = times_.of(work, static_cast<int>(instance.batch.size()));
  run_.evidence.add(time, "a batch of prompts ({:.0f} tokens, {:.0f} pairs of attention)", work.tokens,
                    work.pairs);
  double read_ms = prompts_read_ms;
  if (read_ms > 0) read_ms += run_.deployment.cache.latency.us() * 1e-3;
  if (from_store) read_ms += run_.deployment.cache.obs_latency.us() * 1e-3;
  const int dies = 2 * run_.deployment.prefill.npus;
  const double slower = plane_factor_ * dies / (dies - instance.lost_dies);
  run_.evidence.add_parameter(time.ms * (slower - 1) * 1e-3);
  const Time span = of_ms(time.ms * slower + read_ms);
  busy_s_ += seconds(span);
  ++batches_;
  instance.busy = true;
  instance.begin = run_.now();
  instance.end = run_.now() + span;
  instance.tokens = static_cast<std::int64_t>(work.tokens);
  run_.events.push(instance.end, Event::Kind::prefill_done, i, instance.epoch);
}

// First come, first served; of a prompt that is longer than a batch the whole takes several batches' time. A
// batch is no larger than what the library has measured; the prompt that it has no room for opens the next
// one.
PrefillPool::Batch PrefillPool::fill_batch(std::uint32_t i) {
  std::vector<std::uint32_t>& prompts = instances_[i].batch;
  Batch batch;
  while (!waiting_.empty()) {
    const std::uint32_t k = waiting_.front();
    const Request& r = run_.requests.request(k);
    if (!prompts.empty() && batch.work.context + r.prompt > run_.deployment.prefill.batch_tokens) break;
    const double read_ms = held_over_ && held_over_->first == k ? held_over_->second : read_cached(k);
    held_over_.reset();
    const Served& s = run_.requests.served(k);
    const double cached = s.cached();
    PrefillWork with_it = batch.work;
    with_it.add(r.prompt - cached, cached);
    if (!prompts.empty() && is_beyond(with_it, static_cast<int>(prompts.size()) + 1)) {
      held_over_ = {k, read_ms};
      ++cut_batches_;
      break;
    }
    waiting_.pop_front();
    run_.requests.begin_prefill(k, i, run_.now());
    batch.read_ms += read_ms;
    batch.from_store = batch.from_store || s.cached_obs > 0;
    batch.work = with_it;
    prompt_tokens_ += r.prompt;
    prompts.push_back(k);
  }
  return batch;
}

// Time to read what is cached, ms.
double PrefillPool::read_cached(std::uint32_t request) {
  const CachedPrompt cached = cache_.read(run_.requests.request(request));
  run_.requests.set_cached(request, cached.dram, cached.evs, cached.obs);
  return cached.read_ms;
}

// Whether a batch would take a time that is not to be had.
bool PrefillPool::is_beyond(const PrefillWork& work, int prompts) const {
  return !run_.options.allow_extrapolation && times_.of(work, prompts).evidence == Evidence::extrapolated;
}

// A lost batch was busy until now only.
void PrefillPool::end_batch(std::uint32_t i, bool lost) {
  Instance& instance = instances_[i];
  instance.busy = false;
  busy_s_ -= seconds(instance.end - run_.now());
  Activity activity{Activity::Kind::batch, true, static_cast<int>(i)};
  activity.begin = instance.begin;
  activity.end = run_.now();
  activity.requests = static_cast<int>(instance.batch.size());
  activity.tokens = instance.tokens;
  activity.lost = lost;
  run_.notify(activity);
}

std::vector<std::uint32_t> PrefillPool::complete_batch(std::uint32_t i) {
  end_batch(i, false);
  const std::vector<std::uint32_t> prompts = std::exchange(instances_[i].batch, {});
  for (const std::uint32_t k : prompts) {
    run_.requests.end_prefill(k, run_.now());
    cache_.write(run_.requests.request(k));
  }
  return prompts;
}

std::vector<std::uint32_t> PrefillPool::abort_batch(std::uint32_t i) {
  if (instances_[i].busy) end_batch(i, true);
  ++instances_[i].epoch;
  return std::exchange(instances_[i].batch, {});
}

std::vector<std::uint32_t> PrefillPool::contexts(std::uint32_t i) const {
  std::vector<std::uint32_t> sorted = instances_[i].contexts;
  std::ranges::sort(sorted);
  return sorted;
}

void PrefillPool::hold_context(std::uint32_t i, std::uint32_t request) {
  std::vector<std::uint32_t>& contexts = instances_[i].contexts;
  context_at_[request] = static_cast<std::uint32_t>(contexts.size());
  contexts.push_back(request);
}

// The last one takes its place.
void PrefillPool::release_context(std::uint32_t i, std::uint32_t request) {
  std::vector<std::uint32_t>& contexts = instances_[i].contexts;
  const std::uint32_t at = context_at_[request];
  assert(contexts[at] == request);
  contexts[at] = contexts.back();
  context_at_[contexts[at]] = at;
  contexts.pop_back();
}

void PrefillPool::set_lost_planes(std::size_t planes) {
  plane_factor_ = traces::power(run_.deployment.recovery.plane_batch, static_cast<unsigned>(planes));
}

std::optional<std::size_t> PrefillPool::leave_if_drained(std::uint32_t i) {
  Instance& instance = instances_[i];
  if (instance.busy || !instance.contexts.empty() || instance.stopped > 0) return {};
  return instance.member.leave(run_.now());
}

std::uint32_t PrefillPool::add_instance() {
  instances_.emplace_back().member.since = run_.now();
  return size() - 1;
}

void PrefillPool::add_to(ServiceResult& result) const {
  result.prefill_busy_s = busy_s_;
  result.batches = batches_;
  result.prompt_tokens = prompt_tokens_;
  result.computed_tokens = computed_tokens_;
  result.cut_batches = cut_batches_;
  result.cache = cache_.blocks().counts();
  for (const Instance& instance : instances_)
    result.prefill_pool_s += instance.member.seconds_until(result.end);
}

}  // namespace cm384::service
