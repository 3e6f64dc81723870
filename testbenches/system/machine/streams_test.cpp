// Streams, events, notifies and host threads on a whole machine.
#include <gtest/gtest.h>

#include <numeric>

#include "base/text/error.h"
#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "system/host/runtime.h"

namespace cm384::supernode::streams_test {
namespace {

struct Rig {
  explicit Rig(std::vector<int> dies, const std::vector<std::string>& changes = {})
      : parameters(hw::load_machine("cloudmatrix384", changes)),
        machine(parameters, options(std::move(dies))) {}
  static SupernodeOptions options(std::vector<int> dies) {
    SupernodeOptions o;
    o.dies = std::move(dies);
    return o;
  }
  std::vector<std::uint32_t> pattern(std::size_t words, std::uint32_t seed) const {
    std::vector<std::uint32_t> v(words);
    for (std::size_t n = 0; n < words; ++n) v[n] = seed + static_cast<std::uint32_t>(n * 2654435761u);
    return v;
  }

  hw::Machine parameters;
  Supernode machine;
  host::Runtime runtime{machine};
};

// Each die sends its slice to every other one, two streams per die; every byte must be where it belongs.
TEST(Streams, AllToAllBySdmaMovesEveryByte) {
  const std::vector<int> dies{0, 1, 2, 17};
  constexpr std::size_t kWords = 5000;
  Rig rig(dies);
  host::Runtime& runtime = rig.runtime;
  std::vector<std::uint64_t> send, receive;
  for (const int die : dies) {
    send.push_back(runtime.allocate(die, dies.size() * kWords * 4));
    receive.push_back(runtime.allocate(die, dies.size() * kWords * 4));
    const auto values = rig.pattern(dies.size() * kWords, static_cast<std::uint32_t>(die) << 24);
    runtime.put(send.back(), std::span<const std::uint32_t>(values));
  }
  for (std::size_t from = 0; from < dies.size(); ++from) {
    const host::Stream streams[] = {runtime.create_stream(dies[from]), runtime.create_stream(dies[from])};
    for (std::size_t to = 0; to < dies.size(); ++to)
      runtime.memcpy_async(streams[to % 2], receive[to] + from * kWords * 4, send[from] + to * kWords * 4,
                           kWords * 4);
    runtime.synchronize_device(dies[from]);
  }
  runtime.host_barrier(dies);
  ASSERT_TRUE(runtime.wait());
  for (std::size_t to = 0; to < dies.size(); ++to) {
    for (std::size_t from = 0; from < dies.size(); ++from) {
      const auto all = rig.pattern(dies.size() * kWords, static_cast<std::uint32_t>(dies[from]) << 24);
      const std::vector<std::uint32_t> expected(all.begin() + static_cast<std::ptrdiff_t>(to * kWords),
                                                all.begin() + static_cast<std::ptrdiff_t>((to + 1) * kWords));
      EXPECT_EQ(runtime.get<std::uint32_t>(receive[to] + from * kWords * 4, kWords), expected) << from << to;
    }
  }
}

// A ring of three dies: each one's copy waits for an event that the one before records on it.
TEST(Streams, EventsOrderTheWorkOfDifferentDies) {
  Rig rig({0, 2, 16});
  host::Runtime& runtime = rig.runtime;
  const int dies[] = {0, 2, 16};
  std::uint64_t memory[3];
  host::Event arrived[3];
  host::Stream streams[3];
  for (int n = 0; n < 3; ++n) {
    memory[n] = runtime.allocate(dies[n], 8192);
    arrived[n] = runtime.create_event(dies[n]);
    streams[n] = runtime.create_stream(dies[n]);
  }
  const auto values = rig.pattern(2048, 5);
  runtime.put(memory[0], std::span<const std::uint32_t>(values));
  host::TaskHandle copies[2], waits[3];
  for (int n = 0; n < 2; ++n) {
    if (n > 0) waits[n] = runtime.stream_wait_event(streams[n], arrived[n]);
    copies[n] = runtime.memcpy_async(streams[n], memory[n + 1], memory[n], 8192);
    runtime.record_event(streams[n], arrived[n + 1]);
  }
  waits[2] = runtime.stream_wait_event(streams[2], arrived[2]);
  runtime.wait();
  EXPECT_EQ(runtime.get<std::uint32_t>(memory[2], 2048), values);
  EXPECT_GT(runtime.task(copies[1]).record.turn, runtime.task(copies[0]).record.completed);
  EXPECT_GT(runtime.task(waits[2]).record.done, runtime.task(copies[1]).record.completed);
}

TEST(Streams, NotifiesCountArrivalsOfManyDies) {
  Rig rig({0, 2, 4, 16});
  host::Runtime& runtime = rig.runtime;
  const host::Notify arrived = runtime.create_notify(0);
  std::vector<host::TaskHandle> records;
  for (const int die : {2, 4, 16}) {
    runtime.host_compute(die, Time{die * 1'000'000});
    records.push_back(runtime.record_notify(runtime.create_stream(die), arrived));
  }
  const host::TaskHandle wait = runtime.wait_notify(runtime.create_stream(0), arrived, 3);
  runtime.wait();
  for (const host::TaskHandle record : records)
    EXPECT_GT(runtime.task(wait).record.done, runtime.task(record).record.decoded);
}

// A kernel, then a copy of what it wrote, then a function of the host that looks and submits more.
TEST(Streams, KernelCopyAndHostFunctionFollowEachOther) {
  Rig rig({0, 2});
  host::Runtime& runtime = rig.runtime;
  cm384_p2p a{};
  a.mode = CM384_P2P_WRITE;
  a.buffers = 1;
  a.chunk_bytes = 512;
  a.pattern = 0x5a5a;
  a.bytes = a.target_stride = 512;
  a.target = runtime.allocate(0, 4 * 512);
  a.results = runtime.allocate(0, 4 * CM384_P2P_RESULT_STRIDE);
  const std::uint64_t block = runtime.allocate(0, sizeof a), copied = runtime.allocate(2, 512),
                      again = runtime.allocate(2, 512);
  runtime.put(block, a);
  const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p"));
  const host::Stream stream = runtime.create_stream(0);
  const host::TaskHandle kernel = runtime.launch_kernel(stream, program, block, 4u);
  runtime.memcpy_async(stream, copied, a.target + 3 * 512, 512);
  runtime.synchronize_stream(stream);
  std::uint32_t seen = 0;
  host::TaskHandle late;
  runtime.host_function(0, [&] {
    seen = runtime.get<std::uint32_t>(copied, 1).front();
    late = runtime.memcpy_async(stream, again, copied, 512);
    runtime.synchronize_stream(stream);
  });
  const host::TaskHandle last = runtime.memcpy_async(stream, again, copied, 64);
  runtime.wait();
  EXPECT_EQ(seen, 0x5a5du);  // pattern + block
  EXPECT_EQ(runtime.get<std::uint32_t>(again, 1).front(), 0x5a5du);
  EXPECT_GT(runtime.task(last).called, runtime.task(late).seen);
  const npu::LaunchRecord& record = runtime.record(runtime.launch_of(kernel));
  EXPECT_EQ(record.blocks, 4u);
  EXPECT_EQ(record.task_end, runtime.task(kernel).record.completed);
}

TEST(Streams, TheHostPaysForItsCalls) {
  Rig rig({0});
  host::Runtime& runtime = rig.runtime;
  const std::uint64_t a = runtime.allocate(0, 4096), b = runtime.allocate(0, 4096);
  const host::Stream stream = runtime.create_stream(0);
  const host::TaskHandle first = runtime.memcpy_async(stream, b, a, 64);
  const host::TaskHandle second = runtime.memcpy_async(stream, b, a, 64);
  runtime.synchronize_stream(stream);
  const host::TaskHandle third = runtime.memcpy_async(stream, b, a, 64);
  runtime.wait();
  const hw::Host& host = rig.parameters.host;
  // Nobody else runs the driver: the next call begins when the entry has left.
  EXPECT_EQ(runtime.task(second).called - runtime.task(first).called, host.submit_latency);
  EXPECT_EQ(runtime.task(first).arrived - runtime.task(first).called,
            host.submit_latency + host.doorbell_latency);
  EXPECT_EQ(runtime.task(first).seen - runtime.task(first).record.completed, host.completion_latency);
  EXPECT_EQ(runtime.task(third).called, runtime.task(second).seen + host.call);
}

// Event words have no operands that a driver looks at: they take the thread for a call alone.
TEST(Streams, TheHostPaysLessForAWord) {
  Rig rig({0});
  host::Runtime& runtime = rig.runtime;
  const host::Stream stream = runtime.create_stream(0);
  const host::TaskHandle first = runtime.record_event(stream, runtime.create_event(0));
  const host::TaskHandle second = runtime.record_event(stream, runtime.create_event(0));
  runtime.wait();
  EXPECT_EQ(runtime.task(second).called - runtime.task(first).called, rig.parameters.host.call);
}

// Two entries for one call of the host; who waits for the stream waits for both.
TEST(Streams, AnAicpuWritesEntriesInTheHostsPlace) {
  Rig rig({0});
  host::Runtime& runtime = rig.runtime;
  const std::uint64_t a = runtime.allocate(0, 4096), b = runtime.allocate(0, 4096);
  const host::Stream stream = runtime.create_stream(0);
  host::TaskHandle first, second;
  unfold_on_device(runtime, 0, [&] {
    first = runtime.memcpy_async(stream, b, a, 64);
    second = runtime.memcpy_async(stream, b, a, 64);
  });
  runtime.synchronize_stream(stream);
  const host::TaskHandle third = runtime.memcpy_async(stream, b, a, 64);
  runtime.wait();
  const hw::Host& host = rig.parameters.host;
  const hw::Aicpu& aicpu = rig.parameters.aicpu;
  EXPECT_EQ(runtime.task(second).called, runtime.task(first).called);
  EXPECT_EQ(runtime.task(first).arrived - runtime.task(first).called,
            host.submit_latency + host.doorbell_latency + aicpu.start + aicpu.entry + aicpu.doorbell_latency);
  EXPECT_EQ(runtime.task(second).arrived - runtime.task(first).arrived, aicpu.entry);
  EXPECT_EQ(runtime.task(third).called, runtime.task(second).seen + host.call);
}

// A second list follows the first one without a new start; the host's own calls go on beside them.
TEST(Streams, AnAicpuWorksListsOffInOrder) {
  Rig rig({0});
  host::Runtime& runtime = rig.runtime;
  const std::uint64_t a = runtime.allocate(0, 4096), b = runtime.allocate(0, 4096);
  const host::Stream stream = runtime.create_stream(0), own = runtime.create_stream(0);
  std::vector<host::TaskHandle> tasks;
  for (int list = 0; list < 2; ++list) {
    unfold_on_device(runtime, 0, [&] {
      for (int n = 0; n < 10; ++n) tasks.push_back(runtime.memcpy_async(stream, b, a, 64));
    });
  }
  const host::TaskHandle beside = runtime.memcpy_async(own, b, a, 64);
  runtime.wait();
  for (std::size_t n = 1; n < tasks.size(); ++n)
    EXPECT_EQ(runtime.task(tasks[n]).arrived - runtime.task(tasks[n - 1]).arrived, rig.parameters.aicpu.entry)
        << n;
  EXPECT_LT(runtime.task(beside).arrived, runtime.task(tasks.back()).arrived);
}

// A queue of four entries: the fifth is written once a completion was seen, and all end.
TEST(Streams, AnAicpuWaitsForRoomInAStream) {
  Rig rig({0}, {"scheduler.queue_depth=4"});
  host::Runtime& runtime = rig.runtime;
  const std::uint64_t a = runtime.allocate(0, 4096), b = runtime.allocate(0, 4096);
  const host::Stream stream = runtime.create_stream(0);
  std::vector<host::TaskHandle> tasks;
  unfold_on_device(runtime, 0, [&] {
    for (int n = 0; n < 12; ++n) tasks.push_back(runtime.memcpy_async(stream, b, a, 64));
  });
  runtime.synchronize_stream(stream);
  ASSERT_TRUE(runtime.wait());
  for (std::size_t n = 4; n < tasks.size(); ++n)
    EXPECT_GE(runtime.task(tasks[n]).arrived,
              runtime.task(tasks[n - 4]).seen + rig.parameters.aicpu.doorbell_latency)
        << n;
}

TEST(Streams, ABarrierHoldsTheThreadsForTwoMessages) {
  Rig rig({0, 3, 40});
  host::Runtime& runtime = rig.runtime;
  runtime.host_compute(3, Time{30'000'000});
  std::vector<Time> left;
  runtime.host_barrier({0, 3, 40});
  for (const int die : {0, 3, 40})
    runtime.host_function(die, [&, die] { left.push_back(rig.machine.die(die).now()); });
  runtime.wait();
  ASSERT_EQ(left.size(), 3u);
  for (const Time at : left) EXPECT_EQ(at, left[0]);
  EXPECT_GE(left[0],
            Time{30'000'000} + rig.parameters.host.message_latency + rig.parameters.host.message_latency);
}

// Payload mode `control` takes the same time, to the picosecond.
TEST(Streams, PayloadPlaysNoPartInTime) {
  Time seen[2];
  for (const bool payload : {false, true}) {
    Rig rig({0, 16});
    const std::uint64_t a = rig.runtime.allocate(0, 1 << 20), b = rig.runtime.allocate(16, 1 << 20);
    if (payload) rig.runtime.mark_payload(a, 1 << 20);
    const host::TaskHandle copy =
        rig.runtime.memcpy_async(rig.runtime.create_stream(0), b + 96, a, (1 << 20) - 512);
    rig.runtime.wait();
    seen[payload] = rig.runtime.task(copy).seen;
    EXPECT_EQ(rig.machine.die(16).store().has_payload(cm384_gm_offset(b) + 4096, 64), payload);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(Streams, AnErrorNamesItsTask) {
  Rig rig({0, 2});
  host::Runtime& runtime = rig.runtime;
  const std::uint64_t a = runtime.allocate(0, 4096);
  const host::Stream stream = runtime.create_stream(0);
  runtime.memcpy_async(stream, cm384_gm_die(4, 0), a, 64);  // a die that does not take part
  const host::TaskHandle good = runtime.memcpy_async(stream, cm384_gm_die(2, 0), a, 64);
  try {
    runtime.wait();
    ADD_FAILURE() << "no error";
  } catch (const MachineError& error) {
    EXPECT_NE(std::string(error.what()).find("no memory to write"), std::string::npos) << error.what();
  }
  EXPECT_EQ(runtime.task(good).record.status, std::uint32_t{CM384_STATUS_DONE});
  EXPECT_THROW(runtime.memcpy_async(stream, a, a, 0), InputError);
  EXPECT_THROW(runtime.create_stream(1), InputError);
  EXPECT_THROW(runtime.stream_wait_event(stream, runtime.create_event(2)), InputError);
  EXPECT_THROW(runtime.launch_kernel(stream, nullptr, 0, std::vector<std::uint16_t>{48}), InputError);
}

// A wait that nobody ends is a hang, reported with the stream and the word.
TEST(Streams, AWaitThatNobodyEndsIsReported) {
  Rig rig({0});
  const host::Notify never = rig.runtime.create_notify(0);
  rig.runtime.wait_notify(rig.runtime.create_stream(0), never);
  try {
    rig.runtime.wait();
    ADD_FAILURE() << "no hang";
  } catch (const MachineError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("stream 1"), std::string::npos) << text;
    EXPECT_NE(text.find("to reach 1"), std::string::npos) << text;
  }
}

// Two runs of a host with more entries than a queue holds: the same times, nothing lost.
TEST(Streams, AFullQueueHoldsTheHost) {
  Time last[2];
  for (const int run : {0, 1}) {
    Rig rig({0}, {"scheduler.queue_depth=4"});
    const std::uint64_t a = rig.runtime.allocate(0, 4096);
    const host::Stream stream = rig.runtime.create_stream(0);
    std::vector<host::TaskHandle> tasks;
    for (int n = 0; n < 20; ++n) tasks.push_back(rig.runtime.memcpy_async(stream, a + 2048, a, 64));
    rig.runtime.wait();
    EXPECT_GE(rig.runtime.task(tasks[4]).called, rig.runtime.task(tasks[0]).seen);
    last[run] = rig.runtime.task(tasks.back()).seen;
  }
  EXPECT_EQ(last[0], last[1]);
}

}  // namespace
}  // namespace cm384::supernode::streams_test
