// Paths and stations against what max-plus algebra and a queue on paper say.
#include "system/observe/explain/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "system/observe/explain/core_path.h"
#include "system/observe/explain/explanation.h"
#include "system/observe/explain/station.h"
#include "testbenches/hw/refusal.h"

namespace cm384::observe::path_test {
namespace {

double gain(const Path& path, Resource resource) {
  return path.gain[static_cast<std::size_t>(resource)];
}
double spent(const Path& path, Part part) {
  return static_cast<double>(path.spent[static_cast<std::size_t>(part)]);
}

TEST(Path, AChainGainsHalfOfWhatItSpent) {
  Path path;
  path.add(1000, Part::vector, Resource::vector);
  path.add(400, Part::wire, Resource::wire);
  path.add(50, Part::other, Resource::none);
  EXPECT_EQ(gain(path, Resource::none), 0);
  EXPECT_EQ(path.at, 1450);
  EXPECT_EQ(gain(path, Resource::vector), 500);
  EXPECT_EQ(gain(path, Resource::wire), 200);
  EXPECT_EQ(spent(path, Part::vector), 1000);
  EXPECT_EQ(spent(path, Part::other), 50);
}

// 1000 of the vector unit beside 700 of the wire: at half its time the wire binds, 300 earlier, not 500.
TEST(Path, WhereTwoMeetTheOtherBindsNext) {
  Path vector, wire;
  vector.add(1000, Part::vector, Resource::vector);
  wire.add(700, Part::wire, Resource::wire);
  for (const bool first : {false, true}) {
    Path both = first ? vector : wire;
    both.join(first ? wire : vector);
    EXPECT_EQ(both.at, 1000);
    EXPECT_EQ(gain(both, Resource::vector), 300);
    EXPECT_EQ(gain(both, Resource::wire), 0);
    EXPECT_EQ(spent(both, Part::vector), 1000);
    EXPECT_EQ(spent(both, Part::wire), 0);
  }
}

TEST(Path, MeetsTheRun) {
  Path path;
  path.add(100, Part::vector, Resource::vector);
  path.meet(130, Part::barrier, Resource::barrier);
  EXPECT_EQ(gain(path, Resource::barrier), 15);
  path.meet(120, Part::other, Resource::none);
  EXPECT_EQ(path.at, 120);
  EXPECT_EQ(gain(path, Resource::vector), 50);
}

// Remote writes of an engine that may have two under way and issues one each 100 ps.
class RemoteWrites : public ::testing::Test {
 protected:
  RemoteWrites() {
    kind_.engines[kWrites].remote_window = 2;
    kind_.engines[kWrites].interval = 100;
    core_.begin({});
  }
  // Leaves at `at`; comes back at `answered`, of which `wire` is spent on the way.
  Path leaves(double at) { return core_.request(kWrites, 4, true, false, at); }
  void answer(const Path& request, double wire) {
    Path done = request;
    done.add(wire, Part::wire, Resource::wire);
    core_.remote_done(kWrites, 0, false, done);
  }

