// An endpoint of the Unified Bus with a foreign model behind it, in the place of a die or a CPU socket
// (doors/). It runs at SystemC's own times, one event after another, while the machine's modules run ahead by
// a window.
#pragma once

#include <exception>
#include <string>
#include <vector>

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
  // Called after modules have run: they may have sent it packets.
  virtual void look() = 0;
  // Throws MachineError where the model has left a request unanswered for too long. Called now and then.
  virtual void check(Time now) const = 0;
  // For the report of a machine that hangs: empty, or lines that say what the model has not answered.
  virtual std::string report() const = 0;
};

// What the constructor of its controller needs.
struct ForeignSurroundings {
  ub::Parameters fabric;
  ub::PacketPool& packets;
  sim::PayloadPool& payloads;
  std::uint32_t source;  // of its queue
};

class Supernode;

// The foreign ports of a machine, and what they ask of it.
class ForeignPorts {
 public:
  explicit ForeignPorts(Supernode& machine) : machine_(machine) {}

  // Throws InputError for an endpoint that does not exist or takes part, and once the machine has run.
  ForeignSurroundings surroundings(int endpoint);
  // Connects a port to all sub-planes. It must outlive the runs, or detach().
  void join(ForeignPort& port);
  void detach(ForeignPort& port) { std::erase(ports_, &port); }
  const std::vector<ForeignPort*>& ports() const { return ports_; }

  // All of them handle their events at least so long before SystemC's time has come to them; less than a
  // link's latency. Windows are as much longer.
  void set_lookahead(Time ahead);
  Time lookahead() const { return ahead_; }
  // The least time that a packet takes from a sub-plane to an endpoint.
  Time link_lookahead() const;
  // Length of the windows in which modules run.
  Time window() const;
  // Ends the run, which rethrows `failure`.
  void fail(std::exception_ptr failure);
  // For hang detection: something happened at `at` that counts as progress.
  void progressed(Time at);

 private:
  Supernode& machine_;
  std::vector<ForeignPort*> ports_;
  Time ahead_{};
};

}  // namespace cm384::supernode
