#include <gmock/gmock.h>

#include "base/text/parameter_list.h"
#include "hw/machine.h"
#include "testbenches/hw/refusal.h"

namespace cm384::hw::presets_test {
namespace {

TEST(Presets, AreThese) {
  const std::vector<std::string> names = {"atlas-800i-a2", "cloudmatrix384", "cloudmatrix384-920c",
                                          "dgx-h100",      "dgx-h800",       "gb200-nvl72",
                                          "node8"};
  EXPECT_EQ(preset_names(), names);
}

TEST(Presets, EveryParameterSaysWhereItComesFrom) {
  for (const std::string& name : preset_names()) {
    Machine machine = load_machine(name);
    const auto parameters = list_parameters(machine);
    EXPECT_EQ(machine.provenance.size(), parameters.size()) << name;
    EXPECT_GT(parameters.size(), 100u);
    for (const Parameter& parameter : parameters) {
      const Provenance& provenance = machine.provenance.at(parameter.key);
      EXPECT_LE(provenance.from, Origin::assumed) << name << " " << parameter.key;
      EXPECT_GT(provenance.source.size(), 3u) << name << " " << parameter.key;
      EXPECT_FALSE(parameter.sentence.empty()) << parameter.key;
      if (provenance.from == Origin::calibrated) {
        EXPECT_GT(provenance.source.size(), 10u) << parameter.key << ": calibrated to which figure?";
      }
    }
    EXPECT_TRUE(machine.overrides.empty());
    EXPECT_FALSE(machine.description.empty());
    EXPECT_EQ(machine.name, name);
  }
}

// What nobody has published could as well be something else. Texts of a form of their own are no guesses.
TEST(Presets, WhatIsAssumedOrCalibratedHasAPlausibleRange) {
  for (const std::string& name : preset_names()) {
    Machine machine = load_machine(name);
    for (const Parameter& parameter : list_parameters(machine)) {
      const Provenance& provenance = machine.provenance.at(parameter.key);
      const bool choice = !std::holds_alternative<std::string*>(parameter.value) || !parameter.names.empty();
      if (!choice || provenance.from < Origin::calibrated) continue;
      EXPECT_FALSE(provenance.plausible.values.empty()) << name << " " << parameter.key;
      EXPECT_GT(provenance.plausible.reason.size(), 5u) << name << " " << parameter.key;
    }
  }
}

// Each end alone gives a machine that can be built, unless another kind of machine alone reads the parameter.
TEST(Presets, EndsOfPlausibleRangesAreMachines) {
  const Machine preset = load_machine("cloudmatrix384");
  for (const auto& [key, provenance] : preset.provenance) {
    if (provenance.plausible.values.size() < 2 || key.starts_with("transfer_engine.")) continue;
    for (const std::string& value : provenance.plausible.values)
      EXPECT_EQ(refusal([&, key = key] { load_machine("cloudmatrix384", {key + "=" + value}); }),
                "(accepted)")
          << key << "=" << value;
  }
}

TEST(Presets, TheSupernodeIsThePublishedOne) {
  const Machine machine = load_machine("cloudmatrix384");
  EXPECT_EQ(machine.topology.dies(), 768);
  EXPECT_EQ(machine.topology.sockets(), 192);
  EXPECT_EQ(machine.topology.sub_planes, 7);
  EXPECT_EQ(machine.topology.l2_switches, 16);
  EXPECT_EQ(machine.ub.link.bandwidth, 28_GBps);
  EXPECT_EQ(machine.die.aiv, 48);
  EXPECT_EQ(machine.memory.l2.capacity, 192_MiB);
}

TEST(Presets, Node8IsOneNodeOfIt) {
  const Machine whole = load_machine("cloudmatrix384"), node = load_machine("node8");
  EXPECT_EQ(node.topology.dies(), 16);
  EXPECT_EQ(node.topology.sockets(), 4);
  Machine a = whole, b = node;
  const auto of_whole = list_parameters(a), of_node = list_parameters(b);
  for (std::size_t i = 0; i < of_whole.size(); ++i) {
    if (of_whole[i].key != "topology.nodes") {
      EXPECT_EQ(value_text(of_whole[i]), value_text(of_node[i])) << of_whole[i].key;
    }
  }
}

// Published rates of what joins the parts of machines of others.
TEST(Presets, MachinesOfOthersHaveTheirRates) {
  EXPECT_EQ(peaks_of(load_machine("dgx-h800")).unified_bus, 200_GBps);
  EXPECT_EQ(peaks_of(load_machine("dgx-h100")).unified_bus, 450_GBps);
  EXPECT_EQ(peaks_of(load_machine("gb200-nvl72")).unified_bus, 900_GBps);
  EXPECT_EQ(load_machine("dgx-h800").topology.dies(), 256);
  EXPECT_EQ(load_machine("gb200-nvl72").topology.dies(), 72);
  const Machine a2 = load_machine("atlas-800i-a2");
  EXPECT_NEAR(static_cast<double>(a2.ub.link.trunk_bandwidth(0).bytes_per_second), 28e9, 1);
  EXPECT_NEAR(peaks_of(a2).bf16_tflops, 354, 0.5);
}

// Spines join rails: there is nothing for links to core switches to do.
TEST(Presets, RailsHaveNoCoreSwitches) {
  EXPECT_EQ(refusal([] { load_machine("dgx-h800", {"rdma.core_rate=50GB/s"}); }),
            "--set rdma.core_rate: has no effect with rdma.wiring=rails; allowed with: blocks");
}

TEST(Presets, PeaksAreTheStatedOnes) {
  const Peaks peaks = peaks_of(load_machine("cloudmatrix384"));
  EXPECT_EQ(peaks.unified_bus, 196_GBps);
  EXPECT_EQ(peaks_of(load_machine("cloudmatrix384", {"ub.link.plane_rates=0.5,1"})).unified_bus, 182_GBps);
  EXPECT_EQ(peaks.hbm.bytes_per_second, 1'638'400'000'000);
  const Machine next = load_machine("cloudmatrix384-920c");
  EXPECT_EQ(peaks_of(next).hbm, 2000_GBps);  // 4.0 TB/s a package
  EXPECT_NEAR(peaks_of(next).bf16_tflops, 450.0, 0.1);
}

TEST(Presets, TheReferencePageNamesEveryParameter) {
  Machine machine = load_machine("cloudmatrix384");
  const std::string page = reference_page(machine);
  const std::vector<Parameter> parameters = list_parameters(machine);
  for (const Parameter& parameter : parameters) {
    const std::size_t place = page.find("`" + parameter.key + "`");
    ASSERT_NE(place, std::string::npos) << parameter.key;
    // Timings of a vector instruction share a row: `head`, `slope`, `tail` | 10, 2.11, 14 |
    const bool shared = parameter.key.starts_with("vector_core.") && parameter.key.ends_with("slope");
    const std::string value = shared ? ", " + value_text(parameter) + ", " : value_text(parameter);
    EXPECT_NE(page.substr(place, page.find('\n', place) - place).find(value), std::string::npos)
        << parameter.key;
  }
  EXPECT_NE(page.find("| `ub.link.bandwidth` | 28GB/s | 1GB/s to 400GB/s | one-way"), std::string::npos);
  EXPECT_NE(
      page.find(
          "`vector_core.add.tail` | 10, 2.11, 14 | head: 1 to 200; slope: 0.01 to 200; tail: 0 to 200 | "
          "head: cycles from issue"),
      std::string::npos);
  // What is alike stands once; what few of them have, with their names.
  EXPECT_NE(page.find("| derived | ascend-facts A4: vadds 13/1/18 |  |\n"), std::string::npos);
  EXPECT_NE(page.find("| head: derived; slope: assumed; tail: derived | "), std::string::npos);
  EXPECT_NE(page.find(" | slope: 9.75 to 39: the repeat"), std::string::npos);
}

}  // namespace
}  // namespace cm384::hw::presets_test