  static constexpr std::size_t kWrites = 1;
  hw::Machine machine_ = hw::load_machine("cloudmatrix384");
  CoreKind kind_{machine_, false};
  CorePath core_{Clock(machine_.die.clock), kind_};
};

// The third waits for the answer to the first, 4000 of wire: with half the latency it leaves at 2000, not at
// 200.
TEST_F(RemoteWrites, AFullWindowWaitsForTheOldestAnswer) {
  const Path first = leaves(0), second = leaves(100);
  EXPECT_EQ(second.time(Resource::wire), 100);
  EXPECT_EQ(second.time(Resource::copy_issue), 50);
  answer(first, 4000);
  answer(second, 6000);
  const Path third = leaves(4000), fourth = leaves(6100);
  EXPECT_EQ(third.time(Resource::none), 4000);
  EXPECT_EQ(third.time(Resource::wire), 2000);
  // It has waited for its own answer, which came by 100 of issue, and not for what the third has waited for.
  EXPECT_EQ(fourth.time(Resource::wire), 3100);
  EXPECT_EQ(fourth.time(Resource::copy_issue), 6050);
}

// Without answers to wait for, or with room, only the engine's own interval counts.
TEST_F(RemoteWrites, AWindowWithRoomHoldsNothingBack) {
  kind_.engines[kWrites].remote_window = 8;
  answer(leaves(0), 4000);
  const Path second = leaves(100), third = leaves(200);
  EXPECT_EQ(third.at, 200);
  EXPECT_EQ(third.time(Resource::wire), 200);
  EXPECT_EQ(third.time(Resource::copy_issue), 100);
  EXPECT_EQ(second.time(Resource::copy_issue), 50);
}

// A saturated server: 1000 requests that come at once and take 10 each end at 10,000; at half of that at
// 5,000, whatever else gets faster.
TEST(Station, BindsWhereItIsSaturated) {
  Station station;
  Path last;
  for (int n = 0; n < 1000; ++n) {
    last = Path();
    last.add(1, Part::wire, Resource::wire);
    station.pass(last, 1 + 10.0 * n, 10, Part::hbm, Resource::hbm, Part::fabric_wait);
  }
  EXPECT_EQ(last.at, 1 + 9990);
  EXPECT_NEAR(gain(last, Resource::hbm), 4995, 1e-6);
  EXPECT_NEAR(gain(last, Resource::wire), 0.5, 1e-6);
  EXPECT_EQ(spent(last, Part::hbm), 9990);
  EXPECT_EQ(station.busy(), 10'000);
}

// Over many bins: what would come earlier finds no time left.
TEST(Station, HasNoTimeLeftForWhoComesEarlier) {
  Station station;
  Path last;
  constexpr double kService = 50'000;
  for (int n = 0; n < 100; ++n) {
    last = Path();
    last.add(n * kService, Part::wire, Resource::wire);  // each as late as it is served, all of it the wire
    station.pass(last, n * kService, kService, Part::hbm, Resource::hbm, Part::fabric_wait);
  }
  // With half the wire they come twice as fast as they can be served.
  EXPECT_NEAR(gain(last, Resource::wire), 0, 2 * 500'000);
}

TEST(Station, LetsThemOvertakeWhereItHasTime) {
  Station station;
  Path slow, fast;
  slow.add(1'000'000, Part::other, Resource::none);
  station.pass(slow, 1'000'000, 1000, Part::hbm, Resource::hbm, Part::fabric_wait);
  fast.add(1'000'100, Part::wire, Resource::wire);
  station.pass(fast, 1'001'000, 1000, Part::hbm, Resource::hbm, Part::fabric_wait);
  EXPECT_NEAR(gain(fast, Resource::wire), 500'050, 1);
  EXPECT_NEAR(gain(fast, Resource::hbm), 500, 1);
}

// Copies are not followed, and where nothing is, nothing is said to gain.
TEST(Explanation, SaysWhereNothingIsFollowed) {
  Explanation why;
  why.span_us = 10;
  why.path.push_back({name_of(Part::sdma), 10, 1, Resource::none});
  const std::string text = why.text();
  EXPECT_THAT(text, ::testing::HasSubstr("SDMA 100 %\nSDMA: a copy is not followed"));
  EXPECT_THAT(text, ::testing::HasSubstr("nothing that is followed gives any"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("busiest")));
}

TEST(TwiceAsFast, HalvesTimesAndDoublesRates) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  const auto of = [&](Resource resource) { return twice_as_fast(machine, resource); };
  EXPECT_EQ(of(Resource::write_interval), std::vector<std::string>{"ub.controller.write_interval=1866ps"});
  EXPECT_EQ(of(Resource::link), std::vector<std::string>{"ub.link.bandwidth=56GB/s"});
  EXPECT_EQ(of(Resource::trunk), std::vector<std::string>{"ub.link.trunk_rate=2"});
  EXPECT_EQ(of(Resource::die_link),
            (std::vector<std::string>{"ub.link.bandwidth=56GB/s", "ub.link.trunk_rate=0.5"}));
  EXPECT_EQ(of(Resource::buffers), std::vector<std::string>{"ub.link.buffer_cells=512"});
  EXPECT_EQ(of(Resource::barrier), std::vector<std::string>{"die.sync_all_latency=0.5us"});
  EXPECT_EQ(of(Resource::scalar), std::vector<std::string>{});
  hw::Machine widest = machine;
  hw::override_parameter(widest, "ub.link.buffer_cells=4096");
  EXPECT_EQ(twice_as_fast(widest, Resource::buffers), std::vector<std::string>{});  // out of its range
  const std::vector<std::string> vector = of(Resource::vector);
  EXPECT_NE(std::ranges::find(vector, "vector_core.add.slope=1.055"), vector.end());
  for (std::size_t k = 1; k < kResources; ++k) {
    hw::Machine changed = machine;
    for (const std::string& assignment : of(static_cast<Resource>(k)))
      EXPECT_EQ(refusal([&] { hw::override_parameter(changed, assignment); }), "(accepted)") << assignment;
    EXPECT_EQ(refusal([&] { hw::check_machine(changed); }), "(accepted)")
        << text_of(static_cast<Resource>(k)).name;
  }
}

}  // namespace
}  // namespace cm384::observe::path_test
