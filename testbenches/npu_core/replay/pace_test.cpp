// Followers end when the formula of npu_core/replay/pace.h says.
#include "npu_core/replay/pace.h"

#include <gtest/gtest.h>

#include <map>

namespace cm384::npu::pace_test {
namespace {

class Told final : public PaceFollower {
 public:
  void ends_at(std::uint32_t number, Time at) override { ends[number] = at; }
  std::map<std::uint32_t, Time> ends;
};

struct Rig {
  Rig() : launch(board.add()) {}
  // A setter of work that takes `alone` by itself.
  void set(int die, Time begin, Time end, Time alone) {
    board.began(launch, die, begin, {0, alone});
    board.ended(launch, die, end);
  }

  PaceBoard board{1};
  std::size_t launch;
  Told told;
};

TEST(Pace, LastsAsLongAsThatOfTheSetterThatBeganLastBefore) {
  Rig rig;
  for (int n = 0; n < 3; ++n) rig.board.add_setter(rig.launch, {0, 100_us});
  rig.set(1, 10_us, 130_us, 100_us);
  rig.set(2, 14_us, 124_us, 100_us);
  rig.set(3, 20_us, 160_us, 100_us);
  rig.board.follow(rig.launch, 7, 16_us, {0, 100_us}, 5, rig.told);
  rig.board.follow(rig.launch, 8, 13_us, {0, 100_us}, 6, rig.told);
  rig.board.settle(120_us);
  EXPECT_EQ(rig.told.ends.at(5), 16_us + 110_us);
  EXPECT_EQ(rig.told.ends.at(6), 13_us + 120_us);
  EXPECT_EQ(rig.board.late().launches, 2U);
  EXPECT_EQ(rig.board.late().sum, Time{});
}

TEST(Pace, WaitsForTheFirstWhereNoneHasBegun) {
  Rig rig;
  rig.board.add_setter(rig.launch, {0, 100_us});
  rig.board.follow(rig.launch, 7, 16_us, {0, 100_us}, 5, rig.told);
  rig.board.settle(17_us);
  rig.board.began(rig.launch, 1, 20_us, {0, 100_us});
  rig.board.settle(40_us);
  EXPECT_TRUE(rig.told.ends.empty());
  rig.board.ended(rig.launch, 1, 130_us);
  rig.board.settle(131_us);
  // Due 126 us; dies take events from 131 us on.
  EXPECT_EQ(rig.told.ends.at(5), 131_us);
  EXPECT_EQ(rig.board.late().sum, 5_us);
  EXPECT_EQ(rig.board.late().most, 5_us);
}

TEST(Pace, FollowsWorkThatIsMostLikeItsOwnAndScales) {
  Rig rig;
  rig.board.add_setter(rig.launch, {0, 100_us});
  rig.board.add_setter(rig.launch, {0, 400_us});
  rig.set(1, 10_us, 130_us, 100_us);
  // That of its like is yet to begin.
  rig.board.follow(rig.launch, 7, 20_us, {0, 440_us}, 5, rig.told);
  rig.board.settle(140_us);
  EXPECT_TRUE(rig.told.ends.empty());
  rig.set(2, 200_us, 700_us, 400_us);
  rig.board.settle(300_us);
  EXPECT_EQ(rig.told.ends.at(5), 20_us + 550_us);
  // Between both, and nearer to the short one.
  rig.board.follow(rig.launch, 8, 300_us, {0, 150_us}, 6, rig.told);
  rig.board.settle(310_us);
  EXPECT_EQ(rig.told.ends.at(6), 300_us + 180_us);
}

TEST(Pace, FollowsItsOwnKindRatherThanItsLength) {
  Rig rig;
  rig.board.add_setter(rig.launch, {0, 100_us});
  rig.board.add_setter(rig.launch, {1, 300_us});
  rig.set(1, 10_us, 130_us, 100_us);
  rig.board.began(rig.launch, 2, 10_us, {1, 300_us});
  rig.board.ended(rig.launch, 2, 610_us);
  rig.board.follow(rig.launch, 7, 20_us, {1, 100_us}, 5, rig.told);
  rig.board.follow(rig.launch, 8, 20_us, {2, 100_us}, 6, rig.told);
  rig.board.settle(100_us);
  EXPECT_EQ(rig.told.ends.at(5), 20_us + 200_us);
  EXPECT_EQ(rig.told.ends.at(6), 20_us + 120_us);
}

TEST(Pace, KeepsLaunchesApart) {
  Rig rig;
  const std::size_t other = rig.board.add();
  rig.board.add_setter(rig.launch, {0, 100_us});
  rig.board.add_setter(other, {0, 100_us});
  rig.set(1, 10_us, 130_us, 100_us);
  rig.board.follow(other, 7, 20_us, {0, 100_us}, 5, rig.told);
  rig.board.settle(200_us);
  EXPECT_TRUE(rig.told.ends.empty());
}

}  // namespace
}  // namespace cm384::npu::pace_test
