// What follows from a kind of topology: as many lanes as it needs, and a word where routing has no choice.
#include "ub_fabric/topology/fit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "testbenches/hw/refusal.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub::fit_test {
namespace {

using ::cm384::refusal;
using ::testing::HasSubstr;

// Lanes of a kind follow it unless somebody has set them, and then all of the machine can be built.
TEST(Fit, LanesFollowTheTopology) {
  const auto lanes = [](std::vector<std::string> parameters) {
    hw::Machine m = hw::load_machine("cloudmatrix384", parameters);
    fit_to_topology(m);
    EXPECT_EQ(m.notes.empty(), m.ub.link.lanes == 2 || m.overrides.contains("ub.link.lanes") == false);
    if (m.ub.link.lanes != 2) {
      EXPECT_EQ(m.overrides.at("ub.link.lanes"), std::to_string(m.ub.link.lanes));
    }
    return m.ub.link.lanes;
  };
  for (const TopologyKind& kind : topology_kinds()) {
    if (kind.name == "file") continue;
    const std::string set = fmt::format("topology.kind={}", kind.name);
    const int two_ways = kind.name == "torus" || kind.name == "dragonfly" ? 4 : 2;
    EXPECT_EQ(lanes({set}), two_ways) << kind.name;
    EXPECT_EQ(refusal([&] {
                FabricBench bench(machine({set, fmt::format("ub.link.lanes={}", two_ways)}), {0});
              }),
              "(accepted)");
    if (kind.grid) {
      EXPECT_EQ(lanes({set, "ub.switch.routing=valiant"}), 2 * two_ways);
    }
  }
  hw::Machine given = hw::load_machine("cloudmatrix384", {"topology.kind=torus", "ub.link.lanes=2"});
  fit_to_topology(given);
  EXPECT_EQ(given.ub.link.lanes, 2);
  EXPECT_TRUE(given.notes.empty());
}

// As many for each service class, up to what a packet can name; what they cannot share out is told.
TEST(Fit, LanesFollowTheServiceClasses) {
  const auto fitted = [](const std::vector<std::string>& set) {
    hw::Machine m = hw::load_machine("cloudmatrix384", set);
    fit_to_topology(m);
    return m;
  };
  EXPECT_EQ(fitted({"ub.qos.classes=2"}).ub.link.lanes, 4);
  EXPECT_EQ(fitted({"ub.qos.classes=8"}).ub.link.lanes, 16);
  EXPECT_EQ(fitted({"ub.qos.classes=2", "topology.kind=torus", "ub.switch.routing=valiant"}).ub.link.lanes,
            16);
  EXPECT_THAT(refusal([&] {
                fitted({"ub.qos.classes=3", "topology.kind=torus", "ub.switch.routing=valiant"});
              }),
              HasSubstr("at most 2, for 16 lanes"));
  EXPECT_THAT(fitted({"ub.qos.classes=3", "ub.link.lanes=16"}).notes,
              ::testing::ElementsAre(HasSubstr("4 of 16 are not used")));
  EXPECT_THAT(fitted({"ub.qos.classes=2", "ub.link.lanes=16"}).notes, ::testing::IsEmpty());
  EXPECT_THAT(fitted({"ub.qos.die_levels=0,1"}).notes, ::testing::ElementsAre(HasSubstr("names alone")));
}

TEST(Fit, SaysWhereRoutingHasNothingToChooseFrom) {
  const auto notes = [](const char* kind, const char* shape) {
    hw::Machine m = hw::load_machine(
        "cloudmatrix384", {fmt::format("topology.kind={}", kind), fmt::format("topology.shape={}", shape),
                           "ub.switch.routing=adaptive", "ub.link.lanes=4"});
    fit_to_topology(m);
    return m.notes;
  };
  EXPECT_THAT(notes("full-mesh", "6x8"), ::testing::ElementsAre(HasSubstr("nothing to choose from")));
  EXPECT_THAT(notes("torus", "3x1"), ::testing::ElementsAre(HasSubstr("nothing to choose from")));
  EXPECT_THAT(notes("torus", "6x8"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace cm384::ub::fit_test
