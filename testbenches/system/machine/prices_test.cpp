// What machines cost by the shipped table: sums done by hand, and what is refused.
#include "system/machine/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/text/error.h"
#include "system/machine/inventory.h"

namespace cm384::supernode::prices_test {
namespace {

Priced of(const std::string& preset, const std::vector<std::string>& changes = {}) {
  return priced(hw::load_machine(preset, changes), PriceTable::load("default"));
}

TEST(Prices, AddUpToWhatThePressSays) {
  // 384 packages, 448 chips, 5,376 links between racks, 768 ports, 192 sockets, 48 nodes, 16 racks.
  EXPECT_DOUBLE_EQ(of("cloudmatrix384").machine.value,
                   384 * 14e3 + 448 * 1500 + 5376 * 150 + 768 * 300 + 192 * 4000 + 48 * 3000 + 16 * 6000);
  EXPECT_NEAR(of("cloudmatrix384").machine.value, 8e6, 0.05 * 8e6);
  EXPECT_DOUBLE_EQ(of("gb200-nvl72").machine.value, 72 * 28e3 + 18 * 8e3 + 72 * 2500 + 200e3);
  EXPECT_GT(of("gb200-nvl72").machine.value, 2e6);
  EXPECT_LT(of("gb200-nvl72").machine.value, 3e6);
  const double server = 8 * 27e3 + 4 * 2500 + 8 * 2500 + 48.5e3;
  EXPECT_DOUBLE_EQ(of("dgx-h800").machine.value, 32 * server + 8 * 6000);
  EXPECT_DOUBLE_EQ(of("dgx-h800", {"topology.supernodes=1"}).machine.value, server + 6000);
}

TEST(Prices, AnHourIsWrittenOffAndDrawsPower) {
  const Priced one = of("dgx-h800", {"topology.supernodes=1"});
  EXPECT_NEAR(one.hour.value, one.machine.value / 8 / (4 * 8766) + 1.275 * 0.08, 1e-9);
  EXPECT_NEAR(one.hour.most, one.machine.most / 8 / (4 * 8766) + 1.275 * 0.08, 1e-9);
}

TEST(Prices, EveryPresetHasSome) {
  for (const std::string& name : hw::preset_names()) {
    const Priced all = of(name);
    EXPECT_GT(all.machine.value, 0) << name;
    EXPECT_LT(all.machine.least, all.machine.value) << name;
    EXPECT_GT(all.machine.most, all.machine.value) << name;
    EXPECT_LE(all.watts.least, all.watts.value) << name;
    for (const PricedLine& line : all.lines) EXPECT_GT(line.count, 0) << name << ": " << line.name;
  }
}

// Every line is of something that each of its presets has, but for copper between nodes of a rack: a Clos
// joins none, a full mesh of 48 nodes joins six pairs in each of twelve racks.
TEST(Prices, LinesAreOfWhatMachinesHave) {
  const auto copper = [](const std::vector<std::string>& changes) {
    std::int64_t found = 0;
    for (const PricedLine& line : of("cloudmatrix384", changes).lines)
      if (line.name == "copper of links within a rack") found = line.count;
    return found;
  };
  EXPECT_EQ(copper({}), 0);
  EXPECT_EQ(copper({"topology.kind=full-mesh", "topology.shape=48"}), 7 * 12 * 6);
  const PriceTable table = PriceTable::load("default");
  for (const PriceTable::Price& price : table.prices) {
    for (const std::string& preset : price.presets) {
      // Of a single node nothing leaves for another rack.
      if (price.each == "links_in_rack" || (preset == "node8" && price.each == "optical_links")) continue;
      EXPECT_GT(counted(hw::load_machine(preset), price.each), 0) << preset << ": " << price.name;
    }
  }
}

TEST(Prices, HaveNamesForFormulas) {
  const hw::Machine machine = hw::load_machine("gb200-nvl72");
  EXPECT_DOUBLE_EQ(price_named(machine, "price.machine"), of("gb200-nvl72").machine.value);
  EXPECT_DOUBLE_EQ(price_named(machine, "price.machine_most"), of("gb200-nvl72").machine.most);
  EXPECT_DOUBLE_EQ(price_named(machine, "price.watts"), 1833);
  EXPECT_DOUBLE_EQ(price_named(machine, "price.hour_least"), of("gb200-nvl72").hour.least);
  EXPECT_THROW(price_named(machine, "price.machines"), InputError);
}

TEST(Prices, RefuseATableThatDoesNotFit) {
  const std::string path = ::testing::TempDir() + "/prices.toml";
  const auto refusal = [&](const std::string& lines) -> std::string {
    std::ofstream(path) << "name = \"mine\"\nnote = \"a test\"\n" << lines;
    try {
      priced(hw::load_machine("node8"), PriceTable::load(path));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::string power =
      "[[power]]\npresets = [\"node8\"]\nwatts = 1\nleast = 1\nmost = 1\nsource = \"test\"\n";
  const auto line = [](const std::string& each, int dollars) {
    return "[[price]]\nname = \"a\"\npresets = [\"node8\"]\neach = \"" + each +
           "\"\ndollars = " + std::to_string(dollars) + "\nleast = 1\nmost = 3\nsource = \"test\"\n";
  };
  EXPECT_EQ(refusal(line("dies", 3) + power), "");
  EXPECT_THAT(refusal(line("dies", 4) + power), ::testing::HasSubstr("between its minimum"));
  EXPECT_THAT(refusal(line("rows", 2) + power), ::testing::HasSubstr("count.rows"));
  EXPECT_THAT(refusal(line("dies", 2)), ::testing::HasSubstr("has no prices of node8"));
}

}  // namespace
}  // namespace cm384::supernode::prices_test
