// Energy by activity against sums done by hand: the shipped table at its stated load and idle, a table of the
// test's own, and what is refused.
#include "system/observe/energy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/text/error.h"
#include "hw/machine.h"
#include "system/machine/statistics.h"

namespace cm384::observe::energy_test {
namespace {

constexpr int kDies = 768;

// What a whole supernode counts in a second, each die at these shares of: 376 TFLOPS BF16, 1.6 TB/s of HBM, 5
// TB/s of L2, 5.68e12 FP32 elements.
Json second_at(double cube, double hbm, double l2, double vector) {
  Json parts = Json::object();
  for (int die = 0; die < kDies; ++die) parts[fmt::format("die{}", die)] = Json::object();
  return {{"run", "a load"},
          {"simulated_us", 1e6},
          {"parts", parts},
          {"totals",
           {{"die*.aic*.m.multiply_adds_bf16", kDies * cube * 376e12 / 2},
            {"die*.hbm.read_bytes", kDies * hbm * 1.6e12 / 2},
            {"die*.hbm.written_bytes", kDies * hbm * 1.6e12 / 2},
            {"die*.memory.read_bytes", kDies * l2 * 5e12},
            {"die*.aiv*.vector.repeats", kDies * vector * 5.68e12 / 64}}}};
}

hw::Machine machine() {
  return hw::load_machine("cloudmatrix384");
}

Energy energy_at(double cube, double hbm, double l2, double vector) {
  return energy_of(second_at(cube, hbm, l2, vector), machine(), EnergyTable::load("default", machine()));
}

// Per package: 776 W = 2 x (85 + 210.6 + 40.3 + 40.0 + 11.9), 465 and 1,036 with all coefficients at their
// ends; all in 1,457 W, which is the supernode's estimated 559 kW.
TEST(Energy, TheTableAddsUpAtItsStatedLoad) {
  const Energy energy = energy_at(0.80, 0.35, 0.40, 0.30);
  EXPECT_NEAR(energy.packages.value / 384, 775.6, 1.0);
  EXPECT_NEAR(energy.packages.least / 384, 465, 5);
  EXPECT_NEAR(energy.packages.most / 384, 1'036, 10);
  EXPECT_NEAR(energy.all.value, 559e3, 0.01 * 559e3);
}

TEST(Energy, IdleAndStreamingPackages) {
  EXPECT_NEAR(energy_at(0, 0, 0, 0).packages.value / 384, 170, 0.5);
  EXPECT_NEAR(energy_at(0, 0.85, 0.20, 0.10).packages.value / 384, 414, 3);
  EXPECT_NEAR(energy_at(0.85, 0.20, 0.40, 0.05).packages.value / 384, 747, 5);
}

TEST(Energy, PartsAddUpToAll) {
  const Energy energy = energy_at(0.5, 0.5, 0.5, 0.5);
  Joules sum;
  for (const EnergyShare& share : energy.parts) sum.value += share.joules.value;
  EXPECT_NEAR(sum.value, energy.all.value, 1e-9 * energy.all.value);
}

// One die of 768 bears a 768th of what all have in common.
TEST(Energy, ADieBearsItsShareOfTheMachine) {
  Json row = second_at(0, 0, 0, 0);
  row["parts"] = {{"die5", Json::object()}};
  const Energy one = energy_of(row, machine(), EnergyTable::load("default", machine()));
  EXPECT_NEAR(one.all.value * kDies, energy_at(0, 0, 0, 0).all.value, 1e-3);
}

// A machine with another topology has no chips of the table's kinds: they count as others.
TEST(Energy, ChipsOfOtherKindsCount) {
  const hw::Machine torus = hw::load_machine("cloudmatrix384", {"topology.kind=torus", "ub.link.lanes=8"});
  const Energy energy = energy_of(second_at(0, 0, 0, 0), torus, EnergyTable::load("default", torus));
  const auto switches = std::ranges::find(energy.parts, "switches", &EnergyShare::part);
  EXPECT_NEAR(switches->joules.value, 7 * 48 * 110.0, 1e-6);
}

std::string file_with(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/table.toml";
  std::ofstream(path) << text;
  return path;
}

std::string refusal(const std::string& text) {
  try {
    const EnergyTable table = EnergyTable::load(file_with(text), machine());
    table.check(supernode::statistic_patterns(hw::load_machine("cloudmatrix384")));
    energy_of(second_at(0, 0, 0, 0), hw::load_machine("cloudmatrix384"), table);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kHead = "name = \"mine\"\nnote = \"a test\"\n";
constexpr const char* kAction =
    "[[action]]\nname = \"a\"\npart = \"a\"\ncounters = [\"die*.hbm.read_bytes\"]\npicojoules = 2\nleast = "
    "1\nmost = 3\n"
    "source = \"test\"\n";

TEST(Energy, AnOwnTable) {
  EXPECT_EQ(refusal(std::string(kHead) + kAction), "");
  const EnergyTable table = EnergyTable::load(file_with(std::string(kHead) + kAction), machine());
  const Energy energy = energy_of(second_at(0, 1, 0, 0), hw::load_machine("cloudmatrix384"), table);
  EXPECT_DOUBLE_EQ(energy.all.value, kDies * 0.8e12 * 2e-12);
  EXPECT_DOUBLE_EQ(energy.all.least, kDies * 0.8e12 * 1e-12);
}

// By the preset that a machine without cores stands on.
TEST(Energy, EachMachineHasItsTable) {
  for (const auto& [preset, table] :
       {std::pair{"cloudmatrix384", "ascend-910c"}, std::pair{"atlas-800i-a2", "ascend-910b"},
        std::pair{"node8", "ascend-910c"}, std::pair{"dgx-h800", "h800"}, std::pair{"dgx-h100", "h800"},
        std::pair{"gb200-nvl72", "gb200"}}) {
    const hw::Machine of = hw::load_machine(preset);
    const EnergyTable loaded = EnergyTable::load("default", of);
    EXPECT_EQ(loaded.name, table) << preset;
    EXPECT_NO_THROW(loaded.check(supernode::statistic_patterns(of))) << preset;
  }
  const hw::Machine bare = hw::load_machine("cloudmatrix384", {"accelerator.kind=transfer-engine"});
  EXPECT_THROW(EnergyTable::load("default", bare), InputError);
}

TEST(Energy, RefusesWhatMeansNothing) {
  const std::string head = kHead;
  EXPECT_THAT(
      refusal(head +
              "[[action]]\nname = \"a\"\npart = \"a\"\ncounters = [\"die*.hbm.read_byte\"]\npicojoules = 2\n"
              "least = 1\nmost = 3\nsource = \"test\"\n"),
      ::testing::HasSubstr("die*.hbm.read_bytes"));
  EXPECT_THAT(
      refusal(head +
              "[[power]]\nname = \"p\"\npart = \"a\"\neach = \"rows\"\nwatts = 2\nleast = 1\nmost = 3\n"
              "source = \"test\"\n"),
      ::testing::HasSubstr("'rows'"));
  EXPECT_THAT(
      refusal(head +
              "[[power]]\nname = \"p\"\npart = \"a\"\neach = \"dies\"\nwatts = 4\nleast = 1\nmost = 3\n"
              "source = \"test\"\n"),
      ::testing::HasSubstr("between its minimum"));
  EXPECT_THAT(refusal(head + "[[power]]\nname = \"p\"\n"), ::testing::HasSubstr("table.toml:3"));
}

}  // namespace
}  // namespace cm384::observe::energy_test
