// What drives dies in place of programs, such as a replay.
#pragma once

#include "npu_core/die/die.h"
#include "sim/event_queue.h"

namespace cm384::supernode {

class Driver {
 public:
  // Its events stand in the dies' queues under this unit.
  static constexpr std::uint32_t kUnit = npu::Die::kFirstForeignUnit + 2;
  virtual void handle(int die, const sim::Event& event) = 0;

 protected:
  ~Driver() = default;
};

}  // namespace cm384::supernode
