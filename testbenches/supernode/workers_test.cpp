// The threads that run modules side by side.
#include "supernode/workers.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <chrono>
#include <mutex>
#include <set>

#include "sim/worker.h"

namespace cm384::supernode {
namespace {

using ::testing::Each;

TEST(Workers, EachActsOnceARound) {
  constexpr unsigned kWorkers = 4;
  Workers workers(kWorkers);
  std::vector<int> calls(kWorkers, 0);
  std::set<std::thread::id> threads;
  std::mutex mutex;
  for (int round = 1; round <= 2000; ++round) {
    workers.run([&](unsigned worker) {
      ++calls[worker];
      EXPECT_EQ(sim::worker(), worker);
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
    ASSERT_THAT(calls, Each(round));
  }
  EXPECT_EQ(threads.size(), kWorkers);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
  EXPECT_EQ(sim::worker(), 0u);
}

TEST(Workers, WakeWhenTheyHaveFallenAsleep) {
  Workers workers(2);
  int calls = 0;
  for (int round = 0; round < 3; ++round) {
    workers.run([&](unsigned worker) {
      if (worker == 1) ++calls;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(calls, 3);
}

TEST(Workers, OneIsTheCaller) {
  Workers workers(1);
  std::thread::id who;
  workers.run([&](unsigned worker) {
    EXPECT_EQ(worker, 0u);
    who = std::this_thread::get_id();
  });
  EXPECT_EQ(who, std::this_thread::get_id());
}

// Not those of the host: a process may be kept on some of them.
TEST(Workers, CountTheCoresThatThisProcessMayUse) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(host_cores(), static_cast<unsigned>(CPU_COUNT(&before)));
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(host_cores(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Workers, GoWithoutHavingWorked) {
  const Workers workers(3);
  EXPECT_EQ(workers.count(), 3u);
}

}  // namespace
}  // namespace cm384::supernode
