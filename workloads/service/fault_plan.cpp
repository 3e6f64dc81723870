#include "workloads/service/fault_plan.h"

#include <algorithm>
#include <stdexcept>

namespace cm384::service {

void FaultPlan::schedule() {
  const auto schedule = [this](const auto& list, Kind kind) {
    for (std::size_t k = 0; k < list.size(); ++k)
      run_.events.push(list[k].at, kind, static_cast<std::uint32_t>(k));
  };
  schedule(faults_.outages, Kind::outage);
  schedule(faults_.dies, Kind::die_lost);
  schedule(faults_.planes, Kind::plane_lost);
  schedule(faults_.switches, Kind::role_switch);
}

void FaultPlan::handle(const Event& event) {
  switch (event.kind) {
    case Kind::outage:
      return begin_outage(faults_.outages[event.subject], event.subject);
    case Kind::back:
      return end_outage(faults_.outages[event.subject]);
    case Kind::die_lost:
      return lose_die(faults_.dies[event.subject]);
    case Kind::resume_prefill:
    case Kind::resume_decode:
      return resume(event.kind == Kind::resume_prefill, event.subject, event.epoch != 0);
    case Kind::plane_lost:
      return lose_plane(faults_.planes[event.subject], event.subject);
    case Kind::plane_back:
      return restore_plane();
    case Kind::role_switch:
      return pools_.begin_role_switch(faults_.switches[event.subject]);
    case Kind::role_taken:
      return pools_.complete_role_switch(event.subject);
    default:
      throw std::logic_error("an event that is not of the plan of faults");
  }
}

void FaultPlan::begin_degraded() {
  if (out_of_order_++ == 0) degraded_since_ = run_.now();
}

void FaultPlan::end_degraded() {
  if (--out_of_order_ == 0) degraded_.push_back({degraded_since_, run_.now()});
}

double FaultPlan::degraded_s(Time end) const {
  double s = 0;
  const auto add = [&](Time from, Time to) { s += std::max(0.0, seconds(std::min(to, end) - from)); };
  for (const Span& span : degraded_) add(span.begin, span.end);
  if (out_of_order_ > 0) add(degraded_since_, end);
  return s;
}

void FaultPlan::notify_away(bool prefill, std::uint32_t i, Time span) const {
  run_.notify({Activity::Kind::away, prefill, static_cast<int>(i), 0, run_.now(), run_.now() + span});
}

void FaultPlan::begin_outage(const Outage& outage, std::uint32_t number) {
  const auto i = static_cast<std::uint32_t>(outage.instance);
  begin_degraded();
  notify_away(outage.prefill, i, outage.duration);
  run_.events.push(run_.now() + outage.duration, Kind::back, number);
  if (outage.prefill) {
    pools_.stop_prefill(i);
    pools_.lose_prefill_work(i, true);
  } else {
    pools_.lose_decode(i);
  }
}

void FaultPlan::end_outage(const Outage& outage) {
  const auto i = static_cast<std::uint32_t>(outage.instance);
  end_degraded();
  if (outage.prefill)
    pools_.resume_prefill(i);
  else
    pools_.return_decode(i);
}

// The die is out of order for good, its instance for a pause.
void FaultPlan::lose_die(const DieFault& fault) {
  const auto i = static_cast<std::uint32_t>(fault.instance);
  const RecoveryTimes& times = run_.deployment.recovery;
  const bool restart = fault.recovery == Recovery::restart, taken = fault.recovery == Recovery::role_switch;
  const Time span = restart ? times.restart : taken ? times.role_switch : times.degrade;
  begin_degraded();
  begin_degraded();
  notify_away(fault.prefill, i, span);
  if (fault.prefill)
    pools_.stop_prefill(i);
  else
    pools_.pause_decode(i);
  run_.events.push(run_.now() + span, fault.prefill ? Kind::resume_prefill : Kind::resume_decode, i,
                   restart ? 1 : 0);
  if (fault.prefill) {
    pools_.lose_prefill_dies(i, taken ? 2 : 1);
    pools_.lose_prefill_work(i, restart);
  } else {
    pools_.lose_decode_die(i, fault.die, fault.recovery);
  }
}

void FaultPlan::resume(bool prefill, std::uint32_t i, bool restarted) {
  end_degraded();
  if (prefill)
    pools_.resume_prefill(i);
  else
    pools_.resume_decode(i, restarted);
}

void FaultPlan::lose_plane(const PlaneFault& fault, std::uint32_t number) {
  begin_degraded();
  pools_.set_lost_planes(++lost_planes_);
  if (fault.duration > Time{}) run_.events.push(run_.now() + fault.duration, Kind::plane_back, number);
}

void FaultPlan::restore_plane() {
  end_degraded();
  pools_.set_lost_planes(--lost_planes_);
}

}  // namespace cm384::service
