// Kernels of captured graphs: set up ahead, how far, and what ends that.
#include "testbenches/npu_core/devices/scheduler/scheduler_bench.h"

namespace cm384::npu::graph_test {
namespace {

// The first kernel of a graph begins when it is set up; the next ones, which are by then, at the end of the
// one before, with nothing between.
TEST(TaskScheduler, KernelsOfAGraphAreSetUpAhead) {
  Bench b;
  for (int n = 0; n < 3; ++n) b.scheduler.submit(0, Bench::graph(0));
  b.run();
  ASSERT_EQ(b.tasks.size(), 3u);
  ASSERT_EQ(b.starts.size(), 12u);
  EXPECT_EQ(b.tasks[0].turn, b.tasks[0].decoded + 1_us);
  for (std::size_t n = 0; n < 3; ++n) {
    const TaskRecord& r = b.tasks[n];
    if (n > 0) {
      EXPECT_EQ(r.turn, b.tasks[n - 1].completed);
      EXPECT_LT(r.decoded + 1_us, r.turn);
    }
    EXPECT_EQ(b.starts[4 * n].at, r.turn + 200_ns);
    EXPECT_EQ(r.done, b.starts[4 * n + 3].at + 2_us + 5_ns + 100_ns);
    EXPECT_EQ(r.completed, r.done + 50_ns);
    EXPECT_EQ(b.kernels[n].task_start, r.turn);
    EXPECT_EQ(b.kernels[n].task_end, r.completed);
  }
}

// Kernels shorter than their set-up: how many are under way at a time says how often one begins.
TEST(TaskScheduler, LookaheadBoundsWhatIsSetUpAhead) {
  const auto period = [](int lookahead) {
    hw::Scheduler p = parameters();
    p.graph_lookahead = lookahead;
    Bench b(p);
    b.length = 200_ns;
    for (int n = 0; n < 12; ++n) b.scheduler.submit_at(0, Bench::graph(0), Time{0});
    b.run();
    EXPECT_EQ(b.tasks.size(), 12u);
    return Time{(b.tasks[11].turn - b.tasks[5].turn).ps / 6};
  };
  // One: the next one is fetched when this one begins. More: as many in the time of one.
  const Time each = DeviceStand::kRead + 100_ns + 1_us;
  EXPECT_EQ(period(1), each);
  EXPECT_LT(period(2), Time{each.ps * 2 / 3});
  // Their own time: a dispatch of four blocks, head, the kernel, tail, completion.
  EXPECT_EQ(period(3), 30_ns + 200_ns + 205_ns + 100_ns + 50_ns);
}

// A graph ends where another kind of entry stands, and begins again behind it.
TEST(TaskScheduler, AGraphGivesWayToOtherEntries) {
  Bench b;
  b.scheduler.submit(0, Bench::graph(0));
  b.scheduler.submit(0, Bench::word(CM384_TASK_EVENT_RECORD, here(kWord), 7));
  b.scheduler.submit(0, Bench::graph(2));  // an error: a core that is not there
  b.scheduler.submit(0, Bench::graph(0));
  b.scheduler.submit_at(0, Bench::kernel(0), 1_us);
  b.run();
  ASSERT_EQ(b.tasks.size(), 5u);
  EXPECT_EQ(b.die.get<std::uint64_t>(kWord), 7u);
  EXPECT_EQ(b.tasks[1].type, CM384_TASK_EVENT_RECORD);
  EXPECT_EQ(b.tasks[1].fetched, b.tasks[0].completed + DeviceStand::kRead);
  EXPECT_EQ(b.tasks[2].status, std::uint32_t{CM384_STATUS_NO_SUCH_KERNEL});
  EXPECT_EQ(b.tasks[3].status, std::uint32_t{CM384_STATUS_DONE});
  EXPECT_EQ(b.tasks[4].fetched, b.tasks[3].completed + DeviceStand::kRead);
  EXPECT_EQ(b.kernels.size(), 3u);
}

}  // namespace
}  // namespace cm384::npu::graph_test
