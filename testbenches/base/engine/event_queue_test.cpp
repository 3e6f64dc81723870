// Order, ties, windows and wake-ups of the event queue, and a differential test against std::map.
#include "base/engine/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace cm384::sim::event_queue_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint32_t> units_until(EventQueue& queue, Time end) {
  std::vector<std::uint32_t> units;
  queue.run_until(end, [&](const Event& e) { units.push_back(e.unit); });
  return units;
}

TEST(EventQueue, HandsOutByTime) {
  EventQueue queue;
  queue.push(30_ps, 3, 0);
  queue.push(10_ps, 1, 0);
  queue.push(5_us, 5, 0);
  queue.push(20_ps, 2, 0);
  queue.push(70_ns, 4, 0);
  EXPECT_EQ(queue.next_time(), 10_ps);
  EXPECT_THAT(units_until(queue, 1_ms), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(queue.now(), 5_us);
  EXPECT_EQ(queue.handled(), 5u);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next_time(), Time::never());
}

TEST(EventQueue, KeepsWhatAnEventSays) {
  EventQueue queue;
  queue.push(1_ns, 11, 12, 13);
  queue.run_until(2_ns, [](const Event& e) {
    EXPECT_EQ(e.at, 1_ns);
    EXPECT_EQ(e.unit, 11u);
    EXPECT_EQ(e.what, 12u);
    EXPECT_EQ(e.argument, 13u);
  });
  EXPECT_EQ(queue.handled(), 1u);
}

TEST(EventQueue, TiesOfOneSourceKeepTheOrderOfPushes) {
  EventQueue queue;
  for (std::uint32_t unit = 0; unit < 100; ++unit) queue.push(1_us, unit, 0);
  std::uint32_t expected = 0;
  queue.run_until(2_us, [&](const Event& e) { EXPECT_EQ(e.unit, expected++); });
  EXPECT_EQ(expected, 100u);
}

// Whichever module runs first, the receiver sees the same order.
TEST(EventQueue, TiesOfManySourcesSortBySourceNotByArrival) {
  for (const bool turned : {false, true}) {
    EventQueue low(1);
    EventQueue high(2);
    EventQueue target(3);
    EventQueue& first = turned ? high : low;
    EventQueue& second = turned ? low : high;
    target.push(1_us, 30, 0);
    target.push_from(first, 1_us, first.source() * 10, 0);
    target.push_from(first, 1_us, first.source() * 10 + 1, 0);
    target.push_from(second, 1_us, second.source() * 10, 0);
    target.push_from(second, 1_us, second.source() * 10 + 1, 0);
    EXPECT_THAT(units_until(target, 2_us), ElementsAre(10, 11, 20, 21, 30));
  }
}

TEST(EventQueue, AWindowEndsJustBeforeItsEnd) {
  EventQueue queue;
  queue.push(999_ps, 1, 0);
  queue.push(1000_ps, 2, 0);
  queue.push(1001_ps, 3, 0);
  EXPECT_THAT(units_until(queue, 1000_ps), ElementsAre(1));
  EXPECT_EQ(queue.now(), 999_ps);
  EXPECT_EQ(queue.next_time(), 1000_ps);
  EXPECT_THAT(units_until(queue, 1000_ps), IsEmpty());
  EXPECT_THAT(units_until(queue, 1001_ps), ElementsAre(2));
  EXPECT_THAT(units_until(queue, 1002_ps), ElementsAre(3));
}

TEST(EventQueue, AHandlerMayPushIntoTheWindowItIsIn) {
  EventQueue queue;
  std::vector<std::int64_t> times;
  queue.push(100_ps, 0, 0);
  queue.push(101_ps, 9, 0);
  queue.run_until(110_ps, [&](const Event& e) {
    times.push_back(e.at.ps);
    if (e.unit < 3) queue.push(e.at + (e.unit == 0 ? 0_ps : 5_ps), e.unit + 1, 0);
  });
  EXPECT_THAT(times, ElementsAre(100, 100, 101, 105));
  EXPECT_EQ(queue.next_time(), 110_ps);
}

// next_time() opens a bucket; an event that then comes before it must still be first.
TEST(EventQueue, AnEventBeforeTheOpenBucketIsFirst) {
  EventQueue queue;
  queue.push(100_ms, 2, 0);
  EXPECT_EQ(queue.next_time(), 100_ms);
  queue.push(1_us, 1, 0);
  EXPECT_EQ(queue.next_time(), 1_us);
  queue.push(1_ns, 0, 0);
  EXPECT_THAT(units_until(queue, 1000_ms), ElementsAre(0, 1, 2));
}

TEST(EventQueue, FarEventsMixWithNearOnes) {
  EventQueue queue;
  queue.push(50_ms, 4, 0);
  queue.push(Time{4'194'304}, 2, 0);  // the first time beyond the wheel
  queue.push(Time{4'194'303}, 1, 0);
  queue.push(40_ms, 3, 0);
  queue.push(0_ps, 0, 0);
  EXPECT_THAT(units_until(queue, 1000_ms), ElementsAre(0, 1, 2, 3, 4));
}

// Two workers send to a queue whose owner is a third's.
TEST(EventQueue, TakesWhatWorkersSentSideBySide) {
  EventQueue target(1), first(2), second(3);
  for (EventQueue* queue : {&target, &first, &second}) queue->set_workers(3);
  {
    const WorkerScope scope(2);
    target.push_from(second, 20_ps, 3, 0);
    target.push_from(second, 10_ps, 1, 0);
  }
  {
    const WorkerScope scope(1);
    target.push_from(first, 10_ps, 0, 0);
    target.post_late(10_ps, 7, 2, 0);
  }
  EXPECT_EQ(target.size(), 4u);
  EXPECT_FALSE(target.empty());
  EXPECT_EQ(target.next_time(), 10_ps);
  EXPECT_THAT(units_until(target, 1_us), ElementsAre(0, 1, 2, 3));
}

