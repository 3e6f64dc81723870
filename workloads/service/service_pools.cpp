#include "workloads/service/service_pools.h"

#include <algorithm>
#include <cstdint>

namespace cm384::service {
namespace {

constexpr std::size_t kScaledDown = SIZE_MAX;  // in place of a role switch

}  // namespace

ServicePools::ServicePools(ServiceRun& run, const Library& library,
                           std::function<void(std::uint32_t)> on_complete)
    : run_(run),
      prefill_(run, library,
               run.deployment.mixed()
                   ? PrefillPool::Place{[this](std::uint32_t k, std::uint32_t i) { return has_place(k, i); },
                                        [this](std::uint32_t k, std::uint32_t i) { reserve_place(k, i); }}
                   : PrefillPool::Place{}),
      host_(run.deployment.decode),
      decode_(run, library, host_),
      links_({run.deployment.prefill_dies(), 1, run.deployment.decode_dies()}, run.options.rdma),
      on_complete_(std::move(on_complete)),
      quota_(run.deployment),
      ready_(run.deployment.decode.order == "fair", shares_of(run.deployment.prefill.shares)),
      scaler_(run.deployment, run.options.npus, run.options.member),
      stepping_(run.deployment.mixed() ? static_cast<std::size_t>(run.deployment.decode.instances) : 0) {}

void ServicePools::enqueue(std::uint32_t request) {
  const Request& asked = run_.requests.request(request);
  if (prefill_.is_full() ||
      !quota_.admit(run_.tenant_of(request), std::int64_t{asked.prompt} + asked.output, run_.now())) {
    run_.requests.refuse(request, run_.now());
    ++refused_;
    on_complete_(request);
    return;
  }
  run_.requests.arrive(request, run_.now());
  run_.latencies.begin_waiting(request);
  prefill_.enqueue(request);
  start_prefill();
}

void ServicePools::start_prefill() {
  for (std::uint32_t i = 0; i < stepping_.size(); ++i) start_mixed(i);
  if (!run_.deployment.mixed())
    for (std::uint32_t i = 0; i < prefill_.size(); ++i) prefill_.start_batch(i);
}

void ServicePools::complete_batch(std::uint32_t i, std::uint32_t epoch) {
  if (!prefill_.is_current(i, epoch)) return;
  end_prompts(i);
  dispatch_contexts();
  prefill_.start_batch(i);
  leave_prefill_if_drained(i);
}

void ServicePools::end_prompts(std::uint32_t i) {
  for (const std::uint32_t k : prefill_.complete_batch(i)) {
    output_tokens_ += run_.requests.request(k).output > 0 ? 1 : 0;
    const bool done = run_.requests.decode_tokens(k) <= 0;
    if (const auto place = place_.find(k); place != place_.end()) {
      const int die = place->second;
      place_.erase(place);
      if (done) {
        decode_.release(die, decode_.bytes_of(k));
      } else {
        run_.requests.begin_transfer(k, die, decode_.steps_for(k), run_.now());
        run_.requests.end_transfer(k, run_.now());
        decode_.join(k);
      }
    } else if (!done) {
      prefill_.hold_context(i, k);
      ready_.push(k, run_.tenant_of(k), run_.requests.decode_tokens(k));
    }
    if (done) complete(k);
  }
}

// The context of a prompt stays on a die of the instance that computes it.
bool ServicePools::has_place(std::uint32_t request, std::uint32_t group) const {
  const auto i = group / static_cast<std::uint32_t>(run_.deployment.groups());
  return host_.next(i) == nullptr && decode_.find_die(decode_.bytes_of(request), i);
}

void ServicePools::reserve_place(std::uint32_t request, std::uint32_t group) {
  const auto i = group / static_cast<std::uint32_t>(run_.deployment.groups());
  const int die = *decode_.find_die(decode_.bytes_of(request), i);
  decode_.reserve(die, decode_.bytes_of(request));
  place_.emplace(request, die);
}

// All its groups compute their batches of prompts first, then all dies a step of their answers. Tokens of
// these are of the budget, and where one was preempted no prompt is begun.
void ServicePools::start_mixed(std::uint32_t i) {
  if (stepping_[i]) return;
  DecodePool::Begun step = decode_.begin_step(i);
  const int groups = run_.deployment.groups();
  const int tokens = step.requests * (1 + run_.deployment.decode.mtp);
  const std::uint32_t first = i * static_cast<std::uint32_t>(groups);
  std::vector<std::pair<std::uint32_t, Time>> batches;
  Time prompts{};
  for (std::uint32_t g = first; g < first + static_cast<std::uint32_t>(groups); ++g) {
    const auto span = prefill_.begin_batch(g, (tokens + groups - 1) / groups, step.preempted.empty());
    if (!span) continue;
    batches.emplace_back(g, *span);
    prompts = std::max(prompts, *span);
  }
  if (step.span || !batches.empty()) {
    const Time span = prompts + step.span.value_or(Time{});
    stepping_[i] = true;
    for (const auto& [g, own] : batches) prefill_.extend(g, span - own);
    if (step.span) decode_.extend(i, prompts);
    run_.events.push(run_.now() + span, Event::Kind::mixed_done, i, step.span ? 1 : 0);
  }
  preempt(step.preempted);
}

void ServicePools::complete_mixed(std::uint32_t i, bool decoded) {
  stepping_[i] = false;
  const auto groups = static_cast<std::uint32_t>(run_.deployment.groups());
  if (decoded) end_step(i);
  for (std::uint32_t g = i * groups; g < (i + 1) * groups; ++g)
    if (prefill_.is_busy(g)) end_prompts(g);
  return_swapped();
  start_mixed(i);
}

// Contexts go to dies that have a slot and room, in the order in which they were made.
void ServicePools::dispatch_contexts() {
  return_swapped();
  while (!ready_.empty()) {
    const std::uint32_t k = ready_.front();
    const auto die = decode_.find_die(decode_.bytes_of(k));
    if (!die) return;
    ready_.pop();
    send_context(k, *die);
  }
}

// Those that were swapped out come first, in that order.
void ServicePools::return_swapped() {
  for (std::uint32_t i = 0; i < host_.size(); ++i) {
    for (const HostMemory::Context* next = host_.next(i); next != nullptr; next = host_.next(i)) {
      const std::uint32_t k = next->request;
      const auto die = decode_.find_die(decode_.bytes_of(k), i);
      if (!die) break;
      decode_.reserve(*die, decode_.bytes_of(k));
      run_.requests.begin_return(k, *die, decode_.steps_for(k));
      const Time end = host_.begin_return(i, *die % decode_.dies_per_instance(), run_.now());
      run_.events.push(end, Event::Kind::swapped_in, k);
    }
  }
}

void ServicePools::complete_return(std::uint32_t request) {
  const Served& served = run_.requests.served(request);
  if (served.state != RequestState::swapped || served.die < 0) return;  // it was lost meanwhile, or its die
  const std::uint32_t i = decode_.instance_of(served.die);
  if (!host_.end_return(i, request, run_.now())) return;
  run_.requests.end_return(request);
  decode_.join(request);
  start_step(i);
}

void ServicePools::send_context(std::uint32_t request, int die) {
  decode_.reserve(die, decode_.bytes_of(request));
  const double bytes = static_cast<double>(run_.requests.prompt_tokens(request)) *
                       static_cast<double>(run_.deployment.decode.token.count);
  const auto from = static_cast<std::uint32_t>(run_.requests.served(request).instance);
  const auto [begin, end] = links_.send(request, from, die, bytes, run_.now());
  run_.requests.begin_transfer(request, die, decode_.steps_for(request), begin);
  Activity activity{Activity::Kind::transfer, false, static_cast<int>(decode_.instance_of(die))};
  activity.die = die % decode_.dies_per_instance();
  activity.begin = begin;
  activity.end = end;
  activity.request = request;
  run_.notify(activity);
  run_.events.push(end + run_.options.rdma_latency, Event::Kind::transferred, request, attempt_of(request));
}

void ServicePools::complete_transfer(std::uint32_t request, std::uint32_t attempt) {
  links_.end_transfer();
  if (attempt != attempt_of(request)) return;  // it was lost meanwhile
  const Served& served = run_.requests.served(request);
  run_.requests.end_transfer(request, run_.now());
  links_.remove(request, served.die);
  decode_.join(request);
  start_step(decode_.instance_of(served.die));
  const auto from = static_cast<std::uint32_t>(served.instance);
  prefill_.release_context(from, request);
  leave_prefill_if_drained(from);
}

void ServicePools::complete_step(std::uint32_t i, std::uint32_t epoch) {
  if (!decode_.is_current(i, epoch)) return;
  end_step(i);
  dispatch_contexts();
  start_step(i);
  leave_decode_if_drained(i);
}

void ServicePools::end_step(std::uint32_t i) {
  for (const DecodeInstance::Active& ended : decode_.complete_step(i)) {
    output_tokens_ += ended.tokens;
    decode_.release(run_.requests.served(ended.request).die, ended.bytes);
    complete(ended.request);
  }
}

void ServicePools::complete(std::uint32_t request) {
  run_.requests.complete(request, run_.now());
  prefill_.keep_answer(request);
  quota_.end(run_.tenant_of(request));
  on_complete_(request);
}

void ServicePools::start_step(std::uint32_t i) {
  if (run_.deployment.mixed()) return start_mixed(i);
  const DecodePool::Begun begun = decode_.begin_step(i);
  if (begun.span) run_.events.push(run_.now() + *begun.span, Event::Kind::step_done, i, begun.epoch);
  preempt(begun.preempted);
  leave_decode_if_drained(i);
}

// They keep the tokens that they were given, and their contexts are made again.
void ServicePools::preempt(const std::vector<Lost>& requests) {
  if (requests.empty()) return;
  std::vector<std::uint32_t> numbers;
  for (const auto& [k, tokens, die, bytes, swapped, last_token] : requests) {
    decode_.forget(k);
    output_tokens_ += tokens;
    ++preempted_;
    if (swapped) {
      ++swapped_;
      run_.requests.swap_out(k, static_cast<std::int32_t>(tokens), last_token);
    } else {
      run_.requests.preempt(k, static_cast<std::int32_t>(tokens), last_token);
      numbers.push_back(k);
    }
  }
  std::ranges::sort(numbers);
  prefill_.requeue(numbers);
  start_prefill();
  dispatch_contexts();
}

void ServicePools::stop_prefill(std::uint32_t i) {
  prefill_.stop(i);
  start_prefill();  // what waited for it went to others
}

void ServicePools::lose_prefill_work(std::uint32_t i, bool contexts) {
  std::vector<Lost> lost;
  for (const std::uint32_t k : prefill_.abort_batch(i)) lost.push_back({k, 0});
  if (contexts) {
    ready_.erase_if([&](std::uint32_t k) { return run_.requests.served(k).instance == static_cast<int>(i); });
    for (const std::uint32_t k : prefill_.contexts(i)) {
      lost.push_back({k, 0});
      if (run_.requests.state(k) != RequestState::transferring) continue;
      const int die = run_.requests.served(k).die;
      decode_.release(die, decode_.bytes_of(k));
      leave_decode_if_drained(decode_.instance_of(die));
    }
  }
  restart(std::move(lost));
}

void ServicePools::resume_prefill(std::uint32_t i) {
  prefill_.resume(i);
  prefill_.start_batch(i);
  leave_prefill_if_drained(i);
}

void ServicePools::lose_decode(std::uint32_t i) {
  std::vector<Lost> lost = decode_.lose_all(i);
  lose_swapped(i, lost);
  for (int die = 0; die < decode_.dies_per_instance(); ++die) collect_bound_for(i, die, lost);
  restart(std::move(lost));
}

void ServicePools::return_decode(std::uint32_t i) {
  decode_.instance(i).end_outage();
  dispatch_contexts();
  leave_decode_if_drained(i);
}

void ServicePools::resume_decode(std::uint32_t i, bool away) {
  decode_.instance(i).resume();
  if (away) decode_.instance(i).end_outage();
  dispatch_contexts();
  start_step(i);
  leave_decode_if_drained(i);
}

void ServicePools::lose_decode_die(std::uint32_t i, int die, Recovery recovery) {
  std::vector<Lost> lost;
  const auto lose = [&](int one) {
    const std::vector<Lost> of_it = decode_.instance(i).lose_die(one);
    lost.insert(lost.end(), of_it.begin(), of_it.end());
    collect_bound_for(i, one, lost);
    for (const std::uint32_t k : host_.lose_die(i, one)) run_.requests.lose_return(k);
  };
  lose(die);
  if (recovery == Recovery::role_switch) lose(decode_.instance(i).idlest());
  if (recovery != Recovery::restart) return restart(std::move(lost));
  const std::vector<Lost> others = decode_.lose_all(i);
  lost.insert(lost.end(), others.begin(), others.end());
  lose_swapped(i, lost);
  for (int other = 0; other < decode_.dies_per_instance(); ++other)
    if (other != die) collect_bound_for(i, other, lost);
  restart(std::move(lost));
}

void ServicePools::lose_swapped(std::uint32_t decode, std::vector<Lost>& lost) {
  for (const std::uint32_t k : host_.lose_all(decode)) lost.push_back({k, 0});
}

// Contexts on their way to a die of an instance, whose link is free then.
void ServicePools::collect_bound_for(std::uint32_t decode, int die, std::vector<Lost>& lost) {
  const int number = static_cast<int>(decode) * decode_.dies_per_instance() + die;
  for (const std::uint32_t k : links_.bound_for(number)) lost.push_back({k, 0});
  links_.reset(number);
}

// What was made of them is lost: they wait again, before those that came later.
void ServicePools::restart(std::vector<Lost> requests) {
  std::ranges::sort(requests, {}, &Lost::request);
  std::vector<std::uint32_t> numbers;
  for (const auto& [k, tokens, die, bytes, swapped, last_token] : requests) {
    const Served& served = run_.requests.served(k);
    numbers.push_back(k);
    lost_prompt_tokens_ += run_.requests.prompt_tokens(k) - served.cached();
    const std::int64_t given = served.made + served.kept + (run_.requests.has_context(k) ? 1 : 0);
    output_tokens_ -= given;
    lost_output_tokens_ += given + tokens;
    if (served.state == RequestState::ready || served.state == RequestState::transferring)
      prefill_.release_context(static_cast<std::uint32_t>(served.instance), k);
    if (served.state == RequestState::transferring) links_.remove(k, served.die);
    if (served.state == RequestState::decoding) decode_.forget(k);
    run_.requests.restart(k);
    if (run_.latencies.on()) run_.latencies.restart(k);
    run_.latencies.begin_waiting(k);
  }
  prefill_.requeue(numbers);
  restarted_ += static_cast<std::int64_t>(numbers.size());
  for (std::uint32_t p = 0; p < prefill_.size(); ++p) {
    prefill_.start_batch(p);
    leave_prefill_if_drained(p);
  }
}

void ServicePools::set_lost_planes(std::size_t planes) {
  prefill_.set_lost_planes(planes);
  decode_.set_lost_planes(planes);
}

void ServicePools::begin_role_switch(const RoleSwitch& change) {
  std::vector<std::uint32_t> instances;
  for (int i = change.first; i <= change.last; ++i) instances.push_back(static_cast<std::uint32_t>(i));
  begin_role_change(change.prefill, instances, false);
}

void ServicePools::begin_role_change(bool prefill, const std::vector<std::uint32_t>& instances, bool scaled) {
  const std::size_t number = role_changes_.size();
  role_changes_.push_back({prefill, static_cast<int>(instances.size()), scaled});
  for (const std::uint32_t i : instances) {
    if (prefill) {
      prefill_.close(i, number);
      leave_prefill_if_drained(i);
    } else {
      decode_.close(i, number);
      leave_decode_if_drained(i);
    }
  }
  start_prefill();  // what waited for those of prefill went to others
}

// It leaves the pool once it has ended what it had.
void ServicePools::leave_prefill_if_drained(std::uint32_t i) {
  if (const auto role_switch = prefill_.leave_if_drained(i)) leave(true, *role_switch);
}

void ServicePools::leave_decode_if_drained(std::uint32_t i) {
  if (const auto role_switch = decode_.leave_if_drained(i)) leave(false, *role_switch);
}

void ServicePools::leave(bool prefill, std::size_t role_switch) {
  if (role_switch == kScaledDown) return scaler_.complete_end(prefill, run_.now());
  if (--role_changes_[role_switch].open == 0)
    run_.events.push(run_.now() + run_.deployment.recovery.role_switch, Event::Kind::role_taken,
                     static_cast<std::uint32_t>(role_switch));
}

void ServicePools::scale() {
  std::int64_t bytes = 0;  // of contexts that wait for a die
  ready_.for_each([&](std::uint32_t k) { bytes += decode_.bytes_of(k); });
  const ScaleChanges changes = scaler_.decide(
      prefill_.load(), decode_.load(static_cast<std::int64_t>(ready_.size()), bytes), run_.now());
  const Time served = run_.now() + run_.deployment.scale.start;
  if (changes.start_prefill) run_.events.push(served, Event::Kind::scaled_up, 1);
  if (changes.start_decode) run_.events.push(served, Event::Kind::scaled_up, 0);
  if (changes.end_prefill) {
    prefill_.close(*changes.end_prefill, kScaledDown);
    leave_prefill_if_drained(*changes.end_prefill);
  }
  if (changes.end_decode) {
    decode_.close(*changes.end_decode, kScaledDown);
    leave_decode_if_drained(*changes.end_decode);
  }
  if (changes.move_decode) begin_role_change(false, {*changes.move_decode}, true);
  if (!changes.move_prefill.empty()) begin_role_change(true, changes.move_prefill, true);
}

// It has occupied its NPUs since it began to start.
void ServicePools::complete_start(bool prefill) {
  scaler_.complete_start(prefill);
  const Time since = run_.now() - run_.deployment.scale.start;
  if (prefill) {
    prefill_.start_batch(prefill_.add_instance(since));
  } else {
    decode_.add_instance(since);
    dispatch_contexts();
  }
}

void ServicePools::complete_role_switch(std::size_t number) {
  if (role_changes_[number].scaled) scaler_.complete_move();
  if (role_changes_[number].prefill) {
    decode_.add_instance(run_.now());
    dispatch_contexts();
    return;
  }
  for (int k = 0; k < run_.deployment.decode.npus / run_.deployment.prefill.npus; ++k)
    prefill_.start_batch(prefill_.add_instance(run_.now()));
}

void ServicePools::set_occupancy(Occupancy& occupancy) const {
  prefill_.set_occupancy(occupancy);
  occupancy.waiting_decode = static_cast<std::int32_t>(ready_.size());
  occupancy.transferring = links_.transfers();
  decode_.set_occupancy(occupancy);
}

void ServicePools::add_to(ServiceResult& result) {
  prefill_.add_to(result);
  decode_.add_to(result);
  scaler_.add_to(result);
  result.rdma_busy_s = links_.busy_s();
  result.output_tokens = output_tokens_;
  result.restarted = restarted_;
  result.refused = refused_;
  result.preempted = preempted_;
  result.swapped = swapped_;
  result.lost_prompt_tokens = lost_prompt_tokens_;
  result.lost_output_tokens = lost_output_tokens_;
  result.role_switches = static_cast<std::int64_t>(role_changes_.size());
}

}  // namespace cm384::service
