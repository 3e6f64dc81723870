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
      context_at_(run.requests.size()),
      waiting_(kPromptOrders.as<PromptOrder>(run.deployment.prefill.order), run.deployment.prefill.ageing) {}

int PrefillPool::busy() const {
  return static_cast<int>(std::ranges::count(instances_, true, &Instance::busy));
}

bool PrefillPool::is_full() const {
  const int most = run_.deployment.prefill.most_waiting;
  return most > 0 && waiting_.size() >= static_cast<std::size_t>(most);
}

WaitingPrompt PrefillPool::waiting_prompt(std::uint32_t request) const {
  return {request, run_.requests.prompt_tokens(request), run_.requests.request(request).priority,
          run_.requests.served(request).arrival};
}

void PrefillPool::requeue(const std::vector<std::uint32_t>& requests) {
  std::vector<WaitingPrompt> prompts;
  for (const std::uint32_t k : requests) prompts.push_back(waiting_prompt(k));
  waiting_.push_front(prompts);
}

void PrefillPool::start_batch(std::uint32_t i) {
  Instance& instance = instances_[i];
  if (instance.busy || instance.stopped > 0) return;
  if (instance.prompts.empty() && (waiting_.empty() || !instance.member.open())) return;
  Batch batch = fill_batch(instance);
  if (instance.member.open()) begin_prompts(instance, i, batch);
  computed_tokens_ += static_cast<std::int64_t>(batch.work.tokens);
  const StepTime time = times_.of(batch.work, batch.prompts);
  run_.evidence.add(time, "a batch of prompts ({:.0f} tokens, {:.0f} pairs of attention)", batch.work.tokens,
                    batch.work.pairs);
  double read_ms = batch.read_ms;
  if (read_ms > 0) read_ms += run_.deployment.cache.latency.us() * 1e-3;
  if (batch.from_store) read_ms += run_.deployment.cache.obs_latency.us() * 1e-3;
  const int dies = 2 * run_.deployment.prefill.npus;
  const double slower = plane_factor_ * dies / (dies - instance.lost_dies);
  run_.evidence.add_parameter(time.ms * (slower - 1) * 1e-3);
  const Time span = of_ms(time.ms * slower + read_ms);
  busy_s_ += seconds(span);
  ++batches_;
  instance.busy = true;
  instance.begin = run_.now();
  instance.end = run_.now() + span;
  instance.batch = batch.prompts;
  instance.tokens = static_cast<std::int64_t>(batch.work.tokens);
  run_.events.push(instance.end, Event::Kind::prefill_done, i, instance.epoch);
}

// The next chunks of the prompts that were begun.
PrefillPool::Batch PrefillPool::fill_batch(Instance& instance) {
  Batch batch;
  for (Prompt& prompt : instance.prompts) {
    prompt.fresh = 0;
    if (has_room(batch, prompt.tokens))
      prompt.fresh = add_to_batch(batch, prompt.context, prompt.tokens - prompt.context);
  }
  return batch;
}

// Of a whole prompt that is longer than a batch, one batch takes several batches' time.
void PrefillPool::begin_prompts(Instance& instance, std::uint32_t i, Batch& batch) {
  while (!waiting_.empty()) {
    const std::uint32_t k = waiting_.front();
    const std::int32_t tokens = run_.requests.prompt_tokens(k);
    if (!has_room(batch, tokens)) break;
    const double read_ms = look_up(k);
    const Served& s = run_.requests.served(k);
    const std::int32_t fresh = add_to_batch(batch, s.cached(), tokens - s.cached());
    if (fresh == 0) {
      looked_up_.emplace(k, read_ms);
      break;
    }
    waiting_.pop();
    run_.requests.begin_prefill(k, i, run_.now());
    batch.read_ms += read_ms;
    batch.from_store = batch.from_store || s.cached_obs > 0;
    prompt_tokens_ += tokens;
    instance.prompts.push_back({k, s.cached(), fresh, tokens});
  }
}

// Whether the budgets of tokens and of prompts leave room for one of so many tokens.
bool PrefillPool::has_room(const Batch& batch, std::int64_t prompt) const {
  const PrefillSpec& spec = run_.deployment.prefill;
  if (batch.prompts == 0) return true;
  if (spec.sequences > 0 && batch.prompts >= spec.sequences) return false;
  if (spec.chunk > 0) return static_cast<std::int64_t>(batch.work.tokens) < spec.batch_tokens;
  return static_cast<std::int64_t>(batch.work.context) + prompt <= spec.batch_tokens;
}

// Tokens that the batch computes of a prompt that has `context` of them and lacks `left`. A batch is no
// larger than what the library has measured; a prompt that it has no room for (0 tokens) is of the next one.
// A chunk that is too large for a batch of its own is halved.
std::int32_t PrefillPool::add_to_batch(Batch& batch, std::int32_t context, std::int32_t left) {
  const PrefillSpec& spec = run_.deployment.prefill;
  std::int32_t fresh = left;
  if (spec.chunk > 0)
    fresh = std::min({left, spec.chunk, spec.batch_tokens - static_cast<std::int32_t>(batch.work.tokens)});
  for (bool cut = false;; fresh /= 2, cut = true) {
    PrefillWork with_it = batch.work;
    with_it.add(fresh, context);
    const bool beyond = is_beyond(with_it, batch.prompts + 1);
    if (beyond && batch.prompts == 0 && spec.chunk > 0 && fresh > 1) continue;
    if (cut || (beyond && batch.prompts > 0)) ++cut_batches_;
    if (beyond && batch.prompts > 0) return 0;
    batch.work = with_it;
    ++batch.prompts;
    return fresh;
  }
}

// Time to read what is cached, ms.
double PrefillPool::look_up(std::uint32_t request) {
  if (const auto known = looked_up_.find(request); known != looked_up_.end()) {
    const double read_ms = known->second;
    looked_up_.erase(known);
    return read_ms;
  }
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
  activity.requests = instance.batch;
  activity.tokens = instance.tokens;
  activity.lost = lost;
  run_.notify(activity);
}

std::vector<std::uint32_t> PrefillPool::complete_batch(std::uint32_t i) {
  end_batch(i, false);
  std::vector<std::uint32_t> complete;
  for (Prompt& prompt : instances_[i].prompts) {
    prompt.context += prompt.fresh;
    if (prompt.context == prompt.tokens) complete.push_back(prompt.request);
  }
  std::erase_if(instances_[i].prompts, [](const Prompt& prompt) { return prompt.context == prompt.tokens; });
  for (const std::uint32_t k : complete) {
    if (const Served& served = run_.requests.served(k); served.made > 0) run_.add_gap(served.last_token, 1);
    run_.requests.end_prefill(k, run_.now());
    cache_.write(run_.requests.request(k));
  }
  return complete;
}

std::vector<std::uint32_t> PrefillPool::abort_batch(std::uint32_t i) {
  if (instances_[i].busy) end_batch(i, true);
  ++instances_[i].epoch;
  std::vector<std::uint32_t> begun;
  for (const Prompt& prompt : instances_[i].prompts) begun.push_back(prompt.request);
  instances_[i].prompts.clear();
  return begun;
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
  if (instance.busy || !instance.prompts.empty() || !instance.contexts.empty() || instance.stopped > 0)
    return {};
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