class Told : public WakeListener {
 public:
  void wake_at(Time t) override { times.push_back(t.ps); }
  std::vector<std::int64_t> times;
};

// A worker cannot see what another has told.
TEST(EventQueue, TellsTheListenerForEachWorker) {
  EventQueue queue(1), sender(2);
  queue.set_workers(2);
  Told told;
  queue.set_listener(&told);
  queue.push_from(sender, 50_ps, 0, 0);
  queue.push_from(sender, 60_ps, 0, 0);
  {
    const WorkerScope scope(1);
    queue.push_from(sender, 70_ps, 0, 0);
    queue.push_from(sender, 40_ps, 0, 0);
  }
  EXPECT_THAT(std::exchange(told.times, {}), ElementsAre(50, 70, 40));
  queue.run_until(65_ps, [](const Event&) {});
  EXPECT_THAT(std::exchange(told.times, {}), ElementsAre(70));
  const WorkerScope scope(1);
  queue.push_from(sender, 80_ps, 0, 0);
  EXPECT_THAT(told.times, IsEmpty());
}

TEST(EventQueue, TellsTheListenerOfWhatComesEarlier) {
  EventQueue queue;
  Told told;
  queue.push(50_ps, 0, 0);
  queue.set_listener(&told);
  EXPECT_THAT(std::exchange(told.times, {}), ElementsAre(50));
  queue.push(60_ps, 0, 0);
  EXPECT_THAT(told.times, IsEmpty());
  queue.push(40_ps, 0, 0);
  EXPECT_THAT(std::exchange(told.times, {}), ElementsAre(40));
  // Nothing while it runs, what is left at the end.
  queue.run_until(55_ps, [&](const Event& e) {
    if (e.at == 40_ps) queue.push(57_ps, 0, 0);
  });
  EXPECT_THAT(std::exchange(told.times, {}), ElementsAre(57));
  queue.push(58_ps, 0, 0);
  EXPECT_THAT(told.times, IsEmpty());
  queue.push(56_ps, 0, 0);
  EXPECT_THAT(std::exchange(told.times, {}), ElementsAre(56));
  queue.run_until(1_us, [](const Event&) {});
  EXPECT_THAT(told.times, IsEmpty());
  queue.push(2_us, 0, 0);
  EXPECT_THAT(told.times, ElementsAre(2'000'000));
}

// The same pushes on a sorted multimap; every pop must agree, for delays within a bucket, within the wheel
// and beyond it, and for windows of any width.
class Differential : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(Differential, AgreesWithASortedMap) {
  std::mt19937_64 random(7);
  EventQueue queue(5, Time{GetParam()});
  EventQueue sender(4);
  std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t> reference;
  std::uint64_t own = 0;
  std::uint64_t sent = 0;
  std::uint64_t serial = 0;
  // Other modules send only while the owner does not run.
  const auto push = [&](Time at, bool running = false) {
    if (!running && random() % 2 == 0) {
      queue.push_from(sender, at, 0, 0, serial);
      reference.emplace(std::pair{at.ps, (std::uint64_t{4} << 44) | sent++}, serial++);
    } else {
      queue.push(at, 0, 0, serial);
      reference.emplace(std::pair{at.ps, (std::uint64_t{5} << 44) | own++}, serial++);
    }
  };
  const auto delay = [&]() -> std::int64_t {
    switch (random() % 6) {
      case 0:
        return 0;
      case 1:
        return static_cast<std::int64_t>(random() % 8);
      case 2:
        return static_cast<std::int64_t>(random() % 2'000);
      case 3:
        return static_cast<std::int64_t>(random() % 400'000);
      case 4:
        return static_cast<std::int64_t>(random() % 6'000'000);
      default:
        return static_cast<std::int64_t>(random() % 300'000'000);
    }
  };
  Time end{};
  for (int window = 0; window < 3000; ++window) {
    if (reference.size() < 300) {
      for (std::uint64_t i = random() % 100; i > 0; --i) push(end + Time{delay()});
    }
    end += Time{delay()};
    int budget = 200;
    queue.run_until(end, [&](const Event& e) {
      ASSERT_FALSE(reference.empty());
      ASSERT_EQ(e.at.ps, reference.begin()->first.first);
      ASSERT_EQ(e.order, reference.begin()->first.second);
      ASSERT_EQ(e.argument, reference.begin()->second);
      reference.erase(reference.begin());
      if (budget-- > 0) push(e.at + Time{delay()}, true);
    });
    ASSERT_EQ(queue.size(), reference.size());
    ASSERT_EQ(queue.next_time().ps, reference.empty() ? Time::never().ps : reference.begin()->first.first);
    if (!reference.empty()) {
      ASSERT_GE(reference.begin()->first.first, end.ps);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(queue.handled(), 10'000u);
}
INSTANTIATE_TEST_SUITE_P(BucketWidths, Differential, ::testing::Values(1, 1000, 1024, 65'536, 10'000'000));

#ifndef NDEBUG
TEST(EventQueueDeathTest, RefusesThePast) {
  EventQueue queue;
  queue.push(10_ns, 0, 0);
  queue.run_until(1_us, [](const Event&) {});
  EXPECT_DEATH(queue.push(9_ns, 0, 0), "now_");
}
#endif

}  // namespace
}  // namespace cm384::sim::event_queue_test
