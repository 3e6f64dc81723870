#include "npu_core/die/transactions.h"

#include "npu_core/die/die.h"

namespace cm384::npu {

void Transactions::keep_log(TraceLog& log, bool requests) {
  tracer_ = std::make_unique<DieTracer>(log, die_.number(), last_, requests);
}

sim::TransactionId Transactions::new_id() {
  return (static_cast<std::uint64_t>(die_.number() + 1) << 48) | ++last_;
}

sim::TransactionId Transactions::begin(std::uint16_t core, const TransactionStart& start) {
  const sim::TransactionId id = start.replayed != 0 ? start.replayed : new_id();
  if (tracer_) tracer_->begun(core, id, start, die_.memory_system().is_local(start.address), die_.now());
  if (follows_) notify_begun(core, id, start);
  return id;
}

sim::TransactionId Transactions::begin_copy(const TransactionStart& start, const CopyStart& copy) {
  const bool stands_in = runner_ != nullptr && copy.number != CopyStart::kNoStream;
  const sim::TransactionId id = stands_in ? runner_->copy_begins(die_.number(), copy.number) : new_id();
  if (tracer_) tracer_->copy_begun(id, start, copy, die_.memory_system().is_local(start.address), die_.now());
  if (follows_) notify_begun(kSdmaCore, id, start);
  return id;
}

void Transactions::notify_begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start) {
  const TransactionBegun begun{id,
                               start.address,
                               start.bytes,
                               die_.number(),
                               core,
                               start.operation,
                               die_.now(),
                               start.burst_bytes,
                               start.bursts,
                               start.stride,
                               start.allocate,
                               false,
                               start.engine,
                               {}};
  die_.listener().transaction_begun(begun);
}

void Transactions::completed(std::uint16_t core, sim::TransactionId transaction, Time at) {
  if (tracer_) tracer_->completed(core, transaction, at);
  if (follows_) die_.listener().transaction_completed({transaction, die_.number(), core, at});
}

void Transactions::arrived(const sim::Request& request) {
  if (tracer_) tracer_->arrived(request.transaction, request.address, request.bytes, request.at);
  if (follows_)
    die_.listener().transaction_arrived(request.transaction, die_.number(), request.bytes, request.at);
}

}  // namespace cm384::npu
