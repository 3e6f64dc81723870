// An accelerator without cores: memory, a port, a queue of transfers. It replays imported traces, and
// describes a part of which no more is known than how it moves data.
//
// A transfer enters the queue; start_latency later a free engine takes it. Engines take turns request by
// request, as the channels of the Ascend die's SDMA engine, whose data path they share.
#pragma once

#include <cstdint>
#include <string>

#include "hw/parameters/accelerator.h"
#include "hw/parameters/sdma.h"
#include "npu_core/accelerator.h"
#include "npu_core/devices/device_socket.h"
#include "npu_core/devices/sdma/sdma_engine.h"
#include "npu_core/die/launch.h"

namespace cm384::npu {

// Memory timing: a fixed latency behind one data bus.
class PlainMemory {
 public:
  explicit PlainMemory(const hw::TransferEngine& parameters)
      : byte_(Bytes{1}, parameters.memory_bandwidth),
        read_latency_(parameters.memory_read_latency),
        write_latency_(parameters.memory_write_latency) {}

  // When the data (read) or the acknowledgement (write) of an access at `now` is available.
  Time access(bool write, std::uint32_t bytes, Time now) {
    const std::int64_t asked = byte_.tick_at_or_after(now);
    const std::int64_t first = std::max(free_, asked);
    free_ = first + bytes;
    ++accesses_;
    bytes_ += bytes;
    const Time queued = first == asked ? Time{} : byte_.start(first) - now;
    return now + queued + (write ? write_latency_ : read_latency_);
  }
  const std::uint64_t& accesses() const { return accesses_; }
  const std::uint64_t& bytes() const { return bytes_; }

 private:
  Clock byte_;
  Time read_latency_, write_latency_;
  std::int64_t free_ = 0;  // byte tick at which the bus is free
  std::uint64_t accesses_ = 0, bytes_ = 0;
};

class TransferEngine final : public Accelerator, private DeviceSocket {
 public:
  // `parameters` outlive it. `rdma_packet`: payload of a packet of the RDMA plane at most.
  TransferEngine(int number, const hw::TransferEngine& parameters, sim::PayloadPool& payloads,
                 DieListener& listener, Time& last_progress, Bytes rdma_packet);

  int number() const override { return number_; }
  sim::EventQueue& queue() override { return queue_; }
  void handle(const sim::Event& event) override;
  void connect(sim::RemotePort& port) override { port_ = &port; }
  BackingStore& store() override { return store_; }
  std::uint64_t allocatable() const override { return store_.capacity(); }
  void transfer(const Transfer& transfer) override;
  sim::Probe<sim::TransactionId>& transfer_issued() override { return data_path_.issued; }
  void follow() override { follows_ = true; }
  void count_work(const UnitWork& work) override;
  std::uint64_t instructions() const override { return 0; }
  std::uint64_t memory_requests() const override { return memory_.accesses(); }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;
  std::string report() const override;

  // RemoteClient, RemoteTarget
  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override;

 private:
  enum Unit : std::uint32_t { kDataPath, kStarts };

  // DeviceSocket, of the data path
  Time now() const override { return queue_.now(); }
  void schedule(Time at, std::uint32_t what, std::uint64_t argument) override;
  bool is_local(std::uint64_t address) const override;
  bool contains(std::uint64_t offset, std::uint64_t bytes) const override {
    return store_.contains(offset, bytes);
  }
  Time read(std::uint64_t offset, std::byte* into, std::uint32_t bytes, sim::TagMask& tags,
            bool allocate) override;
  Time write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes, sim::TagMask tags,
             sim::TransactionId transaction) override;
  Time add(std::uint64_t offset, std::uint32_t value) override;
  void submit(sim::Request request) override;
  sim::PayloadPool& payloads() override { return payloads_; }
  sim::TransactionId new_transaction(std::uint64_t address, std::uint64_t bytes, sim::Operation operation,
                                     const CopyStart& copy) override;
  void transaction_completed(sim::TransactionId transaction) override;
  void progressed() override;
  std::uint64_t sys_count() const override { return 0; }

  int number_;
  Time start_latency_;
  std::uint32_t rdma_turn_;  // bytes of a copy by that plane that leave one behind the other
  sim::EventQueue queue_;
  sim::PayloadPool& payloads_;
  DieListener& listener_;
  Time& last_progress_;
  sim::RemotePort* port_ = nullptr;
  BackingStore store_;
  PlainMemory memory_;
  hw::Sdma data_path_parameters_;
  SdmaEngine data_path_;
  std::deque<Transfer> starting_;  // in the order of their events
  bool follows_ = false;
  std::uint64_t transfers_ = 0;
  UnitWork work_;
};

}  // namespace cm384::npu
