// Notified of what happens to a pool and to the jobs on it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "workloads/cluster/npu_pool.h"

namespace cm384::cluster {

// Times in seconds. Calls come at the ends of what they tell, in no other order. All are to be there.
struct PoolWatch {
  // NPUs that a job had, and what it did meanwhile, in words that last as long as the program.
  std::function<void(std::size_t job, const Place& place, std::string_view doing, double from, double to)>
      held;
  // A job that waited for NPUs until it got them.
  std::function<void(std::size_t job, double from, double to)> waited;
  // A node of the pool that a fault of `part` took away.
  std::function<void(std::size_t node, const std::string& part, double from, double to)> away;
};

}  // namespace cm384::cluster
