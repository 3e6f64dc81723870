#include "workloads/service/decode_instance.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "traces/random.h"

namespace cm384::service {

DecodeInstance::DecodeInstance(const DecodeSpec& spec, std::uint64_t seed, int number)
    : spec_(spec),
      seed_(seed),
      dies_(static_cast<std::size_t>(spec.dies())),
      residents_(spec.reserve == "growing" ? dies_.size() : 0),
      epoch_(static_cast<std::uint32_t>(number) << 16) {}

DecodeInstance::Held DecodeInstance::held() const {
  Held held;
  held.away = away_ > 0;
  for (const Die& die : dies_) {
    held.requests += die.promised;
    held.bytes += die.bytes;
    held.dies += die.lost ? 0 : 1;
  }
  return held;
}

std::pair<int, std::int64_t> DecodeInstance::best_die(std::int64_t bytes, bool returns) const {
  if (away_ > 0 || (closed_ && !returns)) return {-1, 0};
  int best = -1;
  for (int d = 0; d < dies(); ++d) {
    const Die& die = dies_[static_cast<std::size_t>(d)];
    if (die.lost) continue;
    if (die.promised >= spec_.slots() || die.bytes + bytes > spec_.kv_room.count) continue;
    if (best < 0) {
      best = d;
      continue;
    }
    const Die& other = dies_[static_cast<std::size_t>(best)];
    if (std::pair(die.promised, die.bytes) < std::pair(other.promised, other.bytes)) best = d;
  }
  return {best, best < 0 ? 0 : dies_[static_cast<std::size_t>(best)].promised};
}

double DecodeInstance::kv_peak() const {
  return static_cast<double>(most_bytes_) / static_cast<double>(spec_.kv_room.count);
}

void DecodeInstance::reserve(int die, std::int64_t bytes) {
  Die& d = dies_[static_cast<std::size_t>(die)];
  ++d.promised;
  d.bytes += bytes;
  most_bytes_ = std::max(most_bytes_, d.bytes);
}

void DecodeInstance::release(int die, std::int64_t bytes) {
  Die& d = dies_[static_cast<std::size_t>(die)];
  --d.promised;
  d.bytes -= bytes;
  assert(d.promised >= 0 && d.bytes >= 0);
}

std::int32_t DecodeInstance::steps_for(std::int32_t tokens, std::uint32_t request,
                                       std::uint32_t attempt) const {
  traces::Random random(seed_, std::uint64_t{attempt} << 32 | request);
  // random.real() < acceptance, in the whole numbers that real() is made of.
  const auto whole = [](double share) { return static_cast<std::uint64_t>(std::ceil(share * 0x1p53)); };
  const bool alike = spec_.draft_acceptance.empty();
  const std::uint64_t accepted = whole(alike ? spec_.acceptance : spec_.draft_acceptance.front());
  const auto accepts = [&] { return random.next() >> 11 < accepted ? 1 : 0; };
  std::int32_t steps = 0, made = 0;
  if (spec_.mtp == 1) {
    for (; made < tokens; ++steps) made += 1 + accepts();
    return steps;
  }
  for (; made < tokens; ++steps) {
    ++made;
    const auto right = [&](int more) {
      if (alike) return accepts() > 0;
      return random.next() >> 11 < whole(spec_.draft_acceptance[static_cast<std::size_t>(more)]);
    };
    for (int more = 0; more < spec_.mtp && right(more); ++more) ++made;
  }
  return steps;
}

std::vector<DecodeInstance::Lost> DecodeInstance::begin_step() {
  for (const Active& active : joining_) {
    Die& die = dies_[static_cast<std::size_t>(active.die)];
    const std::int64_t rate = (std::int64_t{active.tokens} << kFraction) / active.steps;
    const std::int64_t base = (std::int64_t{active.prompt} << kFraction) - rate * step_;
    die.base += base;
    die.rate += rate;
    ++die.requests;
    ++requests_;
    const Leaving leaving{step_ + active.steps, order_++, active, base, rate};
    leaving_.push(leaving);
    if (!grows()) continue;
    residents(active.die).push_back(leaving);
    schedule_growth(leaving);
  }
  joining_.clear();
  std::vector<Lost> lost = grow();
  stepping_ = requests_ > 0;
  return lost;
}

// The first step that ends with a token more than its blocks hold.
void DecodeInstance::schedule_growth(const Leaving& resident) {
  const std::int64_t more = (resident.active.bytes / spec_.token.count + 1) << kFraction;
  const std::int64_t end = (more - resident.base + resident.rate - 1) / resident.rate;
  growing_.push({end - 1, resident.order, resident.active.die});
}

std::vector<DecodeInstance::Lost> DecodeInstance::grow() {
  std::vector<Lost> lost;
  const std::int64_t block = spec_.bytes_of_blocks(1);
  while (!growing_.empty() && growing_.top().step <= step_) {
    const Growth next = growing_.top();
    growing_.pop();
    Die& die = dies_[static_cast<std::size_t>(next.die)];
    std::vector<Leaving>& here = residents(next.die);
    const auto of = std::ranges::find(here, next.order, &Leaving::order);
    if (of == here.end()) continue;
    const std::ptrdiff_t number = of - here.begin();
    while (std::ssize(here) > number && die.bytes + block > spec_.kv_room.count) {
      const Leaving& last = here.back();
      leave(last);
      release(next.die, last.active.bytes);
      preempted_.insert(last.order);
      lost.push_back(lost_of(last.active, last.step));
      here.pop_back();
    }
    if (std::ssize(here) == number) continue;
    Leaving& resident = here[static_cast<std::size_t>(number)];
    resident.active.bytes += block;
    die.bytes += block;
    most_bytes_ = std::max(most_bytes_, die.bytes);
    schedule_growth(resident);
  }
  return lost;
}

void DecodeInstance::leave(const Leaving& leaving) {
  Die& die = dies_[static_cast<std::size_t>(leaving.active.die)];
  die.base -= leaving.base;
  die.rate -= leaving.rate;
  --die.requests;
  --requests_;
}

DecodeInstance::Load DecodeInstance::load(int least_batch, double least_kv) const {
  std::int64_t most_tokens = 0;
  int most = 0;
  for (const Die& die : dies_) {
    most = std::max(most, die.requests);
    most_tokens = std::max(most_tokens, die.base + die.rate * step_);
  }
  const int graph = spec_.graph_step;
  Load load;
  load.batch = std::max((spec_.dies_of_npu * most + graph - 1) / graph * graph, least_batch);
  // A padded graph computes no attention for slots that are empty: tokens spread over the requests of a full
  // one.
  const double kv =
      static_cast<double>(most_tokens >> kFraction) / (static_cast<double>(load.batch) / spec_.dies_of_npu);
  load.kv = static_cast<int>(std::ceil(std::max(kv, least_kv) / 128)) * 128;
  return load;
}

std::vector<std::vector<std::int32_t>> DecodeInstance::lengths() const {
  std::vector<std::vector<std::int32_t>> by_die(dies_.size());
  for (auto left = leaving_; !left.empty(); left.pop()) {
    const Leaving& one = left.top();
    if (was_preempted(one)) continue;
    by_die[static_cast<std::size_t>(one.active.die)].push_back(
        static_cast<std::int32_t>((one.base + one.rate * step_) >> kFraction));
  }
  return by_die;
}

std::vector<DecodeInstance::Active> DecodeInstance::end_step() {
  ++step_;
  stepping_ = false;
  std::vector<Active> ended;
  for (; !leaving_.empty() && leaving_.top().step == step_; leaving_.pop()) {
    const Leaving& leaving = leaving_.top();
    if (preempted_.erase(leaving.order) > 0) continue;
    leave(leaving);
    ended.push_back(leaving.active);
    if (!grows()) continue;
    std::vector<Leaving>& here = residents(leaving.active.die);
    const auto of = std::ranges::find(here, leaving.order, &Leaving::order);
    ended.back().bytes = of->active.bytes;
    here.erase(of);
  }
  return ended;
}

// Tokens come evenly over its steps.
DecodeInstance::Lost DecodeInstance::lost_of(const Active& active, std::int64_t last_step) const {
  const std::int64_t made = active.steps - (last_step - step_);
  return {active.request, active.tokens * made / active.steps, active.die, active.bytes};
}

std::vector<DecodeInstance::Lost> DecodeInstance::lose_all() {
  std::vector<Lost> lost;
  for (; !leaving_.empty(); leaving_.pop())
    if (!was_preempted(leaving_.top())) lost.push_back(lost_of(leaving_.top().active, leaving_.top().step));
  preempted_.clear();
  for (std::vector<Leaving>& here : residents_) here.clear();
  for (const Active& active : joining_) lost.push_back({active.request, 0});
  joining_.clear();
  for (Die& die : dies_) {
    const bool was_lost = die.lost;
    die = {};
    die.lost = was_lost;
  }
  requests_ = 0;
  stepping_ = false;
  ++away_;
  ++epoch_;
  return lost;
}

std::vector<DecodeInstance::Lost> DecodeInstance::lose_die(int number) {
  std::vector<Lost> lost;
  std::priority_queue<Leaving> others;
  for (; !leaving_.empty(); leaving_.pop()) {
    const Leaving& leaving = leaving_.top();
    if (preempted_.erase(leaving.order) > 0) continue;
    if (leaving.active.die != number) {
      others.push(leaving);
      continue;
    }
    lost.push_back(lost_of(leaving.active, leaving.step));
    --requests_;
  }
  leaving_ = std::move(others);
  std::erase_if(joining_, [&](const Active& active) {
    if (active.die == number) lost.push_back({active.request, 0});
    return active.die == number;
  });
  if (grows()) residents(number).clear();
  dies_[static_cast<std::size_t>(number)] = {};
  dies_[static_cast<std::size_t>(number)].lost = true;
  stepping_ = false;
  ++epoch_;
  return lost;
}

int DecodeInstance::idlest() const {
  int best = -1;
  for (int d = 0; d < dies(); ++d) {
    const Die& die = dies_[static_cast<std::size_t>(d)];
    if (!die.lost && (best < 0 || die.promised < dies_[static_cast<std::size_t>(best)].promised)) best = d;
  }
  return best;
}

void DecodeInstance::pause() {
  ++paused_;
  stepping_ = false;
  ++epoch_;
}

bool DecodeInstance::is_drained() const {
  return closed_ && runs() && std::ranges::all_of(dies_, [](const Die& die) { return die.promised == 0; });
}

}  // namespace cm384::service
