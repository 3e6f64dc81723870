// A short run of the exchange; exchange_long_test.cpp has the long one.
#include "testbenches/ub_fabric/switch_exchange/exchange.h"

namespace cm384::studies::exchange_test {
namespace {

class Exchange : public ::testing::TestWithParam<Pattern> {};

TEST_P(Exchange, ModelAndRtlAgree) {
  SwitchCase setting;
  setting.pattern = GetParam();
  setting.ports = 8;
  setting.packets = setting.pattern == Pattern::incast ? 1'000 : 3'000;
  compare(machine_with_bare_chip(), setting, {0.3, 0.7, 0.9});
}

INSTANTIATE_TEST_SUITE_P(Patterns, Exchange,
                         ::testing::Values(Pattern::uniform, Pattern::permutation, Pattern::hotspot,
                                           Pattern::incast, Pattern::tornado),
                         [](const auto& test) {
                           return pattern_names()[static_cast<std::size_t>(test.param)];
                         });

TEST(Exchange, ShortPacketsToo) {
  SwitchCase setting;
  setting.ports = 8;
  setting.lanes = 3;
  setting.bytes = 32;
  setting.packets = 10'000;
  compare(machine_with_bare_chip(), setting, {0.5, 0.7});
}

// Two packets of 512 B fill a buffer, or eight of 32 B.
TEST(Exchange, ScarceCredits) {
  for (const int bytes : {512, 32}) {
    SwitchCase setting;
    setting.ports = 8;
    setting.bytes = bytes;
    setting.packets = 10'000;
    compare(machine_with_bare_chip({"ub.link.buffer_cells=8"}), setting, {0.3, 0.6});
  }
}

// Every lane of a chip with more than 16 ports.
TEST(Exchange, EightLanesOfAWideChip) {
  SwitchCase setting;
  setting.ports = 20;
  setting.lanes = 8;
  setting.packets = 5'000;
  compare(machine_with_bare_chip(), setting, {0.5});
}

TEST(Saturation, SixteenPortsCarryNineTenthsOfTheirBandwidth) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  SwitchCase setting;
  setting.packets = 6'000;
  EXPECT_GE(measure(machine, setting, false).throughput, 0.90);
  EXPECT_GE(measure(machine, setting, true).throughput, 0.90);
}

TEST(Isolation, ABlockedLaneDoesNotHoldAnother) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  SwitchCase setting;
  setting.ports = 8;
  setting.packets = 4'000;
  setting.offered = 0.3;
  for (const bool rtl : {false, true}) {
    setting.rtl = rtl;
    setting.block_lane_0 = false;
    const SwitchReading free = run_switch(machine, setting);
    setting.block_lane_0 = true;
    const SwitchReading blocked = run_switch(machine, setting);
    // Without packets of lane 0 in its way the other can only be faster.
    EXPECT_LT(blocked.lane_mean_ns[1], free.lane_mean_ns[1] * 1.01);
    EXPECT_LT(blocked.delivered, blocked.sent);
    EXPECT_EQ(blocked.wrong, 0u);
  }
}

TEST(Fairness, OfAnIncast) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  SwitchCase setting;
  setting.pattern = Pattern::incast;
  setting.ports = 8;
  setting.packets = 2'000;
  EXPECT_GT(measure(machine, setting, false).jain, 0.999);
  EXPECT_GT(measure(machine, setting, true).jain, 0.999);
}

}  // namespace
}  // namespace cm384::studies::exchange_test
