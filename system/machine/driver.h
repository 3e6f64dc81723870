// Drives dies from outside: threads of the host, a replay.
#pragma once

#include <string>

#include "base/engine/event_queue.h"
#include "npu_core/devices/scheduler/task_record.h"

namespace cm384::supernode {

// Attached to a die by Supernode::attach(), which gives it a unit: events of that unit in the die's queue
// come to handle(). It lives in the module of each of its dies.
class Driver {
 public:
  virtual void handle(int die, const sim::Event& event) = 0;
  // Whether the event's argument is a packet that another module has sent.
  virtual bool brings_packet(const sim::Event& /*event*/) const { return false; }
  // An entry of one of the die's streams has ended.
  virtual void task_finished(int /*die*/, const npu::TaskRecord& /*record*/) {}
  // For the report of a machine that hangs: empty, or lines that say what it waits for.
  virtual std::string report(int /*die*/) const { return {}; }

 protected:
  ~Driver() = default;
};

}  // namespace cm384::supernode
