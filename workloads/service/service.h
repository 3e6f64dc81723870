// The service that serve() runs (workloads/service/simulation.h): requests arrive one after another and
// behind those that they follow, pools and faults handle what happens, and samples and sums become the
// result.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/service/fault_plan.h"
#include "workloads/service/service_pools.h"
#include "workloads/service/service_run.h"

namespace cm384::service {

class Service {
 public:
  Service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
          const ServiceOptions& options);
  ServiceResult run();
  // run() in parts: begin(), advance() until is_done(), finish().
  void begin();
  bool is_done() const { return run_.events.empty() || is_interrupted(); }
  Time next_at() const { return run_.events.next_at(); }
  Time now() const { return run_.now(); }
  void advance();  // by an event
  ServiceResult finish();

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  void link_followers();
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
  // Of a request its first follower, and of a follower the next one, in the order of the trace; kNobody:
  // none. Empty where nobody follows.
  std::vector<std::uint32_t> first_follower_, next_follower_;
  std::size_t next_ = 0;  // of the trace, to arrive
  std::size_t arrivals_ = 0;
  std::uint64_t events_ = 0;
  std::int64_t in_system_ = 0;
  Time last_done_{};
  Time sample_every_, next_sample_{};
  ServiceResult result_;
};

}  // namespace cm384::service
