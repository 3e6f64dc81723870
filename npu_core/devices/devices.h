// The units of a die other than its cores: SDMA engine, task scheduler, player of recorded launches, and
// their connection to the die.
#pragma once

#include <memory>
#include <string>

#include "base/engine/event_queue.h"
#include "npu_core/devices/device_socket.h"
#include "npu_core/devices/scheduler/task_scheduler.h"
#include "npu_core/devices/sdma/sdma_engine.h"

namespace cm384::npu {

class BlockPlayer;
class Die;
struct LaunchRequest;

// One unit's way to its die. Its requests use the last external port of the on-die network.
class DevicePort final : public DeviceSocket {
 public:
  // `unit` numbers its events, `core` its transactions and remote requests.
  DevicePort(Die& die, std::uint32_t unit, std::uint16_t core) : die_(die), unit_(unit), core_(core) {}

  Time now() const override;
  void schedule(Time at, std::uint32_t what, std::uint64_t argument) override;
  bool is_local(std::uint64_t address) const override;
  bool contains(std::uint64_t offset, std::uint64_t bytes) const override;
  Time read(std::uint64_t offset, std::byte* into, std::uint32_t bytes, sim::TagMask& tags,
            bool allocate) override;
  Time write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes, sim::TagMask tags,
             sim::TransactionId transaction) override;
  Time add(std::uint64_t offset, std::uint32_t value) override;
  void submit(sim::Request request) override;
  sim::PayloadPool& payloads() override;
  sim::TransactionId new_transaction(std::uint64_t address, std::uint64_t bytes, sim::Operation operation,
                                     const CopyStart& copy) override;
  void transaction_completed(sim::TransactionId transaction) override;
  void progressed() override;
  std::uint64_t sys_count() const override;

 private:
  std::uint16_t requester() const;

  Die& die_;
  std::uint32_t unit_;
  std::uint16_t core_;
};

class Devices final : private CoreArray {
 public:
  // Set aside at the end of a die's memory: doorbells, the scheduler's SDMA queues, the default stream.
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{16} << 20;

  explicit Devices(Die& die);
  ~Devices();

  SdmaEngine& sdma() { return sdma_; }
  TaskScheduler& scheduler() { return scheduler_; }
  const TaskScheduler& scheduler() const { return scheduler_; }
  const SdmaEngine& sdma() const { return sdma_; }

  // Puts a launch into the default stream, at `at` or behind earlier launches.
  void launch(LaunchRequest request, std::uint32_t number, Time at);
  // From now on reports to the die's tracer.
  void trace();
  // GM address of an SDMA queue's doorbell.
  std::uint64_t doorbell(std::size_t queue) const;

  void handle(const sim::Event& event);
  void completed(const sim::Completion& completion);
  // The die's own memory was written, at the event time.
  void written(std::uint64_t offset, std::uint64_t bytes) {
    scheduler_.written(offset, bytes);
    if (offset + bytes > doorbells_) ring(offset, bytes);
  }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  std::string report() const;

 private:
  static constexpr std::uint32_t kSdmaUnit = 0xff00;  // of the die's events
  static constexpr std::uint32_t kSchedulerUnit = 0xff01;
  static constexpr std::uint32_t kDoorbellUnit = 0xff02;
  static constexpr std::uint32_t kPlayerUnit = 0xff03;
  static constexpr std::uint16_t kSchedulerCore = 0xff01;

  void ring(std::uint64_t offset, std::uint64_t bytes);
  void rung(std::size_t queue);

  std::size_t count() const override;
  std::size_t all() const override;
  void start_block(const BlockStart& block) override;
  void kernel_started(const LaunchRecord& record) override;
  void kernel_finished(const LaunchRecord& record) override;
  void task_decoded(const TaskRecord& record) override;
  void task_finished(const TaskRecord& record) override;
  void stream_made(std::uint32_t number, const QueueRing& ring) override;
  void kernel_registered(std::uint32_t number, const LaunchRequest& kernel) override;

  Die& die_;
  std::uint64_t doorbells_;  // offset of the first one
  DevicePort sdma_port_, scheduler_port_;
  SdmaEngine sdma_;
  TaskScheduler scheduler_;
  std::unique_ptr<BlockPlayer> player_;
  Time last_launch_;
};

}  // namespace cm384::npu
