#include "workloads/service/prefill_pool.h"

#include <algorithm>
#include <cassert>

#include "traces/fixed_math.h"

namespace cm384::service {

PrefillPool::PrefillPool(ServiceRun& run, const Library& library, Place place)
    : run_(run),
      times_(run.deployment, library),
      place_(std::move(place)),
      context_at_(run.requests.size()),
      router_(
          kPromptRoutes.as<PromptRoute>(run.deployment.prefill.route),
          PromptQueue(kPromptOrders.as<PromptOrder>(run.deployment.prefill.order),
                      run.deployment.prefill.ageing, shares_of(run.deployment.prefill.shares)),
          [this](std::uint32_t i) { return takes_prompts(i); },
          [this](std::uint32_t i, std::uint32_t request) {
            return cache_of(i).peek(run_.requests.request(request));
          }),
      samples_(run.options.batch_samples, run.options.seed, 78) {
  for (int k = 0; k < run.deployment.prefill_instances(); ++k) add_instance(Time{});
  if (run.options.warm != nullptr)
    for (PromptCache& cache : caches_) cache.warm(*run.options.warm);
}

bool PrefillPool::is_full() const {
  const int most = run_.deployment.prefill.most_waiting;
  return most > 0 && router_.waiting() >= static_cast<std::size_t>(most);
}

WaitingPrompt PrefillPool::waiting_prompt(std::uint32_t request) const {
  return {request, run_.requests.prompt_tokens(request), run_.requests.request(request).priority,
          run_.requests.served(request).arrival, run_.tenant_of(request)};
}

void PrefillPool::requeue(const std::vector<std::uint32_t>& requests) {
  std::vector<WaitingPrompt> prompts;
  for (const std::uint32_t k : requests) prompts.push_back(waiting_prompt(k));
  router_.push_front(prompts);
}

void PrefillPool::start_batch(std::uint32_t i) {
  if (begin_batch(i)) run_.events.push(instances_[i].end, Event::Kind::prefill_done, i, instances_[i].epoch);
}

std::optional<Time> PrefillPool::begin_batch(std::uint32_t i, int taken, bool begins) {
  Instance& instance = instances_[i];
  if (instance.busy || instance.stopped > 0) return {};
  begins = begins && instance.member.open();
  if (instance.prompts.empty() && (router_.queue(i).empty() || !begins)) return {};
  Batch batch;
  batch.budget = run_.deployment.prefill.batch_tokens - taken;
  if (batch.budget <= 0) return {};
  fill_batch(instance, batch);
  if (begins) begin_prompts(instance, i, batch);
  if (batch.prompts == 0) return {};
  draw(i);
  computed_tokens_ += static_cast<std::int64_t>(batch.work.tokens);
  const StepTime time = times_.of(batch.work, batch.prompts);
  run_.evidence.add(time, "a batch of prompts ({:.0f} tokens, {:.0f} pairs of attention)", batch.work.tokens,
                    batch.work.pairs);
  double read_ms = batch.read_ms;
  if (read_ms > 0) read_ms += run_.deployment.cache.latency.us() * 1e-3;
  if (batch.from_store) read_ms += run_.deployment.cache.obs_latency.us() * 1e-3;
  const int dies = run_.deployment.prefill_dies();
  const double slower = plane_factor_ * dies / (dies - instance.lost_dies);
  const Time bubble = run_.deployment.prefill.bubble;
  run_.evidence.add_parameter((time.ms * (slower - 1) + read_ms) * 1e-3 + seconds(bubble));
  const Time span = of_ms(time.ms * slower + read_ms) + bubble;
  busy_s_ += seconds(span);
  ++batches_;
  instance.busy = true;
  instance.begin = run_.now();
  instance.end = run_.now() + span;
  instance.batch = batch.prompts;
  instance.tokens = static_cast<std::int64_t>(batch.work.tokens);
  instance.known = EvidenceSum::of(time, span);
  return span;
}

void PrefillPool::draw(std::uint32_t i) {
  BatchSample* const sample = samples_.draw();
  if (sample == nullptr) return;
  *sample = {sample->number, run_.now(), static_cast<int>(i), {}};
  for (const Prompt& prompt : instances_[i].prompts)
    if (prompt.fresh > 0) sample->prompts.push_back({prompt.fresh, prompt.context});
}

void PrefillPool::extend(std::uint32_t i, Time more) {
  instances_[i].end += more;
  busy_s_ += seconds(more);
}

// The next chunks of the prompts that were begun.
void PrefillPool::fill_batch(Instance& instance, Batch& batch) {
  for (Prompt& prompt : instance.prompts) {
    prompt.fresh = 0;
    if (has_room(batch, prompt.tokens))
      prompt.fresh = add_to_batch(batch, prompt.context, prompt.tokens - prompt.context);
  }
}

// Of a whole prompt that is longer than a batch, one batch takes several batches' time.
void PrefillPool::begin_prompts(Instance& instance, std::uint32_t i, Batch& batch) {
  PromptQueue& waiting = router_.queue(i);
  while (!waiting.empty()) {
    const std::uint32_t k = waiting.front();
    const std::int32_t tokens = run_.requests.prompt_tokens(k);
    if (!has_room(batch, tokens)) break;
    if (place_.is_free && !place_.is_free(k, i)) break;
    const double read_ms = look_up(k, i);
    const Served& s = run_.requests.served(k);
    const std::int32_t fresh = add_to_batch(batch, s.cached(), tokens - s.cached());
    if (fresh == 0) {
      looked_up_.emplace(k, read_ms);
      break;
    }
    waiting.pop();
    if (place_.reserve) place_.reserve(k, i);
    run_.requests.begin_prefill(k, i, run_.now());
    if (s.made == 0) run_.latencies.begin_prefill(k, s.queue_ms() * 1e-3);
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
  if (spec.chunk > 0) return static_cast<std::int64_t>(batch.work.tokens) < batch.budget;
  return static_cast<std::int64_t>(batch.work.context) + prompt <= batch.budget;
}

// Tokens that the batch computes of a prompt that has `context` of them and lacks `left`. A batch is no
// larger than what the library has measured; a prompt that it has no room for (0 tokens) is of the next one.
// A chunk that is too large for a batch of its own is halved.
std::int32_t PrefillPool::add_to_batch(Batch& batch, std::int32_t context, std::int32_t left) {
  const PrefillSpec& spec = run_.deployment.prefill;
  std::int32_t fresh = left;
  if (spec.chunk > 0)
    fresh = std::min({left, spec.chunk, batch.budget - static_cast<std::int32_t>(batch.work.tokens)});
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
double PrefillPool::look_up(std::uint32_t request, std::uint32_t i) {
  if (const auto known = looked_up_.find(request); known != looked_up_.end()) {
    const double read_ms = known->second;
    looked_up_.erase(known);
    return read_ms;
  }
  const CachedPrompt cached = cache_of(i).read(run_.requests.request(request));
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
  if (run_.latencies.on()) {
    for (const Prompt& prompt : instances_[i].prompts)
      if (run_.requests.served(prompt.request).made == 0)
        run_.latencies.add_batch(prompt.request, instances_[i].known);
    run_.latencies.add_computed(instances_[i].known);
  }
  std::vector<std::uint32_t> complete;
  for (Prompt& prompt : instances_[i].prompts) {
    prompt.context += prompt.fresh;
    if (prompt.context == prompt.tokens) complete.push_back(prompt.request);
  }
  std::erase_if(instances_[i].prompts, [](const Prompt& prompt) { return prompt.context == prompt.tokens; });
  for (const std::uint32_t k : complete) {
    if (run_.requests.served(k).made > 0) run_.end_gap(k);
    run_.requests.end_prefill(k, run_.now());
    cache_of(i).write(run_.requests.request(k));
    router_.end(k);
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

void PrefillPool::keep_answer(std::uint32_t request) {
  const auto i = static_cast<std::uint32_t>(run_.requests.served(request).instance);
  cache_of(i).write_answer(run_.requests.request(request));
}

void PrefillPool::stop(std::uint32_t i) {
  ++instances_[i].stopped;
  send_elsewhere(i);
}

void PrefillPool::close(std::uint32_t i, std::size_t role_switch) {
  instances_[i].member.role_switch = role_switch;
  send_elsewhere(i);
}

// What was looked up there is of no use.
void PrefillPool::send_elsewhere(std::uint32_t i) {
  for (const std::uint32_t k : router_.withdraw(i)) {
    if (caches_.size() > 1) looked_up_.erase(k);
    router_.push(waiting_prompt(k));
  }
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

std::uint32_t PrefillPool::add_instance(Time since) {
  instances_.emplace_back().member.since = since;
  router_.add_instance();
  const bool own = run_.deployment.cache.scope == "instance";
  if (own || caches_.empty())
    caches_.emplace_back(run_.trace, run_.deployment.cache, run_.deployment.decode.token,
                         run_.options.tenants, own ? run_.deployment.prefill_instances() : 1,
                         run_.options.shared_blocks);
  return size() - 1;
}

PrefillPool::PoolLoad PrefillPool::load() const {
  PoolLoad load;
  load.waiting_tokens = router_.waiting_tokens();
  for (std::uint32_t i = 0; i < size(); ++i) {
    const Instance& instance = instances_[i];
    if (!instance.member.open()) continue;
    ++load.open;
    if (!instance.busy && instance.prompts.empty() && instance.stopped == 0 && router_.queue(i).empty())
      load.idle.push_back(i);
  }
  return load;
}

void PrefillPool::set_occupancy(Occupancy& occupancy) const {
  occupancy.waiting = static_cast<std::int32_t>(router_.waiting());
  occupancy.prefill_busy = static_cast<std::int32_t>(std::ranges::count(instances_, true, &Instance::busy));
  occupancy.prefill_instances = static_cast<std::int32_t>(std::ranges::count_if(
      instances_, [](const Instance& instance) { return instance.member.until == Time::never(); }));
  for (const PromptCache& cache : caches_) {
    occupancy.dram_blocks += cache.blocks().dram_blocks();
    occupancy.evs_blocks += cache.blocks().ssd_blocks();
    occupancy.obs_blocks += cache.blocks().store_blocks();
  }
}

void PrefillPool::add_to(ServiceResult& result) const {
  result.batches_drawn = samples_.kept();
  std::ranges::sort(result.batches_drawn, {}, &BatchSample::number);
  result.prefill_busy_s = busy_s_;
  result.batches = batches_;
  result.prompt_tokens = prompt_tokens_;
  result.computed_tokens = computed_tokens_;
  result.cut_batches = cut_batches_;
  for (const PromptCache& cache : caches_) result.cache.add(cache.counts());
  for (const Instance& instance : instances_)
    result.prefill_pool_s += instance.member.seconds_until(result.end);
}

}  // namespace cm384::service
