// Texts of service classes, and which of their parameters have an effect.
#include <gmock/gmock.h>

#include "hw/machine.h"
#include "testbenches/hw/refusal.h"

namespace cm384::hw::qos_test {
namespace {

using namespace cm384::literals;
using ::testing::HasSubstr;

UbQos qos(const std::vector<std::string>& set) {
  return load_machine("cloudmatrix384", set).ub.qos;
}
std::string refused(const std::vector<std::string>& set) {
  return refusal([&] { load_machine("cloudmatrix384", set); });
}

TEST(Qos, ListsHoldForTheClassesAfterThem) {
  const UbQos classes = qos({"ub.qos.classes=3", "ub.qos.arbitration=drr", "ub.qos.weights=4,1000",
                             "ub.qos.rates=none,20GB/s", "ub.qos.burst=1KiB"});
  EXPECT_EQ(classes.weight(0), 4);
  EXPECT_EQ(classes.weight(1), 1000);
  EXPECT_EQ(classes.weight(2), 1000);
  EXPECT_EQ(classes.rate(0), Bandwidth{});
  EXPECT_EQ(classes.rate(2), 20_GBps);
  EXPECT_TRUE(classes.limits_rates());
  EXPECT_FALSE(qos({}).limits_rates());
}

TEST(Qos, LevelsOfDiesBeginAnewAtTheEndOfTheList) {
  const UbQos levels = qos({"ub.qos.classes=2", "ub.qos.die_levels=1x3,0,15x2"});
  const int expected[] = {1, 1, 1, 0, 15, 15};
  for (int die = 0; die < 768; ++die) EXPECT_EQ(levels.die_level(die), expected[die % 6]) << die;
  EXPECT_EQ(qos({}).die_level(767), 0);
}

TEST(Qos, RefusesWhatIsNoList) {
  for (const char* text : {"0", "1001", "1,", "", "1.5", "a", "1;2"})
    EXPECT_THAT(refused({std::string("ub.qos.weights=") + text}), HasSubstr("ub.qos.weights")) << text;
  for (const char* text : {"999kB/s", "5TB/s", "20", "none,", ""})
    EXPECT_THAT(refused({std::string("ub.qos.rates=") + text}), HasSubstr("ub.qos.rates")) << text;
  for (const char* text : {"16", "1x0", "1x", "x8", "-1", "1,", "1x8x8", "1x1234567"})
    EXPECT_THAT(refused({std::string("ub.qos.die_levels=") + text}), HasSubstr("ub.qos.die_levels")) << text;
  EXPECT_EQ(refused({"ub.qos.rates=1MB/s"}), "(accepted)");
  EXPECT_EQ(refused({"ub.qos.rates=4TB/s"}), "(accepted)");
  EXPECT_EQ(refused({"ub.qos.classes=2", "ub.qos.die_levels=15x999999"}), "(accepted)");
  EXPECT_THAT(refused({"ub.qos.classes=2", "ub.qos.rates=1GB/s,1GB/s,1GB/s"}), HasSubstr("3 of 2 classes"));
  EXPECT_THAT(refused({"ub.qos.classes=2", "ub.qos.arbitration=drr", "ub.qos.weights=1,1,1"}),
              HasSubstr("3 of 2 classes"));
}

TEST(Qos, SaysWhatHasNoEffect) {
  for (const char* set : {"ub.qos.arbitration=strict", "ub.qos.arbitration=drr", "ub.qos.weights=2",
                          "ub.qos.quantum=1KiB", "sdma.service_level=3"})
    EXPECT_THAT(refused({set}), HasSubstr("has no effect with ub.qos.classes=1")) << set;
  EXPECT_EQ(refused({"ub.qos.arbitration=age"}), "(accepted)");
  for (const char* set : {"ub.qos.weights=1,2", "ub.qos.quantum=1KiB"}) {
    EXPECT_THAT(refused({"ub.qos.classes=2", "ub.qos.arbitration=strict", set}),
                HasSubstr("allowed with: drr"));
    EXPECT_EQ(refused({"ub.qos.classes=2", "ub.qos.arbitration=drr", set}), "(accepted)");
  }
  EXPECT_THAT(refused({"ub.qos.burst=1KiB"}), HasSubstr("has no effect with ub.qos.rates=none"));
  EXPECT_EQ(refused({"ub.qos.burst=1KiB", "ub.qos.rates=1GB/s"}), "(accepted)");
}

}  // namespace
}  // namespace cm384::hw::qos_test
