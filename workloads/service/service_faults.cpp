#include <algorithm>

#include "workloads/service/service.h"

namespace cm384::service {

using Lost = DecodeInstance::Lost;

void Service::plan_faults() {
  const Faults& faults = options_.faults;
  const auto plan = [this](const auto& list, Kind kind) {
    for (std::size_t k = 0; k < list.size(); ++k) push(list[k].at, kind, static_cast<std::uint32_t>(k));
  };
  plan(faults.outages, Kind::outage);
  plan(faults.dies, Kind::die_lost);
  plan(faults.planes, Kind::plane_lost);
  plan(faults.switches, Kind::role_switch);
}

void Service::broken(int change) {
  if (broken_ == 0) broken_since_ = now_;
  broken_ += change;
  if (broken_ == 0) degraded_.emplace_back(broken_since_, now_);
}

// The batch of an instance, and with `contexts` what it has not sent.
void Service::lose_prefill_work(std::uint32_t i, bool contexts) {
  PrefillInstance& instance = prefill_[i];
  if (instance.busy) end_batch(i, true);
  ++instance.epoch;
  std::vector<Lost> again;
  for (const std::uint32_t k : instance.batch) again.push_back({k, 0});
  instance.batch.clear();
  if (contexts) {
    const auto of_it = [&](std::uint32_t k) { return served(k).instance == static_cast<int>(i); };
    for (const std::uint32_t k : ready_)
      if (of_it(k)) again.push_back({k, 0});
    std::erase_if(ready_, of_it);
    for (std::uint32_t k = 0; k < served_count(); ++k) {
      const Served& s = served(k);
      if (!of_it(k) || s.die < 0 || s.transferred != Time{}) continue;
      const int dies = decode_[0].dies();
      const auto d = static_cast<std::uint32_t>(s.die / dies);
      decode_[d].release(s.die % dies, context_of(request(k)));
      leave_decode(d);
      again.push_back({k, 0});
    }
  }
  start_anew(std::move(again));
}

// Contexts that are being sent to a die of an instance, or with `die` -1 to any.
std::vector<Lost> Service::on_the_way_to(std::uint32_t decode, int die) const {
  std::vector<Lost> found;
  const int dies = decode_[0].dies();
  for (std::uint32_t k = 0; k < result_.served.size(); ++k) {
    const Served& s = result_.served[k];
    if (s.die < 0 || s.transferred != Time{} || s.die / dies != static_cast<int>(decode)) continue;
    if (die < 0 || s.die % dies == die) found.push_back({k, 0});
  }
  return found;
}

// What was made of them is lost: they wait again, before those that came later.
void Service::start_anew(std::vector<Lost> again) {
  std::ranges::sort(again, {}, &Lost::request);
  std::vector<std::uint32_t> numbers;
  for (const Lost& lost : again) {
    Served& s = served(lost.request);
    const Request& r = request(lost.request);
    numbers.push_back(lost.request);
    result_.lost_prompt_tokens += r.prompt - s.cached();
    if (s.first_token != Time{}) {
      --result_.output_tokens;
      result_.lost_output_tokens += 1 + lost.tokens;
      if (s.transferred == Time{}) --prefill_[static_cast<std::size_t>(s.instance)].held;
    }
    s.first_token = s.transfer_start = s.transferred = {};
    if (s.die >= 0)
      std::erase(stepping_[static_cast<std::size_t>(s.die / decode_[0].dies())].joined, lost.request);
    s.die = -1;
    ++s.restarts;
  }
  waiting_.insert(waiting_.begin(), numbers.begin(), numbers.end());
  result_.restarted += static_cast<std::int64_t>(again.size());
  for (std::uint32_t p = 0; p < prefill_.size(); ++p) {
    start_prefill(p);
    leave_prefill(p);
  }
}

void Service::go_away(const Outage& outage, std::uint32_t number) {
  const auto i = static_cast<std::uint32_t>(outage.instance);
  broken(1);
  tell({Activity::Kind::away, outage.prefill, outage.instance, 0, now_, now_ + outage.duration});
  push(now_ + outage.duration, Kind::back, number);
  if (outage.prefill) {
    ++prefill_[i].away;
    lose_prefill_work(i, true);
    return;
  }
  if (decode_[i].stepping()) end_step(i, true);
  std::vector<Lost> again = decode_[i].lose_all();
  const std::vector<Lost> sent = on_the_way_to(i, -1);
  again.insert(again.end(), sent.begin(), sent.end());
  start_anew(std::move(again));
}

void Service::come_back(const Outage& outage) {
  const auto i = static_cast<std::uint32_t>(outage.instance);
  broken(-1);
  if (outage.prefill) {
    --prefill_[i].away;
    start_prefill(i);
    leave_prefill(i);
  } else {
    decode_[i].come_back();
    admit();
    leave_decode(i);
  }
}

// With `restart` an instance of decode was taken away, and comes back.
void Service::pause(bool prefill, std::uint32_t i, Time span, bool restart) {
  broken(1);
  tell({Activity::Kind::away, prefill, static_cast<int>(i), 0, now_, now_ + span});
  if (prefill) {
    ++prefill_[i].paused;
  } else {
    if (decode_[i].stepping()) end_step(i, true);
    decode_[i].pause();
  }
  push(now_ + span, prefill ? Kind::resume_prefill : Kind::resume_decode, i, restart ? 1 : 0);
}

void Service::resume(bool prefill, std::uint32_t i, bool restart) {
  broken(-1);
  if (prefill) {
    --prefill_[i].paused;
    start_prefill(i);
    leave_prefill(i);
  } else {
    decode_[i].resume();
    if (restart) decode_[i].come_back();
    admit();
    start_step(i);
    leave_decode(i);
  }
}

void Service::lose_die(const DieFault& fault) {
  const auto i = static_cast<std::uint32_t>(fault.instance);
  const RecoveryTimes& times = deployment_.recovery;
  const bool restart = fault.recovery == Recovery::restart, taken = fault.recovery == Recovery::role_switch;
  const Time span = restart ? times.restart : taken ? times.role_switch : times.degrade;
  broken(1);  // for good
  pause(fault.prefill, i, span, restart);
  if (fault.prefill) {
    prefill_[i].lost_dies += taken ? 2 : 1;
    lose_prefill_work(i, restart);
    return;
  }
  DecodeInstance& decode = decode_[i];
  std::vector<Lost> again;
  const auto take = [&](const std::vector<Lost>& lost) {
    again.insert(again.end(), lost.begin(), lost.end());
  };
  for (int round = 0; round < (taken ? 2 : 1); ++round) {
    const int die = round == 0 ? fault.die : decode.idlest();
    take(on_the_way_to(i, die));
    take(decode.lose_die(die));
  }
  if (restart) {
    take(on_the_way_to(i, -1));
    take(decode.lose_all());
    std::ranges::sort(again, {}, &Lost::request);
    const auto same = [](const Lost& one, const Lost& other) { return one.request == other.request; };
    again.erase(std::unique(again.begin(), again.end(), same), again.end());
  }
  start_anew(std::move(again));
}

void Service::lose_plane(const PlaneFault& fault, std::uint32_t number) {
  broken(1);
  planes_.push_back(fault.plane);
  if (fault.duration > Time{}) push(now_ + fault.duration, Kind::plane_back, number);
}

void Service::find_plane(const PlaneFault& fault) {
  broken(-1);
  planes_.erase(std::ranges::find(planes_, fault.plane));
}

}  // namespace cm384::service
