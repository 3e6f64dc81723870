// One tenant's dispatch beside another's bulk copy, on up-links that both share: what classes give back.
#include <gtest/gtest.h>

#include "testbenches/hw/refusal.h"
#include "testbenches/runs/machine_run.h"
#include "workloads/moe/copies_beside.h"

namespace cm384::testing::tenants_test {
namespace {

using namespace cm384::literals;
using studies::DispatchReading;
using Changes = std::vector<std::string>;

// Two nodes of eight dies, whose one up-link per sub-plane carries what half a die sends.
constexpr int kRanks = 4, kCopiers = 8;
Changes machine_with(const Changes& more) {
  Changes all{"topology.nodes=2",       "topology.dies_per_node=8", "topology.dies_per_package=1",
              "topology.l2_switches=1", "ub.link.trunk_rate=0.5",   "topology.sub_planes=2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
Changes classes(const std::string& arbitration, const Changes& more = {}) {
  Changes all{"ub.qos.classes=2", "ub.link.lanes=4", "ub.qos.die_levels=1x2,0x6",
              "ub.qos.arbitration=" + arbitration};
  all.insert(all.end(), more.begin(), more.end());
  return machine_with(all);
}

DispatchReading dispatch(const Changes& machine, int copiers) {
  studies::DispatchCase setting = small_dispatch(kRanks, 16, 2048, 16);
  setting.placement = "strided";
  setting.beside = {copiers, 2_MiB};
  return run_dispatch(setting, machine);
}

TEST(Tenants, ClassesKeepADispatchFromAnothersCopies) {
  const DispatchReading alone = dispatch(machine_with({}), 0);
  const DispatchReading together = dispatch(machine_with({}), kCopiers);
  const DispatchReading strict = dispatch(classes("strict"), kCopiers);
  const DispatchReading weighted = dispatch(classes("drr", {"ub.qos.weights=1,2"}), kCopiers);
  EXPECT_FALSE(alone.beside_GBps.has_value());
  for (const DispatchReading* reading : {&together, &strict, &weighted}) {
    ASSERT_TRUE(reading->beside_GBps.has_value());
    EXPECT_TRUE(reading->beside_covered);
    // Eight dies share two up-links of 14 GB/s each way, of which each four use those of a node.
    EXPECT_LE(*reading->beside_GBps, 2 * 14.0 * 512 / 560 / 4 * 1.05);
    EXPECT_GT(*reading->beside_GBps, 2);
  }
  const double slower = together.kernel_us.mean / alone.kernel_us.mean;
  EXPECT_GT(slower, 1.2);
  EXPECT_LT(strict.kernel_us.mean / alone.kernel_us.mean, 1 + 0.3 * (slower - 1));
  EXPECT_LT(weighted.kernel_us.mean / alone.kernel_us.mean, 1 + 0.7 * (slower - 1));
  EXPECT_GE(weighted.kernel_us.mean, strict.kernel_us.mean * 0.99);
}

TEST(Tenants, SaysWhereCopiesEndedBeforeTheOperator) {
  studies::DispatchCase setting = small_dispatch(kRanks, 64, 2048, 4);
  setting.placement = "strided";
  setting.beside = {4, 256_KiB};
  EXPECT_FALSE(run_dispatch(setting, machine_with({})).beside_covered);
}

TEST(Tenants, CopyFromNodeToNode) {
  const hw::Topology topology = hw::load_machine("cloudmatrix384").topology;
  EXPECT_EQ(studies::dies_beside({0, 1, 16, 17}, 4, topology), (std::vector<int>{2, 3, 18, 19}));
  EXPECT_EQ(studies::dies_beside({2, 16}, 4, topology), (std::vector<int>{0, 1, 17, 18}));
  EXPECT_EQ(studies::dies_beside({0, 16}, 30, topology).size(), 30u);
  for (const int wanted : {3, 32}) {
    EXPECT_NE(refusal([&] { studies::dies_beside({0, 16}, wanted, topology); }), "(accepted)") << wanted;
  }
  EXPECT_NE(refusal([&] { studies::dies_beside({0, 1}, 2, topology); }), "(accepted)");
}

}  // namespace
}  // namespace cm384::testing::tenants_test
