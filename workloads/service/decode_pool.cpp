#include "workloads/service/decode_pool.h"

#include <algorithm>

#include "traces/fixed_math.h"

namespace cm384::service {

DecodePool::DecodePool(ServiceRun& run, const Library& library, HostMemory& host)
    : run_(run),
      host_(host),
      steps_(library, run.deployment.decode_dies(), run.deployment.decode.mtp,
             run.deployment.decode.dies_of_npu),
      dies_(run.deployment.decode_dies()),
      samples_(run.options.step_samples, run.options.seed),
      gaps_before_(run.requests.size()) {
  for (int k = 0; k < run.deployment.decode.instances; ++k) add_instance(run.now());
}

std::optional<int> DecodePool::find_die(std::int64_t bytes, std::optional<std::uint32_t> returns) const {
  if (returns) {
    const int die = instances_[*returns].dies.best_die(bytes, true).first;
    if (die < 0) return {};
    return static_cast<int>(*returns) * dies_ + die;
  }
  std::optional<int> found;
  std::int64_t least = INT64_MAX;
  for (std::size_t k = 0; k < instances_.size(); ++k) {
    if (host_.next(static_cast<std::uint32_t>(k)) != nullptr) continue;
    const auto [die, requests] = instances_[k].dies.best_die(bytes);
    if (die < 0 || requests >= least) continue;
    found = static_cast<int>(k) * dies_ + die;
    least = requests;
  }
  return found;
}

std::int64_t DecodePool::bytes_of(std::uint32_t request) const {
  const Request& r = run_.requests.request(request);
  if (run_.deployment.decode.reserve == "growing")
    return run_.deployment.decode.bytes_of_blocks(run_.requests.context_tokens(request));
  return static_cast<std::int64_t>(r.prompt + r.output) * run_.deployment.decode.token.count;
}

void DecodePool::reserve(int die, std::int64_t bytes) {
  dies_of(die).reserve(die % dies_, bytes);
}

void DecodePool::release(int die, std::int64_t bytes) {
  dies_of(die).release(die % dies_, bytes);
}

std::int32_t DecodePool::steps_for(std::uint32_t request) const {
  return instances_.front().dies.steps_for(
      run_.requests.decode_tokens(request), request,
      static_cast<std::uint32_t>(run_.requests.served(request).preemptions));
}

void DecodePool::join(std::uint32_t request) {
  const Served& s = run_.requests.served(request);
  dies_of(s.die).join({request, s.die % dies_, run_.requests.context_tokens(request),
                       run_.requests.decode_tokens(request), s.steps, bytes_of(request)});
}

Time DecodePool::last_token(std::uint32_t request) const {
  const Served& s = run_.requests.served(request);
  const Instance& instance = instances_[instance_of(s.die)];
  return waits_for_first_step(instance, request) ? s.last_token : instance.last_end;
}

bool DecodePool::waits_for_first_step(const Instance& instance, std::uint32_t request) {
  return std::ranges::count(instance.joined, request) > 0;
}

DecodePool::Begun DecodePool::begin_step(std::uint32_t i) {
  Instance& instance = instances_[i];
  DecodeInstance& dies = instance.dies;
  if (dies.stepping() || !dies.runs()) return {};
  // Those of a step that was lost and begins again have joined before.
  for (const DecodeInstance::Active& active : dies.joining()) {
    instance.joined.push_back(active.request);
    if (run_.latencies.on()) run_.latencies.join(active.request, instance.all);
  }
  Begun begun{dies.begin_step(), {}, dies.epoch(), 0};
  std::ranges::sort(begun.preempted, {}, &Lost::request);
  for (Lost& one : begun.preempted) {
    one.last_token = last_token(one.request);
    if (!waits_for_first_step(instance, one.request)) end_gaps(instance, one.request);
    if (run_.latencies.on()) run_.latencies.leave(one.request, instance.all);
  }
  const Time copies = host_.swap_out(i, begun.preempted, run_.now()) - run_.now();
  if (!dies.stepping()) return begun;
  const DecodeInstance::Load load = dies.load(steps_.least_batch(), steps_.least_kv());
  const StepTime time = step_time(load);
  run_.evidence.add(time, "a decode step ({:.0f}, {:.0f} tokens of context)", load.batch, load.kv);
  samples_.see(run_.now(), static_cast<int>(i), dies, load);
  Time more = of_ms(time.ms * (plane_factor_ - 1)) + copies;
  const DecodeSpec& decode = run_.deployment.decode;
  if (decode.renew_every > 0 && ++instance.count % decode.renew_every == 0) {
    more += decode.renew_time;
    ++renewals_;
  }
  more += decode.bubble;
  run_.evidence.add_parameter(seconds(more));
  const Time span = of_ms(time.ms) + more;
  busy_s_ += seconds(span);
  batch_sum_ += static_cast<double>(dies.requests());
  ++count_;
  instance.begin = run_.now();
  instance.end = run_.now() + span;
  instance.load = load;
  instance.requests = dies.requests();
  instance.known = EvidenceSum::of(time, span);
  begun.span = span;
  begun.requests = dies.requests();
  return begun;
}

void DecodePool::extend(std::uint32_t i, Time more) {
  instances_[i].end += more;
  busy_s_ += seconds(more);
}

// A lost step was busy until now only.
void DecodePool::end_step(std::uint32_t i, bool lost) {
  const Instance& instance = instances_[i];
  busy_s_ -= seconds(instance.end - run_.now());
  Activity activity{Activity::Kind::step, false, static_cast<int>(i), 0, instance.begin, run_.now()};
  activity.requests = instance.requests;
  activity.tokens = instance.load.kv;
  activity.lost = lost;
  run_.notify(activity);
}

const StepTime& DecodePool::step_time(const DecodeInstance::Load& load) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(load.batch) << 32 | static_cast<std::uint32_t>(load.kv);
  const auto [found, is_new] = known_steps_.try_emplace(key);
  if (is_new) found->second = steps_.at(load.batch, load.kv);
  return found->second;
}

