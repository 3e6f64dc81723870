// Observes what a service's instances and links do; changes nothing.
#pragma once

#include <cstdint>
#include <functional>

#include "base/text/units.h"

namespace cm384::service {

struct Activity {
  enum class Kind : std::uint8_t {
    batch,     // of prompts, on an instance of prefill
    transfer,  // of a context, on the link of a die of decode
    step,      // of an instance of decode
    away       // an instance of either pool
  };
  Kind kind = Kind::batch;
  bool prefill = true;        // which pool
  int instance = 0, die = 0;  // of the pool; of a transfer the die within the instance
  Time begin{}, end{};
  std::uint32_t request = 0;  // of a transfer
  int requests = 0;           // of a batch or step
  std::int64_t tokens = 0;    // that a batch computes; of a step, in the cache of each request
  bool lost = false;          // ended by a fault
};

using ServiceWatch = std::function<void(const Activity&)>;

}  // namespace cm384::service
