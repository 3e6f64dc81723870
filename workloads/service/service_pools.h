// Both pools of a service and the links between them: how a request goes from one to the next, how it starts
// anew when a fault takes its work, and how instances change their pool.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "workloads/service/context_links.h"
#include "workloads/service/context_queue.h"
#include "workloads/service/decode_pool.h"
#include "workloads/service/pool_scaler.h"
#include "workloads/service/prefill_pool.h"
#include "workloads/service/service_run.h"
#include "workloads/service/tenant_quota.h"

namespace cm384::service {

class ServicePools {
 public:
  // `on_complete` is called with each request that is done or refused.
  ServicePools(ServiceRun& run, const Library& library, std::function<void(std::uint32_t)> on_complete);

  void enqueue(std::uint32_t request);
  // What an event says; an event of another epoch or attempt changes nothing.
  void complete_batch(std::uint32_t i, std::uint32_t epoch);
  void complete_transfer(std::uint32_t request, std::uint32_t attempt);
  void complete_step(std::uint32_t i, std::uint32_t epoch);
  void complete_return(std::uint32_t request);
  // A step of an instance that computes prompts and answers is done.
  void complete_mixed(std::uint32_t i, bool decoded);

  // A prefill instance stops, and loses its batch; with `contexts` also what it has not sent.
  void stop_prefill(std::uint32_t i);
  void lose_prefill_work(std::uint32_t i, bool contexts);
  void lose_prefill_dies(std::uint32_t i, int dies) { prefill_.lose_dies(i, dies); }
  void resume_prefill(std::uint32_t i);

  // A decode instance is away with all its contexts until return_decode().
  void lose_decode(std::uint32_t i);
  void return_decode(std::uint32_t i);
  void pause_decode(std::uint32_t i) { decode_.pause(i); }
  // A decode instance continues; with `away` it was lost and returns.
  void resume_decode(std::uint32_t i, bool away);
  // Of a paused instance, for good: `die`, the idlest one besides where another takes its experts over; with
  // a restart all contexts of the instance.
  void lose_decode_die(std::uint32_t i, int die, Recovery recovery);

  void set_lost_planes(std::size_t planes);

  void begin_role_switch(const RoleSwitch& change);
  // Looks at the load of both pools, and begins what PoolScaler says.
  void scale();
  void complete_start(bool prefill);
  void end_scaling() { scaler_.release_all(run_.now()); }  // nothing is to come

  // Its instances have left their pool and serve in the other.
  void complete_role_switch(std::size_t number);

  void set_occupancy(Occupancy& occupancy) const;
  void add_to(ServiceResult& result);  // result.end is known

 private:
  using Lost = DecodePool::Lost;
  // Instances that change their pool together.
  struct RoleChange {
    bool prefill = true;  // what they were
    int open = 0;         // that have not left
    bool scaled = false;  // by the load
  };

  void start_prefill();
  void start_step(std::uint32_t i);
  void start_mixed(std::uint32_t i);
  bool has_place(std::uint32_t request, std::uint32_t group) const;
  void reserve_place(std::uint32_t request, std::uint32_t group);
  void end_prompts(std::uint32_t i);
  void end_step(std::uint32_t i);
  void preempt(const std::vector<Lost>& requests);
  void dispatch_contexts();
  void return_swapped();
  void lose_swapped(std::uint32_t decode, std::vector<Lost>& lost);
  void send_context(std::uint32_t request, int die);
  void collect_bound_for(std::uint32_t decode, int die, std::vector<Lost>& lost);
  void restart(std::vector<Lost> requests);
  void complete(std::uint32_t request);
  std::uint32_t attempt_of(std::uint32_t request) const {
    return static_cast<std::uint32_t>(run_.requests.served(request).restarts);
  }
  void begin_role_change(bool prefill, const std::vector<std::uint32_t>& instances, bool scaled);
  void leave_prefill_if_drained(std::uint32_t i);
  void leave_decode_if_drained(std::uint32_t i);
  void leave(bool prefill, std::size_t role_switch);

  ServiceRun& run_;
  PrefillPool prefill_;
  HostMemory host_;
  DecodePool decode_;
  ContextLinks links_;
  std::function<void(std::uint32_t)> on_complete_;
  TenantQuota quota_;
  ContextQueue ready_;  // that wait for a decode die
  std::vector<RoleChange> role_changes_;
  PoolScaler scaler_;
  std::vector<bool> stepping_;                    // where prompts and answers are computed in one pool
  std::unordered_map<std::uint32_t, int> place_;  // there: the die of a prompt that was begun
  std::int64_t output_tokens_ = 0, restarted_ = 0, refused_ = 0, preempted_ = 0, swapped_ = 0,
               lost_prompt_tokens_ = 0, lost_output_tokens_ = 0;
};

}  // namespace cm384::service