void DecodePool::count_gaps(Instance& instance) {
  for (const std::uint32_t k : instance.joined) run_.end_gap(k);
  const std::int64_t others = instance.requests - std::ssize(instance.joined);
  if (others > 0) {
    const Time wait = run_.now() - instance.last_end;
    run_.gaps.add(wait, others);
    instance.gaps.add(wait);
  }
  for (const std::uint32_t k : instance.joined) gaps_before_[k] = instance.gaps.count();
  instance.joined.clear();
  instance.last_end = run_.now();
}

// A request that has had a step here, or several, has no further one.
void DecodePool::end_gaps(const Instance& instance, std::uint32_t request) {
  run_.requests.note_gap(request, instance.gaps.longest_since(gaps_before_[request]));
}

std::vector<DecodeInstance::Active> DecodePool::complete_step(std::uint32_t i) {
  end_step(i, false);
  count_gaps(instances_[i]);
  std::vector<DecodeInstance::Active> ended = instances_[i].dies.end_step();
  for (const DecodeInstance::Active& active : ended) end_gaps(instances_[i], active.request);
  if (run_.latencies.on()) {
    instances_[i].all += instances_[i].known;
    for (const DecodeInstance::Active& active : ended)
      run_.latencies.leave(active.request, instances_[i].all);
  }
  return ended;
}

std::vector<DecodePool::Lost> DecodePool::lose_all(std::uint32_t i) {
  if (instances_[i].dies.stepping()) end_step(i, true);
  return instances_[i].dies.lose_all();
}

void DecodePool::forget(std::uint32_t request) {
  std::erase(instances_[instance_of(run_.requests.served(request).die)].joined, request);
}

void DecodePool::pause(std::uint32_t i) {
  if (instances_[i].dies.stepping()) end_step(i, true);
  instances_[i].dies.pause();
}

void DecodePool::set_lost_planes(std::size_t planes) {
  plane_factor_ = traces::power(run_.deployment.recovery.plane_step, static_cast<unsigned>(planes));
}

void DecodePool::close(std::uint32_t i, std::size_t role_switch) {
  instances_[i].dies.close();
  instances_[i].member.role_switch = role_switch;
}

std::optional<std::size_t> DecodePool::leave_if_drained(std::uint32_t i) {
  if (!instances_[i].dies.is_drained() || !host_.empty(i)) return {};
  return instances_[i].member.leave(run_.now());
}

void DecodePool::add_instance(Time since) {
  const int number = static_cast<int>(instances_.size());
  instances_.push_back({DecodeInstance(run_.deployment.decode, run_.options.seed, number)});
  instances_.back().member.since = since;
}

DecodePool::PoolLoad DecodePool::load(std::int64_t waiting, std::int64_t bytes) const {
  PoolLoad load;
  std::int64_t fewest = INT64_MAX;
  for (std::size_t k = 0; k < instances_.size(); ++k) {
    const Instance& instance = instances_[k];
    if (!instance.member.open()) continue;
    ++load.open;
    const DecodeInstance::Held held = instance.dies.held();
    if (held.away) continue;
    waiting += held.requests;
    bytes += held.bytes;
    load.there += static_cast<double>(held.dies) / dies_;
    if (held.requests > fewest) continue;
    fewest = held.requests;
    load.idlest = static_cast<std::uint32_t>(k);
  }
  const DecodeSpec& spec = run_.deployment.decode;
  const int per_die = spec.slots();
  const double slots = static_cast<double>(per_die) * dies_,
               room = static_cast<double>(spec.kv_room.count) * dies_;
  load.used = std::max(static_cast<double>(waiting) / slots, static_cast<double>(bytes) / room);
  return load;
}

void DecodePool::set_occupancy(Occupancy& occupancy) const {
  const auto there = std::ranges::count_if(
      instances_, [](const Instance& instance) { return instance.member.until == Time::never(); });
  occupancy.decode_instances = static_cast<std::int32_t>(there);
  const double room = static_cast<double>(run_.deployment.decode.kv_room.count) * dies_;
  for (const Instance& instance : instances_) {
    occupancy.decoding += instance.dies.requests();
    occupancy.kv_share += static_cast<double>(instance.dies.held().bytes) / room /
                          static_cast<double>(std::max<std::ptrdiff_t>(1, there));
  }
}

void DecodePool::add_to(ServiceResult& result) {
  result.decode_busy_s = busy_s_;
  result.batch_sum = batch_sum_;
  result.steps = count_;
  result.renewals = renewals_;
  result.steps_drawn = samples_.release();
  for (const Instance& instance : instances_)
    result.kv_peak = std::max(result.kv_peak, instance.dies.kv_peak());
  for (const Instance& instance : instances_)
    result.decode_pool_s += instance.member.seconds_until(result.end);
}

}  // namespace cm384::service
