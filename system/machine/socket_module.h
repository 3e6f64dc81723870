// The CPU sockets that take part, as seen from the fabric: their DRAM behind a Unified Bus controller each.
#pragma once

#include <memory>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/payload.h"
#include "base/engine/statistics.h"
#include "base/engine/transaction.h"
#include "hw/machine.h"
#include "npu_core/memory/backing_store.h"
#include "ub_fabric/socket_dram.h"
#include "ub_fabric/unified_bus.h"

namespace cm384::supernode {

// DRAM of one socket as target of remote requests.
class SocketMemory final : public sim::RemoteTarget {
 public:
  SocketMemory(const hw::CpuSocket& parameters, sim::PayloadPool& payloads, Time& last_progress)
      : store_(parameters.memory_bytes),
        dram_(parameters),
        payloads_(payloads),
        last_progress_(last_progress) {}

  Time access(sim::Request& request, sim::Outcome& outcome) override;
  npu::BackingStore& store() { return store_; }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;

 private:
  npu::BackingStore store_;
  ub::SocketDram dram_;
  sim::PayloadPool& payloads_;
  Time& last_progress_;
};

// All sockets in one queue; unit n of its events is the n-th socket of the list.
class SocketModule {
 public:
  // Attaches them to `bus`, which outlives it.
  SocketModule(const ub::Parameters& parameters, const std::vector<int>& sockets, std::uint32_t source,
               ub::UnifiedBus& bus, sim::PayloadPool& payloads, Time& last_progress);

  sim::EventQueue& queue() { return queue_; }
  void run_until(Time end) {
    queue_.run_until(end, [this](const sim::Event& e) { controllers_[e.unit]->handle(e); });
  }
  void hold_credits() {
    for (ub::UbController* controller : controllers_) controller->ports().hold_credits();
  }
  void exchange(ub::Crossings& crossings) {
    crossings.events(queue_, [](const sim::Event& e) { return ub::UbController::brings_packet(e); });
    for (ub::UbController* controller : controllers_) crossings.credits(controller->ports());
  }
  // nullptr for a socket that does not take part.
  npu::BackingStore* store(int socket);
  // One registry path a socket: "socket3".
  void declare_statistics(sim::Statistics& to) const;

 private:
  sim::EventQueue queue_;
  std::vector<int> numbers_;
  std::vector<std::unique_ptr<SocketMemory>> memories_;
  std::vector<ub::UbController*> controllers_;
};

}  // namespace cm384::supernode
