// A Unified Bus controller at SystemC's own times, for the doors at one endpoint.
//
// Others post into its queue from their windows, which lie at least a link's latency before what they post.
// It handles an event `ahead` before its time at the earliest, and never one that others may still precede.
#pragma once

#include <functional>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/transaction.h"
#include "system/machine/foreign_port.h"
#include "system/machine/supernode.h"
#include "ub_fabric/controller.h"

namespace cm384::doors {

class InitiatorDoor;
class TargetDoor;

class ForeignEndpoint final : public sc_core::sc_module,
                              public supernode::ForeignPort,
                              private sim::RemoteClient,
                              private sim::RemoteTarget {
 public:
  ForeignEndpoint(const sc_core::sc_module_name& name, supernode::Supernode& machine, int endpoint);
  ~ForeignEndpoint() override;

  // Its name in messages: "die 5", "CPU socket 2".
  const std::string& place() const { return place_; }
  supernode::Supernode& machine() { return machine_; }
  sim::PayloadPool& payloads() { return payloads_; }
  void set_initiator(InitiatorDoor& door) { initiator_ = &door; }
  void set_target(TargetDoor& door) { target_ = &door; }
  void set_ahead(Time ahead) { ahead_ = ahead; }
  // Sets what is called after modules have run: direct memory pointers may have become invalid.
  void set_invalidate_pointers(std::function<void()> invalidate_pointers) {
    invalidate_pointers_ = std::move(invalidate_pointers);
  }
  // A model that has not answered for so long counts as hung, and ends the run.
  void set_patience(Time patience) { patience_ = patience; }

  // Sends an initiator's request at request.at.
  void submit(const sim::Request& request);
  // Schedules the next activation, after events were added to the queue.
  void arm();
  // The earliest time that an event added now may have.
  Time horizon() const;
  // Ends the run with a MachineError: `what` the foreign model at this place did.
  void fail(const std::string& what);

  ub::UbController& controller() override { return controller_; }
  sim::EventQueue& queue() override { return queue_; }
  void look() override;
  void check(Time now) const override;
  std::string report() const override;

 private:
  enum Unit : std::uint32_t { kController, kSubmit };

  void run();
  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override;

  supernode::Supernode& machine_;
  std::string place_;
  sim::EventQueue queue_;
  sim::PayloadPool& payloads_;
  ub::UbController controller_;
  InitiatorDoor* initiator_ = nullptr;
  TargetDoor* target_ = nullptr;
  Time ahead_;
  Time patience_ = Time::never();
  std::vector<sim::Request> submitted_;  // by argument of their event
  std::vector<std::uint32_t> free_;      // of those
  std::function<void()> invalidate_pointers_;
  sc_core::sc_event wake_;
};

}  // namespace cm384::doors
