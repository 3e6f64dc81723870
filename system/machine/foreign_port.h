// An endpoint of the Unified Bus with somebody else's model behind it, in the place of a die or a CPU socket
// (doors/). It runs at SystemC's own times, one event after another, while the machine's modules run ahead by
// a window.
#pragma once

#include <string>

#include "base/engine/event_queue.h"
#include "base/engine/payload.h"
#include "base/text/units.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/packet.h"
#include "ub_fabric/parameters.h"

namespace cm384::supernode {

class ForeignPort {
 public:
  virtual ~ForeignPort() = default;
  virtual ub::UbController& controller() = 0;
  virtual sim::EventQueue& queue() = 0;
  // After modules have run: they may have sent it something.
  virtual void look() = 0;
  // Throws MachineError where the model owes an answer for too long. Asked now and then.
  virtual void check(Time now) const = 0;
  // For the report of a machine that hangs: empty, or lines that say what the model has not answered.
  virtual std::string report() const = 0;
};

// What its controller is made from.
struct ForeignSurroundings {
  ub::Parameters fabric;
  ub::PacketPool& packets;
  sim::PayloadPool& payloads;
  std::uint32_t source;  // of its queue
};

}  // namespace cm384::supernode
