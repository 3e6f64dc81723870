// A task scheduler with a stand-in die and four stand-in cores.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "base/text/units.h"
#include "npu_core/devices/scheduler/task_scheduler.h"
#include "testbenches/npu_core/devices/sdma/device_stand.h"

namespace cm384::npu {

using namespace cm384::literals;
using testing::DeviceStand;

inline constexpr std::uint32_t kDepth = 4;
inline constexpr std::uint64_t kRings = 0x40000, kWord = 0x1000;

inline hw::Scheduler parameters() {
  hw::Scheduler p;
  p.queue_depth = kDepth;
  p.slots = 8;
  p.entry_interval = 20_ns;
  p.entry_latency = 100_ns;
  p.kernel_setup = 1_us;
  p.block_interval = 10_ns;
  p.block_head = 500_ns;
  p.block_tail = 300_ns;
  p.kernel_teardown = 700_ns;
  p.completion_latency = 50_ns;
  p.graph_lookahead = 2;
  p.graph_block_head = 200_ns;
  p.graph_block_tail = 100_ns;
  return p;
}

inline hw::Sdma sdma_parameters() {
  hw::Sdma p;
  p.channels = 2;
  p.bandwidth = 512_GBps;
  p.read_outstanding = p.write_outstanding = 64;
  return p;
}

// Four cores whose blocks take `length`.
struct Bench final : CoreArray {
  explicit Bench(const hw::Scheduler& p = parameters())
      : sdma(sdma_parameters(), 2, sdma_port), scheduler(p, die, *this, sdma, 0) {
    for (std::size_t q = 0; q < 2; ++q)
      sdma.set_up(q, QueueRing(0x20000 + q * 0x4000, 0x22000 + q * 0x4000, 64));
    for (std::uint32_t s = 0; s < 4; ++s)
      scheduler.create_stream(QueueRing(kRings + s * 0x1000, kRings + s * 0x1000 + 0x400, kDepth));
    scheduler.register_kernel(nullptr, {0, 1, 2, 3});  // kernel 0
    scheduler.register_kernel(nullptr, {});            // kernel 1: any cores
    scheduler.register_kernel(nullptr, {9});           // kernel 2: a core that is not there
    die.written = [this](std::uint64_t offset, std::uint64_t bytes) { scheduler.written(offset, bytes); };
  }

  std::size_t count() const override { return 4; }
  std::size_t all() const override { return 4; }
  void start_block(const BlockStart& block) override {
    starts.push_back({block, die.now()});
    die.queue.push(die.now() + (lengths.empty() ? length : lengths[block.core]), 2, 0, block.core);
  }
  void kernel_started(const LaunchRecord&) override {}
  void kernel_finished(const LaunchRecord& record) override { kernels.push_back(record); }
  void task_finished(const TaskRecord& record) override { tasks.push_back(record); }

  // The SDMA engine's way to the die: as the scheduler's, events of its own.
  struct SdmaPort final : DeviceSocket {
    explicit SdmaPort(DeviceStand& stand) : s(stand) {}
    Time now() const override { return s.now(); }
    void schedule(Time at, std::uint32_t what, std::uint64_t a) override { s.queue.push(at, 3, what, a); }
    bool is_local(std::uint64_t a) const override { return s.is_local(a); }
    bool contains(std::uint64_t o, std::uint64_t b) const override { return s.contains(o, b); }
    Time read(std::uint64_t o, std::byte* i, std::uint32_t b, sim::TagMask& t, bool k) override {
      return s.read(o, i, b, t, k);
    }
    Time write(std::uint64_t o, const std::byte* f, std::uint32_t b, sim::TagMask t,
               sim::TransactionId x) override {
      return s.write(o, f, b, t, x);
    }
    Time add(std::uint64_t o, std::uint32_t v) override { return s.add(o, v); }
    void submit(sim::Request) override { FAIL() << "only local copies here"; }
    sim::PayloadPool& payloads() override { return s.pool; }
    sim::TransactionId new_transaction(std::uint64_t, std::uint64_t, sim::Operation,
                                       const CopyStart&) override {
      return 1;
    }
    void transaction_completed(sim::TransactionId) override {}
    void progressed() override {}
    std::uint64_t sys_count() const override { return 0; }
    DeviceStand& s;
  };

  void run() {
    while (die.queue.next_time() != Time::never()) {
      die.queue.run_until(die.queue.next_time() + Time{1}, [&](const sim::Event& e) {
        if (e.unit == 0) scheduler.handle(e.what, e.argument);
        if (e.unit == 1) scheduler.completed(die.answer(e.argument));
        if (e.unit == 2) scheduler.block_ended(static_cast<std::uint16_t>(e.argument), die.now() + 5_ns, {});
        if (e.unit == 3) sdma.handle(e.what, e.argument);
      });
    }
    EXPECT_EQ(die.pool.in_use(), 0u);
  }

  static cm384_task kernel(std::uint32_t number, std::uint32_t blocks = 0) {
    cm384_task t{};
    t.type = CM384_TASK_KERNEL;
    t.number = 40 + number;
    t.u.kernel.kernel = number;
    t.u.kernel.blocks = blocks;
    return t;
  }
  static cm384_task graph(std::uint32_t number) {
    cm384_task t = kernel(number);
    t.flags = CM384_TASK_GRAPH;
    return t;
  }
  static cm384_task word(std::uint8_t type, std::uint64_t address, std::uint64_t value) {
    cm384_task t{};
    t.type = type;
    t.u.word = {address, value};
    return t;
  }
  static cm384_task copy(std::uint64_t source, std::uint64_t destination, std::uint32_t bytes) {
    cm384_task t{};
    t.type = CM384_TASK_SDMA;
    t.u.copy.source = source;
    t.u.copy.destination = destination;
    t.u.copy.bytes = bytes;
    return t;
  }

  struct Start {
    BlockStart block;
    Time at;
  };
  DeviceStand die;
  SdmaPort sdma_port{die};
  SdmaEngine sdma;
  TaskScheduler scheduler;
  Time length = 2_us;
  std::vector<Time> lengths;  // by core, in its place
  std::vector<Start> starts;
  std::vector<LaunchRecord> kernels;
  std::vector<TaskRecord> tasks;
};

inline std::uint64_t here(std::uint64_t offset) {
  return cm384_gm_die(0, offset);
}

}  // namespace cm384::npu
