// The task scheduler against a stand-in die and stand-in cores: stage times, order, sharing, events, and what
// goes wrong.
#include "npu_core/devices/scheduler/task_scheduler.h"

#include <gtest/gtest.h>

#include "testbenches/npu_core/devices/scheduler/scheduler_bench.h"

namespace cm384::npu::task_scheduler_test {
namespace {

// Every stage of one kernel, to the picosecond.
TEST(TaskScheduler, StagesOfAKernelAddUp) {
  Bench b;
  b.scheduler.submit_at(0, Bench::kernel(0), 3_us);
  b.run();
  ASSERT_EQ(b.tasks.size(), 1u);
  const TaskRecord& r = b.tasks[0];
  EXPECT_EQ(r.turn, 3_us + DeviceStand::kWrite);
  EXPECT_EQ(r.fetched, r.turn + DeviceStand::kRead);
  EXPECT_EQ(r.decoded, r.fetched + 100_ns);
  ASSERT_EQ(b.starts.size(), 4u);
  for (std::uint32_t n = 0; n < 4; ++n) {
    EXPECT_EQ(b.starts[n].at, r.decoded + 1_us + Time{10'000 * n} + 500_ns);
    EXPECT_EQ(b.starts[n].block.core, n);
    EXPECT_EQ(b.starts[n].block.index, n);
    EXPECT_EQ(b.starts[n].block.count, 4u);
  }
  const Time retired = b.starts[3].at + 2_us + 5_ns;
  EXPECT_EQ(r.done, retired + 300_ns + 700_ns);
  EXPECT_EQ(r.completed, r.done + 50_ns);
  ASSERT_EQ(b.kernels.size(), 1u);
  EXPECT_EQ(b.kernels[0].task_start, r.turn);
  EXPECT_EQ(b.kernels[0].first_instruction, b.starts[0].at);
  EXPECT_EQ(b.kernels[0].last_retired, retired);
  EXPECT_EQ(b.kernels[0].task_end, r.completed);
}

TEST(TaskScheduler, AStreamRunsInOrderAndStreamsSideBySide) {
  Bench b;
  for (int n = 0; n < 2; ++n) b.scheduler.submit(0, Bench::kernel(1, 2));
  b.scheduler.submit(1, Bench::kernel(1, 2));
  b.run();
  ASSERT_EQ(b.tasks.size(), 3u);
  // Stream 1 has cores 2 and 3 while stream 0 has 0 and 1.
  EXPECT_EQ(b.starts[2].block.core, 2);
  EXPECT_EQ(b.starts[3].block.core, 3);
  EXPECT_LT(b.starts[3].at, b.tasks[0].completed);
  EXPECT_EQ(b.tasks[0].stream, 0u);
  EXPECT_GE(b.starts[4].at, b.tasks[0].completed);
}

TEST(TaskScheduler, MoreBlocksThanCoresRunInWaves) {
  Bench b;
  b.scheduler.submit(0, Bench::kernel(1, 6));
  b.run();
  ASSERT_EQ(b.starts.size(), 6u);
  // The fifth block follows when the first core is free again.
  EXPECT_EQ(b.starts[4].at, b.starts[0].at + 2_us + 5_ns + 300_ns + 500_ns);
  EXPECT_EQ(b.starts[4].block.core, 0);
  EXPECT_EQ(b.scheduler.statistics().block_waits, 1u);
  EXPECT_EQ(b.tasks[0].status, std::uint32_t{CM384_STATUS_DONE});
}

TEST(TaskScheduler, MoreBlocksThanALaunchHasCoresGoToTheFirstThatIsFree) {
  Bench b;
  b.lengths = {4_us, 4_us, 1_us, 4_us};
  b.scheduler.submit(0, Bench::kernel(0, 6));
  b.run();
  ASSERT_EQ(b.starts.size(), 6u);
  for (std::size_t n = 4; n < 6; ++n) {
    EXPECT_EQ(b.starts[n].block.core, 2);
    EXPECT_EQ(b.starts[n].block.index, n);
    EXPECT_EQ(b.starts[n].block.count, 6u);
  }
  EXPECT_EQ(b.starts[4].at, b.starts[2].at + 1_us + 5_ns + 300_ns + 500_ns);
  EXPECT_EQ(b.tasks[0].status, std::uint32_t{CM384_STATUS_DONE});
}

// The AIC is through first, an AIV last.
TEST(TaskScheduler, AFurtherGroupTakesItsCoresWhenAllOfThemAreFree) {
  Bench b;
  b.lengths = {2_us, 5_us, 9_us, 1_us};
  const std::uint32_t groups = b.scheduler.register_kernel(nullptr, {3, 0, 1}, KernelType::mix);
  b.scheduler.submit(0, Bench::kernel(groups, 6));
  b.run();
  ASSERT_EQ(b.starts.size(), 6u);
  EXPECT_EQ(b.starts[3].at, b.starts[2].at + 5_us + 5_ns + 300_ns + 500_ns);
  EXPECT_EQ(b.starts[4].at, b.starts[3].at + 10_ns);
  for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(b.starts[3 + n].block.core, b.starts[n].block.core);
  EXPECT_EQ(b.tasks[0].status, std::uint32_t{CM384_STATUS_DONE});
}

TEST(TaskScheduler, EntriesAreDecodedAnIntervalApart) {
  Bench b;
  for (std::uint32_t s = 0; s < 4; ++s)
    b.scheduler.submit(s, Bench::word(CM384_TASK_EVENT_RECORD, here(kWord + 8 * s), 1));
  b.run();
  ASSERT_EQ(b.tasks.size(), 4u);
  for (std::size_t n = 1; n < 4; ++n) EXPECT_EQ(b.tasks[n].decoded - b.tasks[n - 1].decoded, 20_ns);
}

TEST(TaskScheduler, SlotsBoundWhatIsUnderWay) {
  hw::Scheduler p = parameters();
  p.slots = 1;
  Bench b(p);
  for (std::uint32_t s = 0; s < 2; ++s)
    b.scheduler.submit(s, Bench::word(CM384_TASK_EVENT_RECORD, here(kWord), 1));
  b.run();
  EXPECT_EQ(b.tasks[1].fetched, b.tasks[0].completed + DeviceStand::kRead);
  EXPECT_EQ(b.scheduler.statistics().slot_waits, 1u);
  // A wait takes none: the stream that will end it gets its turn.
  Bench c(p);
  c.scheduler.submit(0, Bench::word(CM384_TASK_EVENT_WAIT, here(kWord), 5));
  c.scheduler.submit(1, Bench::word(CM384_TASK_EVENT_RECORD, here(kWord), 5));
  c.run();
  EXPECT_EQ(c.tasks.size(), 2u);
}

TEST(TaskScheduler, AnEventWaitsForItsValue) {
  Bench b;
  b.scheduler.submit(0, Bench::word(CM384_TASK_EVENT_WAIT, here(kWord), 2));
  b.scheduler.submit_at(1, Bench::word(CM384_TASK_EVENT_RECORD, here(kWord), 1), 5_us);
  b.scheduler.submit_at(1, Bench::word(CM384_TASK_EVENT_RECORD, here(kWord), 2), 9_us);
  b.run();
  ASSERT_EQ(b.tasks.size(), 3u);
  EXPECT_EQ(b.tasks[0].stream, 1u);
  const TaskRecord& waited = b.tasks[1].stream == 0 ? b.tasks[1] : b.tasks[2];
  // Written when the second record was decoded; seen one reading later.
  const Time decoded = 9_us + DeviceStand::kWrite + DeviceStand::kRead + 100_ns;
  EXPECT_EQ(waited.done, decoded + DeviceStand::kRead);
  Bench already;
  already.die.put(kWord, std::uint64_t{7});
  already.scheduler.submit(0, Bench::word(CM384_TASK_EVENT_WAIT, here(kWord), 7));
  already.run();
  EXPECT_EQ(already.tasks.size(), 1u);
}

// Three notifies, two waits of one and two: each is taken once.
TEST(TaskScheduler, NotifiesAreTakenOnce) {
  Bench b;
  b.scheduler.submit(0, Bench::word(CM384_TASK_NOTIFY_WAIT, here(kWord), 1));
  b.scheduler.submit(1, Bench::word(CM384_TASK_NOTIFY_WAIT, here(kWord), 2));
  b.scheduler.submit_at(2, Bench::word(CM384_TASK_NOTIFY_RECORD, here(kWord), 1), 5_us);
  b.scheduler.submit_at(2, Bench::word(CM384_TASK_NOTIFY_RECORD, here(kWord), 1), 9_us);
  b.run();
  EXPECT_EQ(b.tasks.size(), 3u);  // one waits on
  EXPECT_EQ(b.die.get<std::uint32_t>(kWord), 1u);
  b.scheduler.submit(2, Bench::word(CM384_TASK_NOTIFY_RECORD, here(kWord), 1));
  b.run();
  EXPECT_EQ(b.tasks.size(), 5u);
  EXPECT_EQ(b.die.get<std::uint32_t>(kWord), 0u);
}

TEST(TaskScheduler, ARecordReachesAnotherDie) {
  Bench b;
  b.scheduler.submit(0, Bench::word(CM384_TASK_EVENT_RECORD, cm384_gm_die(1, kWord), 77));
  b.run();
  std::uint64_t value = 0;
  std::memcpy(&value, b.die.other.data() + kWord, sizeof value);
  EXPECT_EQ(value, 77u);
  EXPECT_EQ(b.tasks.at(0).done - b.tasks.at(0).decoded, DeviceStand::kRemote);
}

TEST(TaskScheduler, ACopyIsHandedToTheSdmaEngine) {
  Bench b;
  b.die.put(0x80000, std::uint64_t{0x1234567890});
  b.scheduler.submit(0, Bench::copy(here(0x80000), here(0x90000), 8));
  b.run();
  EXPECT_EQ(b.die.get<std::uint64_t>(0x90000), 0x1234567890u);
  const TaskRecord& r = b.tasks.at(0);
  EXPECT_EQ(r.copy.rung, r.decoded + DeviceStand::kWrite);
  EXPECT_EQ(r.done, r.copy.ended);
}

TEST(TaskScheduler, CopiesOfTwoStreamsTakeTheShortestQueue) {
  Bench b;
  for (std::uint32_t s = 0; s < 2; ++s)
    b.scheduler.submit(s, Bench::copy(here(0x80000), here(0x90000), 8192));
  b.run();
  ASSERT_EQ(b.tasks.size(), 2u);
  EXPECT_NE(b.tasks[0].copy.queue, b.tasks[1].copy.queue);
}

TEST(TaskScheduler, AKernelIsRegisteredOnce) {
  Bench b;
  const std::uint32_t first = b.scheduler.register_kernel(nullptr, {1, 2}, KernelType::aiv);
  EXPECT_EQ(b.scheduler.register_kernel(nullptr, {1, 2}, KernelType::aiv), first);
  EXPECT_NE(b.scheduler.register_kernel(nullptr, {2, 1}, KernelType::aiv), first);
  EXPECT_NE(b.scheduler.register_kernel(nullptr, {1, 2}, KernelType::mix), first);
}

TEST(TaskScheduler, AFullStreamTakesMoreWhenItHasRoom) {
  Bench b;
  // Each of its own value: an entry that is written over one not yet fetched would show.
  for (std::uint64_t n = 0; n < 11; ++n)
    b.scheduler.submit(0, Bench::word(CM384_TASK_EVENT_RECORD, here(kWord + 8 * n), n + 1));
  EXPECT_EQ(b.scheduler.pending(0), 11u);
  b.run();
  EXPECT_EQ(b.tasks.size(), 11u);
  EXPECT_EQ(b.scheduler.pending(0), 0u);
  for (std::uint64_t n = 0; n < 11; ++n) EXPECT_EQ(b.die.get<std::uint64_t>(kWord + 8 * n), n + 1);
}

TEST(TaskScheduler, ErrorsEndInACompletionAndTheStreamGoesOn) {
  const std::pair<cm384_task, std::uint32_t> wrongs[] = {
      {cm384_task{}, CM384_STATUS_BAD_ENTRY},
      {Bench::kernel(2), CM384_STATUS_NO_SUCH_KERNEL},
      {Bench::kernel(3), CM384_STATUS_NO_SUCH_KERNEL},
      {Bench::kernel(1, 0), CM384_STATUS_NO_SUCH_KERNEL},
      {Bench::copy(0x55, here(0), 8), CM384_STATUS_READ_FAULT},
      {Bench::copy(here(0), here(DeviceStand::kBytes), 8), CM384_STATUS_WRITE_FAULT},
      {Bench::copy(here(0), here(64), 0), CM384_STATUS_BAD_ENTRY},
      {Bench::word(CM384_TASK_EVENT_RECORD, 0x10, 1), CM384_STATUS_WRITE_FAULT},
      {Bench::word(CM384_TASK_EVENT_RECORD, here(DeviceStand::kBytes), 1), CM384_STATUS_WRITE_FAULT},
      {Bench::word(CM384_TASK_EVENT_RECORD, here(4), 1), CM384_STATUS_BAD_ENTRY},
      {Bench::word(CM384_TASK_NOTIFY_RECORD, cm384_gm_die(2, 0), 1), CM384_STATUS_WRITE_FAULT},
      {Bench::word(CM384_TASK_EVENT_WAIT, cm384_gm_die(1, 0), 1), CM384_STATUS_BAD_ENTRY},
      {Bench::word(CM384_TASK_NOTIFY_WAIT, here(DeviceStand::kBytes), 1), CM384_STATUS_READ_FAULT},
  };
  for (const auto& [task, status] : wrongs) {
    Bench b;
    b.scheduler.submit(0, task);
    b.scheduler.submit(0, Bench::kernel(0));
    b.run();
    ASSERT_EQ(b.tasks.size(), 2u) << int{task.type};
    EXPECT_EQ(b.tasks[0].status, status) << int{task.type};
    EXPECT_EQ(b.tasks[1].status, std::uint32_t{CM384_STATUS_DONE});
    const auto completion = b.die.get<cm384_completion>(kRings + 0x400);
    EXPECT_EQ(completion.status, status);
    EXPECT_EQ(completion.number, 1u);
    EXPECT_EQ(b.scheduler.statistics().errors, 1u);
  }
}

}  // namespace
}  // namespace cm384::npu::task_scheduler_test
