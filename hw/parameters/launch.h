// What a launch costs around a kernel's own work, until the task scheduler is modelled. A profiler's task
// duration is block_launch + the kernel + block_teardown.
#pragma once

#include "hw/parameters/describe.h"

namespace cm384::hw {

struct Launch {
  Time block_launch{};
  Time block_teardown{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("block_launch", self.block_launch, Range{Time{0}, 1_ms},
          "from a task's start on the die to the first instruction of its blocks");
    visit("block_teardown", self.block_teardown, Range{Time{0}, 1_ms},
          "from the last retired instruction of a task's blocks to the task's end");
  }
};

}  // namespace cm384::hw
