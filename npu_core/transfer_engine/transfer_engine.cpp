#include "npu_core/transfer_engine/transfer_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/memory/perform_request.h"

namespace cm384::npu {
namespace {

// What the data path that both kinds of accelerators share has of an SDMA engine.
hw::Sdma data_path_of(const hw::TransferEngine& p) {
  hw::Sdma made;
  made.channels = p.engines;
  made.bandwidth = p.bandwidth;
  made.read_outstanding = made.write_outstanding = p.outstanding;
  return made;
}

}  // namespace

TransferEngine::TransferEngine(int number, const hw::TransferEngine& parameters, sim::PayloadPool& payloads,
                               DieListener& listener, Time& last_progress, Bytes rdma_packet)
    : number_(number),
      start_latency_(parameters.start_latency),
      rdma_turn_(std::max<std::uint32_t>(sim::kRequestBytes, static_cast<std::uint32_t>(rdma_packet.count))),
      queue_(static_cast<std::uint32_t>(number), Time{32768}),
      payloads_(payloads),
      listener_(listener),
      last_progress_(last_progress),
      store_(parameters.memory),
      memory_(parameters),
      data_path_parameters_(data_path_of(parameters)),
      data_path_(data_path_parameters_, 0, *this, static_cast<std::uint32_t>(parameters.request.count)) {}

void TransferEngine::handle(const sim::Event& event) {
  if (event.unit == kDataPath) return data_path_.handle(event.what, event.argument);
  const Transfer next = starting_.front();
  starting_.pop_front();
  if (cm384_gm_via_rdma(next.source) || cm384_gm_via_rdma(next.destination)) {
    // A network interface reads what makes up a packet at once.
    data_path_.copy(next.source, next.destination, next.bytes, next.id, {sim::kRequestBytes, rdma_turn_});
  } else {
    data_path_.copy(next.source, next.destination, next.bytes, next.id);
  }
}

void TransferEngine::transfer(const Transfer& transfer) {
  for (const std::uint64_t address : {transfer.source, transfer.destination}) {
    if (is_local(address) && !contains(cm384_gm_offset(address), transfer.bytes))
      throw InputError(
          fmt::format("die {}: a transfer of {} B at offset {:#x}; transfer_engine.memory is {} B", number_,
                      transfer.bytes, cm384_gm_offset(address), store_.capacity()));
  }
  ++transfers_;
  starting_.push_back(transfer);
  queue_.push(queue_.now() + start_latency_, kStarts, 0);
}

void TransferEngine::count_work(const UnitWork& work) {
  work_.bf16 += work.bf16;
  work_.fp8 += work.fp8;
  work_.int8 += work.int8;
  work_.memory_bytes += work.memory_bytes;
  work_.bytes += work.bytes;
}

void TransferEngine::completed(const sim::Completion& completion, Time) {
  if (completion.outcome != sim::Outcome::done)
    throw MachineError(fmt::format("die {}: no memory where a transfer reads or writes", number_));
  data_path_.completed(completion);
}

Time TransferEngine::access(sim::Request& request, sim::Outcome& outcome) {
  if (!perform(store_, payloads_, request, outcome)) return request.at;
  if (request.operation == sim::Operation::read) return memory_.access(false, request.bytes, request.at);
  if (follows_) listener_.transaction_arrived(request.transaction, number_, request.bytes, request.at);
  progressed();
  return memory_.access(true, request.bytes, request.at);
}

// --- what the data path asks of it

void TransferEngine::schedule(Time at, std::uint32_t what, std::uint64_t argument) {
  queue_.push(at, kDataPath, what, argument);
}

bool TransferEngine::is_local(std::uint64_t address) const {
  return cm384_is_gm(address) && !cm384_gm_is_cpu(address) &&
         cm384_gm_unit(address) == static_cast<std::uint64_t>(number_);
}

Time TransferEngine::read(std::uint64_t offset, std::byte* into, std::uint32_t bytes, sim::TagMask& tags,
                          bool) {
  tags = store_.read(offset, into, bytes);
  return memory_.access(false, bytes, now());
}

Time TransferEngine::write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes,
                           sim::TagMask tags, sim::TransactionId) {
  store_.write(offset, from, bytes, tags);
  progressed();
  return memory_.access(true, bytes, now());
}

Time TransferEngine::add(std::uint64_t offset, std::uint32_t value) {
  std::array<std::byte, sizeof value> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  store_.atomic_add(offset, bytes.data(), sizeof value, 0, sim::Operation::atomic_add_s32, nullptr);
  return memory_.access(true, sizeof value, now());
}

void TransferEngine::submit(sim::Request request) {
  request.core = kSdmaCore;
  port_->submit(request);
}

// Transfers bring theirs.
sim::TransactionId TransferEngine::new_transaction(std::uint64_t, std::uint64_t, sim::Operation,
                                                   const CopyStart&) {
  return 0;
}

void TransferEngine::transaction_completed(sim::TransactionId transaction) {
  if (follows_) listener_.transaction_completed({transaction, number_, kSdmaCore, now()});
}

void TransferEngine::progressed() {
  last_progress_ = std::max(last_progress_, now());
}

std::string TransferEngine::report() const {
  std::string text;
  for (std::string lines = data_path_.report(); !lines.empty();) {
    const std::size_t end = lines.find('\n') + 1;
    text += fmt::format("die {} {}", number_, lines.substr(0, end));
    lines.erase(0, end);
  }
  return text;
}

void TransferEngine::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const auto path = at.part("transfers");
  to.declare(path, "taken", "transfers", "taken into the queue", transfers_);
  data_path_.declare_statistics(to, path);
  to.declare(at.part("memory"), "accesses", "requests", "to the memory, of its own engines and of others",
             memory_.accesses());
  to.declare(at.part("memory"), "bytes", "B", "read or written by them", memory_.bytes());
  const auto units = at.part("processor");
  to.declare(units, "operations_bf16", "operations", "of products in BF16, two a multiply-add", work_.bf16);
  to.declare(units, "operations_fp8", "operations", "the same in FP8", work_.fp8);
  to.declare(units, "operations_int8", "operations", "the same in INT8", work_.int8);
  to.declare(units, "memory_bytes", "B", "read and written in memory by operators at grade formula",
             work_.memory_bytes);
  to.declare(units, "bytes", "B", "that units moved, read and written together", work_.bytes);
}

}  // namespace cm384::npu
