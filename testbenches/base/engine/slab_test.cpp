// The slab that packets, payload and records of planes come from, and its lists.
#include "base/engine/slab.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cm384::sim::slab_test {
namespace {

struct Record {
  std::uint32_t next = 7, value = 3;
};
using Small = Slab<Record, 4, 12>;

TEST(Slab, GivesAsManyAsMayBe) {
  Small slab("full");
  for (std::uint32_t n = 0; n < 12; ++n) EXPECT_EQ(slab.allocate(), n);
  EXPECT_EQ(slab.in_use(), 12u);
  try {
    slab.allocate();
    FAIL();
  } catch (const MachineError& error) {
    EXPECT_EQ(std::string(error.what()), "full");
  }
  EXPECT_EQ(slab.in_use(), 12u);
}

TEST(Slab, GivesTheLastReleasedFirstAsItWasLeft) {
  Small slab;
  const std::uint32_t first = slab.allocate(), second = slab.allocate();
  EXPECT_EQ(slab[first].value, 3u);  // fresh
  slab[first].value = 1;
  slab[second].value = 2;
  slab.release(second);
  slab.release(first);
  EXPECT_EQ(slab.in_use(), 0u);
  EXPECT_EQ(slab.allocate(), first);
  EXPECT_EQ(slab[first].value, 1u);
  EXPECT_EQ(slab.allocate(), second);
  EXPECT_EQ(slab[second].value, 2u);
  EXPECT_EQ(slab.allocate(), 2u);
}

// Pages of their own, so that what one takes another may give back.
TEST(Slab, WorkersHaveListsOfTheirOwn) {
  Small slab;
  slab.set_workers(2);
  const std::uint32_t of_first = slab.allocate();
  std::uint32_t of_second = 0;
  {
    const WorkerScope scope(1);
    of_second = slab.allocate();
    slab.release(of_first);
    EXPECT_EQ(slab.in_use(), 1u);
    EXPECT_EQ(slab.allocate(), of_first);
  }
  EXPECT_EQ(of_first, 0u);
  EXPECT_EQ(of_second, 4u);
  EXPECT_EQ(slab.allocate(), 1u);
  EXPECT_EQ(slab.in_use(), 3u);
}

TEST(Slab, RecordsStayWhereTheyAreWhileItGrows) {
  Small slab;
  const Record* const first = &slab[slab.allocate()];
  for (int n = 0; n < 11; ++n) slab[slab.allocate()].value = 9;
  EXPECT_EQ(first, &slab[0]);
  EXPECT_EQ(first->value, 3u);
}

TEST(SlabQueue, IsFirstInFirstOut) {
  Small slab;
  SlabQueue<Record> queue;
  EXPECT_TRUE(queue.empty());
  for (int round = 0; round < 2; ++round) {
    std::vector<std::uint32_t> pushed;
    for (int n = 0; n < 3; ++n) {
      pushed.push_back(slab.allocate());
      queue.push(slab, pushed.back());
      EXPECT_EQ(slab[pushed.back()].next, kNoRecord);
    }
    for (const std::uint32_t index : pushed) EXPECT_EQ(queue.pop(slab), index);
    EXPECT_TRUE(queue.empty());
  }
}

}  // namespace
}  // namespace cm384::sim::slab_test
