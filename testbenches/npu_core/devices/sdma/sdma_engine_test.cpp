// The SDMA engine against a stand-in die: bytes, stage times, bounds, order, and what goes wrong.
#include "npu_core/devices/sdma/sdma_engine.h"

#include <gtest/gtest.h>

#include "base/text/units.h"
#include "testbenches/npu_core/devices/sdma/device_stand.h"

namespace cm384::npu::sdma_engine_test {
namespace {

using namespace cm384::literals;
using testing::DeviceStand;

constexpr std::uint64_t kEntries = 0x10000, kCompletions = 0x14000, kRingStride = 0x8000;
constexpr std::uint32_t kDepth = 8;

hw::Sdma parameters() {
  hw::Sdma p;
  p.channels = 4;
  p.parse_latency = 50_ns;
  p.translation_latency = 100_ns;
  p.descriptor_gap = 300_ns;
  p.bandwidth = 512_GBps;  // a request a nanosecond
  p.read_outstanding = 64;
  p.write_outstanding = 64;
  return p;
}

struct Bench {
  explicit Bench(const hw::Sdma& p = parameters(), std::size_t queues = 4) : engine(p, queues, die) {
    for (std::size_t q = 0; q < queues; ++q)
      engine.set_up(q, QueueRing(kEntries + q * kRingStride, kCompletions + q * kRingStride, kDepth));
    engine.ended.attach(
        this, [](void* self, const SdmaRecord& r) { static_cast<Bench*>(self)->records.push_back(r); });
    for (std::size_t n = 0; n < DeviceStand::kBytes / 4; ++n) {
      die.put(4 * n, n >= kEntries / 4 && n < 0x40000 / 4 ? 0u : static_cast<std::uint32_t>(n * 2654435761u));
      const auto word = static_cast<std::uint32_t>(n * 40503u + 1);
      std::memcpy(die.other.data() + 4 * n, &word, 4);
    }
  }
  void post(std::size_t queue, std::uint64_t source, std::uint64_t destination, std::uint32_t bytes,
            std::uint8_t operation = CM384_SDMA_COPY) {
    cm384_task t{};
    t.type = CM384_TASK_SDMA;
    t.flags = CM384_TASK_WRITE_COMPLETION;
    t.operation = operation;
    t.number = 100 + tails[queue];
    t.u.copy.source = source;
    t.u.copy.destination = destination;
    t.u.copy.bytes = bytes;
    die.put(kEntries + queue * kRingStride + (tails[queue]++ % kDepth) * 64, t);
  }
  void ring(std::size_t queue) { engine.doorbell(queue, tails[queue]); }
  void run() {
    die.run([this](std::uint32_t what, std::uint64_t argument) { engine.handle(what, argument); },
            [this](const sim::Completion& completion) { engine.completed(completion); });
    EXPECT_EQ(die.pool.in_use(), 0u);
  }
  cm384_completion completion(std::size_t queue, std::uint32_t number) const {
    return die.get<cm384_completion>(kCompletions + queue * kRingStride + number % kDepth * 64);
  }

