// The threads that run modules side by side.
#include "system/machine/workers.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <chrono>
#include <ctime>
#include <mutex>
#include <set>

#include "base/engine/worker.h"
#include "system/machine/threads_what_if.h"

namespace cm384::supernode::workers_test {
namespace {

using ::testing::Each;
using namespace std::chrono_literals;

constexpr unsigned kWorkers = 8;

// Processor time of all threads of this process.
std::chrono::nanoseconds processor_time() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Waits for a condition that another thread brings about; false where it takes too long.
template <class Condition>
bool comes_true(Condition&& condition) {
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

TEST(Workers, EachActsOnceARound) {
  for (const unsigned threads : {1u, 2u, 3u, kWorkers}) {
    Workers workers(kWorkers, threads);
    EXPECT_EQ(workers.threads(), threads);
    std::vector<int> calls(kWorkers, 0);
    for (int round = 1; round <= 2000; ++round) {
      workers.run([&](unsigned worker) {
        ++calls[worker];
        EXPECT_EQ(sim::worker(), worker);
      });
      ASSERT_THAT(calls, Each(round)) << threads;
    }
    EXPECT_EQ(sim::worker(), 0u);
  }
}

// A round that no thread could end without the others.
TEST(Workers, ActSideBySide) {
  constexpr unsigned kThreads = 4;
  Workers workers(kThreads, kThreads);
  std::set<std::thread::id> threads;
  std::mutex mutex;
  const auto all_are_here = [&] {
    const std::lock_guard lock(mutex);
    return threads.size() == kThreads;
  };
  workers.run([&](unsigned) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    EXPECT_TRUE(comes_true(all_are_here));
  });
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
}

// A helper that the host has taken off its core keeps nobody waiting but for the worker it has begun to act
// for: the caller does all the rest of the round.
TEST(Workers, TheCallerWaitsForNothingThatNobodyHasBegun) {
  Workers workers(kWorkers, 2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<unsigned> by_caller = 0, by_helper = 0;
  ASSERT_TRUE(comes_true([&] {  // a round in which the helper takes part
    by_caller = by_helper = 0;
    workers.run([&](unsigned) {
      if (std::this_thread::get_id() == caller) {
        ++by_caller;
        std::this_thread::sleep_for(1ms);
      } else {
        ++by_helper;
        EXPECT_TRUE(comes_true([&] { return by_caller == kWorkers - 1; }));
      }
    });
    return by_helper == 1;
  }));
  EXPECT_EQ(by_caller, kWorkers - 1);
}

// One that comes late for a round must not act in it again, nor in one that has not begun.
TEST(Workers, ALateThreadDoesNothing) {
  Workers workers(3, 3);
  std::atomic<int> calls = 0;
  for (int round = 0; round < 20000; ++round) workers.run([&](unsigned) { ++calls; });
  EXPECT_EQ(calls, 60000);
}

TEST(Workers, WakeWhenTheyHaveFallenAsleep) {
  Workers workers(2, 2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> helped = false;
    workers.run([&](unsigned) {
      if (std::this_thread::get_id() == caller) {
        EXPECT_TRUE(comes_true([&] { return helped.load(); }));
      } else {
        helped = true;
      }
    });
    std::this_thread::sleep_for(20ms);
  }
}

// Others need the core: helpers between rounds, and the caller when it waits for one of them.
TEST(Workers, WaitingTakesNoProcessorTime) {
  Workers workers(2, 4);
  const std::thread::id caller = std::this_thread::get_id();
  const auto before = processor_time();
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> helped = false;
    workers.run([&](unsigned) {
      if (std::this_thread::get_id() == caller) {
        EXPECT_TRUE(comes_true([&] { return helped.load(); }));
      } else {
        helped = true;
        std::this_thread::sleep_for(20ms);
      }
    });
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_LT(processor_time() - before, 40ms);  // of 200 ms
}

TEST(Workers, OneIsTheCaller) {
  Workers workers(1, 4);
  EXPECT_EQ(workers.threads(), 1u);
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
  const Workers workers(3, 3);
  EXPECT_EQ(workers.count(), 3u);
}

// Sixteen modules on two threads have eight workers of two modules each: 0 and 8, 1 and 9, ..
TEST(ThreadsWhatIf, BoundIsTheBusiestThreadOfEachWindow) {
  std::vector<std::uint64_t> events(16, 10);
  ThreadsWhatIf even(2);
  even.add_window(events);
  EXPECT_EQ(even.events(), 160u);
  EXPECT_EQ(even.longest(), 80u);
  // A large module binds a thread by itself; the other one takes all other workers.
  events[3] = 1'000;
  even.add_window(events);
  EXPECT_EQ(even.events(), 160u + 1'150u);
  EXPECT_EQ(even.longest(), 80u + 1'030u);
}

// Workers 0 and 1 have 40 and 10 to do; the thread that is done first takes worker 2, and then worker 3.
TEST(ThreadsWhatIf, WhoIsDoneEarlyTakesTheNextWorker) {
  ThreadsWhatIf what_if(2);
  what_if.add_window(std::vector<std::uint64_t>{40, 10, 10, 10});
  EXPECT_EQ(what_if.longest(), 40u);
}

TEST(ThreadsWhatIf, MoreThreadsThanModulesAreIdle) {
  ThreadsWhatIf what_if(16);
  what_if.add_window(std::vector<std::uint64_t>{5, 7});
  EXPECT_EQ(what_if.longest(), 7u);
  EXPECT_FALSE(ThreadsWhatIf(0).asked());
}

}  // namespace
}  // namespace cm384::supernode::workers_test
