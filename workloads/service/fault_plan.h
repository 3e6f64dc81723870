// What goes wrong in a service, or is changed, when its time comes (workloads/service/faults.h), and how long
// anything was out of order.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/service/service_pools.h"
#include "workloads/service/service_run.h"

namespace cm384::service {

class FaultPlan {
 public:
  FaultPlan(ServiceRun& run, ServicePools& pools) : run_(run), pools_(pools), faults_(run.options.faults) {}

  // Puts all of the plan on the line of events.
  void schedule();
  // An event of the plan, or the end of one.
  void handle(const Event& event);

  // Instances away or paused, dies and planes lost.
  int out_of_order() const { return out_of_order_; }
  // Time with anything out of order, up to `end`.
  double degraded_s(Time end) const;

 private:
  using Kind = Event::Kind;
  void begin_outage(const Outage& outage, std::uint32_t number);
  void end_outage(const Outage& outage);
  void lose_die(const DieFault& fault);
  void resume(bool prefill, std::uint32_t i, bool restarted);
  void lose_plane(const PlaneFault& fault, std::uint32_t number);
  void restore_plane();
  void begin_degraded();  // one more part is out of order
  void end_degraded();
  void notify_away(bool prefill, std::uint32_t i, Time span) const;

  struct Span {
    Time begin{}, end{};
  };

  ServiceRun& run_;
  ServicePools& pools_;
  const Faults& faults_;
  std::size_t lost_planes_ = 0;
  int out_of_order_ = 0;
  Time degraded_since_{};  // while anything is out of order
  std::vector<Span> degraded_;
};

}  // namespace cm384::service
