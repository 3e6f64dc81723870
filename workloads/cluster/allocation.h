// Jobs over time on a pool: who starts when and where.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "workloads/cluster/jobs.h"
#include "workloads/cluster/npu_pool.h"
#include "workloads/cluster/pool_watch.h"

namespace cm384::cluster {

// Which waiting job starts: the first alone, so that others wait behind it; or any that fits, the first such.
enum class Order : std::uint8_t { fcfs, any };
// With Order::any so many waiting jobs are looked at, as Slurm's bf_max_job_test has it by default.
inline constexpr std::size_t kLookedAt = 500;

struct Placed {
  std::int64_t start_ms = 0, end_ms = 0;
  std::vector<Place> blocks;
};

struct AllocationResult {
  std::vector<Placed> jobs;  // as in the trace
  std::int64_t end_ms = 0;   // of the last job
  // Shares of all NPUs that jobs hold, over time: while a job waits (empty waits: 0), and from the first
  // submission to the last end.
  double allocation_rate = 0, utilisation = 0;
  double waiting_share = 0;  // of that time, in which a job waits
  // While a job waits, over time: of the free NPUs, those beyond the largest block that would find a place.
  double fragmentation = 0;
  // Blocks that were moved to make room, NPU ms that jobs stood still for that, and their share of all NPU
  // time from the first submission to the last end.
  std::int64_t moves = 0;
  double moving_ms = 0, moving_share = 0;
  bool complete = true;
};

struct Policy {
  Fit fit = Fit::best;
  Order order = Order::fcfs;
  const BlockTraffic* traffic = nullptr;  // of Fit::min_cut
  // Where the first that waits has no place, blocks that run are moved for it. Their jobs stand still for so
  // long, and then it starts. Empty: none is moved.
  std::optional<std::int64_t> migrate_ms = {};
};

// Throws InputError for a job that no supernode could ever hold.
void check_jobs(const std::vector<Job>& jobs, const PoolShape& shape);

// `tell` is called with each start, false from it: nothing more is wanted. `watch` sees who has which NPUs;
// null: nobody does. Throws InputError as check_jobs() does.
AllocationResult allocate(const std::vector<Job>& jobs, const PoolShape& shape, const Policy& policy,
                          const std::function<bool(std::size_t started, std::int64_t now_ms)>& tell = {},
                          const PoolWatch* watch = nullptr);

}  // namespace cm384::cluster
