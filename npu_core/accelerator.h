// The seam between a machine and what computes or moves data in it. The Ascend die is one such part;
// docs/planes.md says how another one comes in.
//
// It has a queue and handles the events of its own units there, owns memory that fabrics reach
// (RemoteTarget), asks for memory of others by a port (RemoteClient), takes transfers as tasks, and reports.
#pragma once

#include <cstdint>
#include <string>

#include "base/engine/event_queue.h"
#include "base/engine/probe.h"
#include "base/engine/statistics.h"
#include "base/engine/transaction.h"
#include "npu_core/memory/backing_store.h"

namespace cm384::npu {

// A copy between two memories, GM addresses; one of them is the accelerator's own.
struct Transfer {
  std::uint64_t source = 0, destination = 0;
  std::uint64_t bytes = 0;
  sim::TransactionId id = 0;
};

// What compute units did for which nothing executes: operators at grade formula, the kernels of exchanges.
struct UnitWork {
  std::uint64_t bf16 = 0, fp8 = 0, int8 = 0;  // operations, two a multiply-add
  std::uint64_t memory_bytes = 0;             // read and written in memory by these operators
  std::uint64_t bytes = 0;                    // that units moved
};

class Accelerator : public sim::RemoteClient, public sim::RemoteTarget {
 public:
  // Units of its events are below this; others may use the queue from here on.
  static constexpr std::uint32_t kFirstForeignUnit = 0x10000;

  virtual ~Accelerator() = default;
  virtual int number() const = 0;
  virtual sim::EventQueue& queue() = 0;
  // An event whose unit is below kFirstForeignUnit.
  virtual void handle(const sim::Event& event) = 0;
  // Sets the port through which it reaches memory of others; before the first event.
  virtual void connect(sim::RemotePort& port) = 0;

  // Its memory as the host sees it, without simulated time; and the bytes of it that the host may allocate.
  virtual BackingStore& store() = 0;
  virtual std::uint64_t allocatable() const = 0;

  // Takes a transfer at an event of its queue; transfers begin in the order of the calls. Its last request's
  // leaving calls transfer_issued(), its end the listener of transactions, once follow() was called.
  virtual void transfer(const Transfer& transfer) = 0;
  virtual sim::Probe<sim::TransactionId>& transfer_issued() = 0;
  // From now on reports transactions, and the arrival of their requests, to the listener.
  virtual void follow() = 0;

  // Adds the work to the statistics. An accelerator whose cores count their own work ignores it.
  virtual void count_work(const UnitWork&) {}
  virtual std::uint64_t instructions() const = 0;
  virtual std::uint64_t memory_requests() const = 0;
  virtual void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const = 0;
  // For hang reports: one line for each operation in flight.
  virtual std::string report() const = 0;
};

}  // namespace cm384::npu
