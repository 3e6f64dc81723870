// The transactions of a die: their ids, and who is notified of them.
#pragma once

#include <cstdint>
#include <memory>

#include "base/engine/transaction.h"
#include "npu_core/causality/die_tracer.h"
#include "npu_core/core_socket.h"
#include "npu_core/devices/device_socket.h"
#include "npu_core/die/block_runner.h"
#include "npu_core/die/launch.h"

namespace cm384::npu {

class Die;

class Transactions {
 public:
  explicit Transactions(Die& die) : die_(die) {}

  // From now on writes into the log everything that decides what waited for what. `requests`: every request
  // too.
  void keep_log(TraceLog& log, bool requests);
  // nullptr: no log is kept.
  DieTracer* tracer() { return tracer_.get(); }
  // From now on notifies the die's listener.
  void follow() { follows_ = true; }
  // Set by a replay, whose copies already have transaction ids.
  void set_block_runner(BlockRunner& runner) { runner_ = &runner; }
  BlockRunner* runner() { return runner_; }

  // The first request of an MTE instruction leaves; of a copy of the SDMA engine. Returns the new id.
  sim::TransactionId begin(std::uint16_t core, const TransactionStart& start);
  sim::TransactionId begin_copy(const TransactionStart& start, const CopyStart& copy);
  void completed(std::uint16_t core, sim::TransactionId transaction, Time at);
  // A request from outside the die has arrived.
  void arrived(const sim::Request& request);

 private:
  sim::TransactionId new_id();
  void notify_begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start);

  Die& die_;
  sim::TransactionId last_ = 0;
  bool follows_ = false;
  BlockRunner* runner_ = nullptr;
  std::unique_ptr<DieTracer> tracer_;
};

}  // namespace cm384::npu