  DeviceStand die;
  SdmaEngine engine;
  std::vector<SdmaRecord> records;
  std::array<std::uint32_t, 8> tails{};
};

std::uint64_t here(std::uint64_t offset) {
  return cm384_gm_die(0, offset);
}
std::uint64_t there(std::uint64_t offset) {
  return cm384_gm_die(1, offset);
}

TEST(SdmaEngine, CopiesBytesOfAnyAlignmentEveryWay) {
  for (const auto& [from, to] :
       {std::pair{here(0x80001), here(0x90003)}, std::pair{here(0x80005), there(0x107)},
        std::pair{there(0x201), here(0x90000)}, std::pair{there(0x33), there(0x8011)}}) {
    for (const std::uint32_t bytes : {1u, 511u, 512u, 5000u}) {
      Bench b;
      const auto& source = cm384_gm_unit(from) == 0 ? b.die.memory : b.die.other;
      const auto& target = cm384_gm_unit(to) == 0 ? b.die.memory : b.die.other;
      const std::size_t s = cm384_gm_offset(from), t = cm384_gm_offset(to);
      std::vector<std::byte> expected(target.begin() + static_cast<std::ptrdiff_t>(t) - 1,
                                      target.begin() + static_cast<std::ptrdiff_t>(t + bytes) + 1);
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(s), bytes, expected.begin() + 1);
      b.post(0, from, to, bytes);
      b.ring(0);
      b.run();
      EXPECT_TRUE(
          std::equal(expected.begin(), expected.end(), target.begin() + static_cast<std::ptrdiff_t>(t) - 1));
      EXPECT_EQ(b.completion(0, 0).status, std::uint32_t{CM384_STATUS_DONE});
      EXPECT_EQ(b.completion(0, 0).task, 100u);
      EXPECT_EQ(b.completion(0, 0).number, 1u);
      EXPECT_EQ(b.completion(0, 0).head, 1u);
    }
  }
}

// Every stage of one local request, to the picosecond.
TEST(SdmaEngine, StagesOfOneRequestAddUp) {
  Bench b;
  b.post(0, here(0x80000), here(0x90000), 512);
  b.ring(0);
  b.run();
  ASSERT_EQ(b.records.size(), 1u);
  const SdmaRecord& r = b.records[0];
  EXPECT_EQ(r.taken, 0_ps);
  EXPECT_EQ(r.fetched, DeviceStand::kRead + 50_ns);
  EXPECT_EQ(r.translated, r.fetched + 100_ns);
  EXPECT_EQ(r.first_data, r.translated + DeviceStand::kRead);
  EXPECT_EQ(r.last_ack, r.first_data + DeviceStand::kWrite);
  EXPECT_EQ(r.ended, r.last_ack + DeviceStand::kWrite);  // the completion
}

// Requests leave one interval apart, and the second descriptor a gap after the first one's end.
TEST(SdmaEngine, KeepsItsRateAndTheGap) {
  hw::Sdma p = parameters();
  p.channels = 1;
  Bench b(p);
  b.post(0, here(0x80000), here(0x90000), 512 * 32);
  b.post(0, here(0x80000), here(0x90000), 512);
  b.ring(0);
  b.run();
  ASSERT_EQ(b.records.size(), 2u);
  EXPECT_EQ(b.records[0].last_data - b.records[0].first_data, 31_ns);
  EXPECT_EQ(b.records[1].taken, b.records[0].ended + 300_ns);
  Time busy{};
  for (const SdmaRecord& r : b.records) busy += r.ended - r.taken;
  const SdmaStatistics& counted = b.engine.statistics();
  EXPECT_EQ(counted.channel_busy_ps, static_cast<std::uint64_t>(busy.ps));
  EXPECT_EQ(counted.descriptors, 2u);
  EXPECT_EQ(counted.bytes, 512u * 33);
  EXPECT_EQ(counted.local_reads, 33u);
  EXPECT_EQ(counted.local_writes, 33u);
}

TEST(SdmaEngine, BoundsWhatIsOutstanding) {
  for (const bool reads : {true, false}) {
    hw::Sdma p = parameters();
    (reads ? p.read_outstanding : p.write_outstanding) = 5;
    Bench b(p);
    b.post(0, reads ? there(0) : here(0x80000), reads ? here(0x90000) : there(0), 512 * 64);
    b.ring(0);
    b.run();
    EXPECT_EQ(b.die.most_outstanding, 5);
    EXPECT_EQ(b.completion(0, 0).status, std::uint32_t{CM384_STATUS_DONE});
  }
}

// Two channels share the path evenly: equal copies of two queues end within one request of each other.
TEST(SdmaEngine, ChannelsTakeTurns) {
  hw::Sdma p = parameters();
  p.read_outstanding = p.write_outstanding = 512;
  Bench b(p);
  for (const std::size_t q : {0, 1}) b.post(q, here(0x80000), here(0x90000), 512 * 100);
  b.ring(0);
  b.ring(1);
  b.run();
  ASSERT_EQ(b.records.size(), 2u);
  EXPECT_EQ(b.records[1].last_data - b.records[0].last_data, 1_ns);
  EXPECT_EQ(b.records[1].last_data - b.records[0].first_data, 199_ns);
}

TEST(SdmaEngine, FewerChannelsThanQueuesServeAllInTurn) {
  hw::Sdma p = parameters();
  p.channels = 1;
  Bench b(p);
  for (int n = 0; n < 2; ++n) {
    for (std::size_t q = 0; q < 4; ++q) b.post(q, here(0x80000), here(0x90000), 64);
  }
  for (std::size_t q = 0; q < 4; ++q) b.ring(q);
  b.run();
  std::vector<int> order;
  for (const SdmaRecord& r : b.records) order.push_back(r.queue);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(SdmaEngine, PrefetchReadsAndWritesNothing) {
  Bench b;
  const auto before = b.die.memory;
  b.post(0, here(0x80000), 0, 2048, CM384_SDMA_PREFETCH);
  b.ring(0);
  b.run();
  EXPECT_EQ(b.completion(0, 0).status, std::uint32_t{CM384_STATUS_DONE});
  EXPECT_EQ(b.engine.statistics().local_reads, 4u);
  EXPECT_EQ(b.engine.statistics().local_writes, 0u);
}

struct Wrong {
  const char* what;
  std::uint64_t source, destination;
  std::uint32_t bytes;
  std::uint32_t status;
  std::uint64_t fault;
};

TEST(SdmaEngine, ErrorsEndInACompletionAndTheQueueGoesOn) {
  const std::uint64_t end = DeviceStand::kBytes;
  const Wrong wrongs[] = {
      {"no bytes", here(0x80000), here(0x90000), 0, CM384_STATUS_BAD_ENTRY, 0},
      {"source is no memory", 0x1234, here(0x90000), 64, CM384_STATUS_READ_FAULT, 0x1234},
      {"destination is no memory", here(0x80000), 0x99, 64, CM384_STATUS_WRITE_FAULT, 0x99},
      {"source runs out", here(end - 32), here(0x90000), 64, CM384_STATUS_READ_FAULT, here(end - 32)},
      {"destination runs out", here(0x80000), here(end - 63), 64, CM384_STATUS_WRITE_FAULT, here(end - 63)},
      {"out of the die", here((std::uint64_t{1} << 36) - 8), here(0), 64, CM384_STATUS_READ_FAULT,
       here((std::uint64_t{1} << 36) - 8)},
      {"no such die to read", cm384_gm_die(2, 0), here(0x90000), 64, CM384_STATUS_READ_FAULT,
       cm384_gm_die(2, 0)},
      {"no such die to write", here(0x80000), cm384_gm_die(2, 0), 64, CM384_STATUS_WRITE_FAULT,
       cm384_gm_die(2, 0)},
      {"the other die's memory ends", here(0x80000), there(end - 512), 2048, CM384_STATUS_WRITE_FAULT,
       there(end)},
  };
  for (const Wrong& wrong : wrongs) {
    Bench b;
    b.post(0, wrong.source, wrong.destination, wrong.bytes);
    b.post(0, here(0x80000), here(0x90000), 64);
    b.ring(0);
    b.run();
    EXPECT_EQ(b.completion(0, 0).status, wrong.status) << wrong.what;
    EXPECT_EQ(b.completion(0, 0).fault, wrong.fault) << wrong.what;
    EXPECT_EQ(b.completion(0, 1).status, std::uint32_t{CM384_STATUS_DONE}) << wrong.what;
    EXPECT_EQ(b.engine.statistics().errors, 1u) << wrong.what;
  }
}

TEST(SdmaEngine, AnEntryOfAnotherTypeIsRefused) {
  Bench b;
  b.tails[0] = 1;  // what stands there is all zero
  b.ring(0);
  b.run();
  EXPECT_EQ(b.completion(0, 0).status, std::uint32_t{CM384_STATUS_BAD_ENTRY});
  b.post(0, here(0x80000), here(0x90000), 64, 3);
  b.ring(0);
  b.run();
  EXPECT_EQ(b.completion(0, 1).status, std::uint32_t{CM384_STATUS_BAD_ENTRY});
}

// A doorbell `depth` after the head is legal, one further is not; neither is one before the tail.
TEST(SdmaEngine, ADoorbellOutOfRangeIsRefused) {
  Bench b;
  b.engine.doorbell(0, kDepth + 1);
  b.run();
  EXPECT_EQ(b.completion(0, 0).status, std::uint32_t{CM384_STATUS_QUEUE_RANGE});
  EXPECT_EQ(b.completion(0, 0).task, kDepth + 1);
  EXPECT_EQ(b.completion(0, 0).head, 0u);
  EXPECT_TRUE(b.records.empty());
  b.engine.completions_taken(0, 1);
  for (std::uint32_t n = 0; n < kDepth; ++n) b.post(0, here(0x80000), here(0x90000), 64);
  b.ring(0);
  b.engine.doorbell(0, 3);
  b.run();
  b.engine.completions_taken(0, 2);  // of the two refusals
  b.run();
  EXPECT_EQ(b.records.size(), kDepth);
  EXPECT_EQ(b.engine.statistics().refused_doorbells, 2u);
  b.engine.doorbell(77, 1);
  EXPECT_EQ(b.engine.statistics().refused_doorbells, 3u);
}

// A full completion ring holds the queue until its reader has taken one, and no longer.
TEST(SdmaEngine, FullCompletionsHoldTheQueue) {
  Bench b;
  for (std::uint32_t n = 0; n < kDepth; ++n) b.post(0, here(0x80000), here(0x90000), 64);
  b.ring(0);
  b.run();
  EXPECT_EQ(b.records.size(), kDepth);
  b.post(0, here(0x80000), here(0x90000), 64);
  b.ring(0);
  b.run();
  EXPECT_EQ(b.records.size(), kDepth);
  b.engine.completions_taken(0, 1);
  b.run();
  EXPECT_EQ(b.records.size(), kDepth + 1);
  EXPECT_EQ(b.completion(0, kDepth).number, kDepth + 1);
}

}  // namespace
}  // namespace cm384::npu::sdma_engine_test
