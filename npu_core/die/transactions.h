// The transactions of a die: their ids, and who hears of them.
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

  // From now on writes into the log what tells who waited for whom. `requests`: every request as well.
  void keep_log(TraceLog& log, bool requests);
  // nullptr: no log is kept.
  DieTracer* tracer() { return tracer_.get(); }
  // From now on notifies the die's listener.
  void follow() { follows_ = true; }
  // Set by a replay, whose copies have ids already.
  void stand_in(BlockRunner& runner) { runner_ = &runner; }
  BlockRunner* runner() { return runner_; }

  // A MTE instruction's first request leaves; a copy's of the SDMA engine.
  sim::TransactionId begin(std::uint16_t core, const TransactionStart& start);
  sim::TransactionId begin_copy(const TransactionStart& start, const CopyStart& copy);
  void completed(std::uint16_t core, sim::TransactionId transaction, Time at);
  // A request of another one's has come.
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
