// Which instances of a service come, go or change their pool when its load is looked at (ScaleSpec). It
// decides; ServicePools does it and says when it is done.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/service/decode_pool.h"
#include "workloads/service/deployment.h"
#include "workloads/service/npu_budget.h"
#include "workloads/service/prefill_pool.h"

namespace cm384::service {

struct ScaleChanges {
  bool start_prefill = false, start_decode = false;      // an instance
  std::optional<std::uint32_t> end_prefill, end_decode;  // that drains and ends
  std::vector<std::uint32_t> move_prefill;               // that become one instance of decode together
  std::optional<std::uint32_t> move_decode;              // that becomes several of prefill
};

class PoolScaler {
 public:
  // Instances are started on NPUs of the budget, where there is one.
  explicit PoolScaler(const Deployment& deployment, NpuBudget* npus = nullptr, std::size_t member = 0)
      : deployment_(deployment), npus_(npus), member_(member) {}

  ScaleChanges decide(const PrefillPool::PoolLoad& prefill, const DecodePool::PoolLoad& decode, Time now);
  // An instance that was started serves now; one that changed its pool serves in the other.
  void complete_start(bool prefill) { --pool(prefill).starting; }
  void complete_move() { --moving_; }
  // An instance that was ended has drained.
  void complete_end(bool prefill, Time now);
  // No request is to come: NPUs that were acquired go back to the budget.
  void release_all(Time now);
  void add_to(ServiceResult& result) const;

 private:
  struct Pool {
    int starting = 0, acquired = 0;  // instances that start; that are on NPUs of the budget
    std::int64_t up = 0, down = 0;
  };
  Pool& pool(bool prefill) { return prefill ? prefill_ : decode_; }
  int npus_of(bool prefill) const { return prefill ? deployment_.prefill.npus : deployment_.decode.npus; }
  bool start(bool prefill, bool wanted, Time now);
  void move(const PrefillPool::PoolLoad& prefill, const DecodePool::PoolLoad& decode, ScaleChanges& changes);

  const Deployment& deployment_;
  NpuBudget* npus_;
  std::size_t member_;
  Pool prefill_, decode_;
  int moving_ = 0;
};

}  // namespace cm384::service
