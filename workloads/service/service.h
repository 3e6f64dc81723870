// The service that serve() runs (workloads/service/simulation.h): requests arrive one after another and
// behind those that they follow, pools and faults handle what happens, and samples and sums become the
// result.
#pragma once

#include <map>

#include "workloads/service/fault_plan.h"
#include "workloads/service/service_pools.h"
#include "workloads/service/service_run.h"

namespace cm384::service {

class Service {
 public:
  Service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
          const ServiceOptions& options);
  ServiceResult run();

 private:
  void schedule_arrival();
  void arrive(std::uint32_t request);
  void complete(std::uint32_t request);
  void handle(const Event& event);
  void sample_until(Time end);
  bool is_interrupted() const;
  double share_done() const;  // of the requests

  ServiceRun run_;
  ServicePools pools_;
  FaultPlan faults_;
  std::multimap<std::int32_t, std::uint32_t> followers_;  // of a request, in the order of the trace
  std::size_t next_ = 0;                                  // of the trace, to arrive
  std::size_t arrivals_ = 0;
  std::int64_t in_system_ = 0;
  Time last_done_{};
  Time sample_every_, next_sample_{};
  ServiceResult result_;
};

}  // namespace cm384::service
