// Ten million packets through model and RTL, every pattern; a full chip of level two at saturation.
#include "testbenches/ub_fabric/switch_exchange/exchange.h"

namespace cm384::studies::exchange_long_test {
namespace {

TEST(ExchangeLong, TenMillionPackets) {
  const hw::Machine machine = machine_with_bare_chip();
  std::uint64_t packets = 0;
  for (const Pattern pattern :
       {Pattern::uniform, Pattern::permutation, Pattern::hotspot, Pattern::incast, Pattern::tornado}) {
    SwitchCase setting;
    setting.pattern = pattern;
    // All of an incast go through one output, one after the other.
    const bool one_output = pattern == Pattern::incast;
    setting.packets = one_output ? 2'500 : 20'000;
    packets += compare(machine, setting, {0.3, 0.5, 0.7, 0.9});
    setting.bytes = 32;
    setting.packets = one_output ? 40'000 : 200'000;
    setting.seed = 2;
    packets += compare(machine, setting, {0.3, 0.5, 0.7, 0.9});
  }
  EXPECT_GE(packets, 10'000'000u);
}

// Buffers of two packets of 512 B, or of eight of 32 B.
TEST(ExchangeLong, ScarceCredits) {
  const hw::Machine machine = machine_with_bare_chip({"ub.link.buffer_cells=8"});
  for (const int bytes : {512, 32}) {
    for (const Pattern pattern : {Pattern::uniform, Pattern::hotspot}) {
      SwitchCase setting;
      setting.ports = 8;
      setting.pattern = pattern;
      setting.bytes = bytes;
      setting.packets = 100'000;
      compare(machine, setting, {0.3, 0.5, 0.7, 0.9});
    }
  }
}

TEST(ExchangeLong, FortyEightPortsCarryNineTenthsOfTheirBandwidth) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  SwitchCase setting;
  setting.ports = 48;
  setting.packets = 30'000;
  const double model = measure(machine, setting, false).throughput;
  const double rtl = measure(machine, setting, true).throughput;
  EXPECT_GE(model, 0.90);
  EXPECT_GE(rtl, 0.90);
  EXPECT_NEAR(rtl / model, 1, 0.03);
}

}  // namespace
}  // namespace cm384::studies::exchange_long_test
