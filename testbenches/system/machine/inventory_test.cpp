// What a machine is made of: the published machine's counts, and closed forms of other topologies.
#include "system/machine/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "hw/machine.h"

namespace cm384::supernode::inventory_test {
namespace {

std::int64_t count_of(const std::vector<std::string>& changes, std::string_view name) {
  return counted(hw::load_machine("cloudmatrix384", changes), name);
}

// CloudMatrix384's paper, 3.2 and 3.3: 384 NPUs, 768 dies, 192 CPUs, 48 nodes; 7 L1 chips a node with 16
// links up each; 7 x 16 L2 chips of 48 ports; 24 AIC and 48 AIV, and four stacks of 16 GB, a die.
TEST(Inventory, OfThePublishedMachine) {
  EXPECT_EQ(count_of({}, "nodes"), 48);
  EXPECT_EQ(count_of({}, "packages"), 384);
  EXPECT_EQ(count_of({}, "dies"), 768);
  EXPECT_EQ(count_of({}, "sockets"), 192);
  EXPECT_EQ(count_of({}, "cube_cores"), 18'432);
  EXPECT_EQ(count_of({}, "vector_cores"), 36'864);
  EXPECT_EQ(count_of({}, "hbm_stacks"), 3'072);
  EXPECT_EQ(count_of({}, "chips_l1chip"), 336);
  EXPECT_EQ(count_of({}, "chips_l2chip"), 112);
  EXPECT_EQ(count_of({}, "switch_chips"), 448);
  EXPECT_EQ(count_of({}, "trunks"), 7 * 48 * 16);
  EXPECT_EQ(count_of({}, "die_links"), 7 * 768);
  EXPECT_EQ(count_of({}, "socket_links"), 7 * 192);
  EXPECT_EQ(count_of({}, "links_in_node"), 7 * (768 + 192));
  EXPECT_EQ(count_of({}, "links_between_nodes"), 7 * 48 * 16);
  EXPECT_EQ(count_of({}, "switch_ports"), 336 * (16 + 4 + 16) + 112 * 48);
  EXPECT_EQ(count_of({}, "lanes"), 4 * 7 * (768 + 192 + 48 * 16));
  EXPECT_EQ(count_of({}, "serdes"), 2 * 4 * 7 * (768 + 192 + 48 * 16));
  EXPECT_EQ(count_of({}, "rdma_ports"), 768);
  EXPECT_EQ(count_of({}, "vpc_ports"), 48);
}

// CloudMatrix384's paper, 3.3.3: 12 compute racks and 4 communication racks; L2 chips stand in the latter.
TEST(Inventory, RacksOfThePublishedMachine) {
  EXPECT_EQ(count_of({}, "racks"), 16);
  EXPECT_EQ(count_of({}, "compute_racks"), 12);
  EXPECT_EQ(count_of({}, "switch_racks"), 4);
  EXPECT_EQ(count_of({}, "links_in_rack"), 0);
  EXPECT_EQ(count_of({}, "links_between_racks"), 7 * 48 * 16);
  EXPECT_EQ(count_of({}, "optical_links"), 7 * 48 * 16);
  EXPECT_EQ(count_of({"topology.supernodes=3"}, "racks"), 3 * 16);
  EXPECT_EQ(count_of({"topology.supernodes=3"}, "links_between_racks"), 3 * 7 * 48 * 16);
  EXPECT_EQ(count_of({"topology.nodes=45"}, "compute_racks"), 12);
  EXPECT_EQ(count_of({"topology.nodes=44"}, "compute_racks"), 11);
  EXPECT_EQ(count_of({"topology.nodes_per_rack=5"}, "compute_racks"), 10);
  EXPECT_EQ(count_of({"topology.switches_per_rack=27"}, "switch_racks"), 5);
  // Of supernodes that are less than a rack two stand in one, not three.
  EXPECT_EQ(count_of({"topology.nodes=2", "topology.supernodes=5"}, "compute_racks"), 3);
  EXPECT_EQ(count_of({"topology.nodes=3", "topology.supernodes=5"}, "compute_racks"), 5);
}

// Of a full mesh of nodes every pair of a rack is joined by copper; of a line of nodes three cables of a
// rack's four nodes, and one leads to the next rack.
TEST(Inventory, LinksByLengthClass) {
  const std::vector<std::string> full{"topology.kind=full-mesh", "topology.nodes=12", "topology.shape=12",
                                      "ub.link.lanes=8"};
  EXPECT_EQ(count_of(full, "links_in_rack"), 7 * 3 * 6);
  EXPECT_EQ(count_of(full, "links_between_racks"), 7 * (66 - 18));
  EXPECT_EQ(count_of(full, "switch_racks"), 0);
  const std::vector<std::string> line{"topology.kind=mesh", "topology.nodes=12", "topology.shape=12"};
  EXPECT_EQ(count_of(line, "links_in_rack"), 7 * 3 * 3);
  EXPECT_EQ(count_of(line, "links_between_racks"), 7 * 2);
  // Eight nodes, two to a chip: their dies' links leave the node and stay in the rack.
  const std::vector<std::string> shared{"topology.kind=mesh", "topology.nodes=8", "topology.shape=4"};
  EXPECT_EQ(count_of(shared, "switch_racks"), 0);
  EXPECT_EQ(count_of(shared, "links_in_rack"), 7 * (8 * (16 + 4) + 2));
  EXPECT_EQ(count_of(shared, "links_between_racks"), 7);
  // Two pods of two nodes, each with an L2 chip that an L3 chip joins: the three of a sub-plane fill a rack.
  const std::vector<std::string> pods{"topology.kind=clos3",         "topology.nodes=4",
                                      "topology.groups=2",           "topology.l2_switches=1",
                                      "topology.l3_switches=1",      "topology.sub_planes=2",
                                      "topology.switches_per_rack=3"};
  EXPECT_EQ(count_of(pods, "switch_racks"), 2);
  EXPECT_EQ(count_of(pods, "links_in_rack"), 2 * 2);
  EXPECT_EQ(count_of(pods, "links_between_racks"), 2 * 4);
}

// Eight NPUs each joined to each by a link, and no switch.
TEST(Inventory, OfAServerWithoutSwitches) {
  const hw::Machine server = hw::load_machine("atlas-800i-a2");
  EXPECT_EQ(counted(server, "switch_chips"), 0);
  EXPECT_EQ(counted(server, "switch_ports"), 0);
  EXPECT_EQ(counted(server, "die_switches"), 8);
  EXPECT_EQ(counted(server, "links"), 8 * 7 / 2);
  EXPECT_EQ(counted(server, "links_in_node"), 8 * 7 / 2);
  EXPECT_EQ(counted(server, "diameter"), 1);
  EXPECT_EQ(counted(server, "serdes"), 2 * 4 * 28);
}

// A single node needs no L2 chip: those that the kind has join nothing.
TEST(Inventory, ChipsThatJoinNothingAreNotCounted) {
  EXPECT_EQ(count_of({"topology.nodes=1"}, "switch_chips"), 7);
  EXPECT_EQ(count_of({"topology.nodes=1"}, "trunks"), 0);
  EXPECT_EQ(count_of({"topology.nodes=1"}, "switch_racks"), 0);
  EXPECT_EQ(count_of({"topology.nodes=1"}, "optical_links"), 0);
  EXPECT_EQ(count_of({"topology.nodes=1"}, "switch_ports"), 7 * 20);
  EXPECT_EQ(count_of({"topology.nodes=2"}, "switch_chips"), 7 * (2 + 16));
}

TEST(Inventory, SeveralSupernodesCountTogether) {
  EXPECT_EQ(count_of({"topology.supernodes=3"}, "switch_chips"), 3 * 448);
  EXPECT_EQ(count_of({"topology.supernodes=3"}, "count.dies"), 3 * 768);
  EXPECT_EQ(count_of({"topology.supernodes=3"}, "trunks"), 3 * 7 * 48 * 16);
}

// Machines without cores have units and memory of their own kind, and no CPUs on the bus.
TEST(Inventory, OfMachinesOfOthers) {
  const hw::Machine server = hw::load_machine("dgx-h800", {"topology.supernodes=1"});
  EXPECT_EQ(counted(server, "cube_cores"), 0);
  EXPECT_EQ(counted(server, "vector_cores"), 0);
  EXPECT_EQ(counted(server, "compute_units"), 8 * 132);
  EXPECT_EQ(counted(server, "hbm_stacks"), 8 * 5);
  EXPECT_EQ(counted(server, "switch_chips"), 4);
  EXPECT_EQ(counted(server, "vpc_ports"), 0);
  EXPECT_EQ(counted(server, "racks"), 1);
  EXPECT_EQ(counted(hw::load_machine("dgx-h800"), "racks"), 32 / 4);
  EXPECT_EQ(counted(hw::load_machine("gb200-nvl72"), "racks"), 1);
  EXPECT_EQ(counted(hw::load_machine("gb200-nvl72"), "optical_links"), 0);
  EXPECT_EQ(counted(hw::load_machine("gb200-nvl72"), "hbm_stacks"), 72 * 8);
  EXPECT_EQ(count_of({}, "compute_units"), 0);
  EXPECT_THROW(counted(server, "lanes"), InputError);  // not those of the Unified Bus
}

// Up and down two levels; every dimension of a HyperX once; half way round every ring of a torus; from end to
// end of a mesh.
TEST(Inventory, Diameters) {
  EXPECT_EQ(count_of({}, "diameter"), 4);
  EXPECT_EQ(count_of({"topology.nodes=1"}, "diameter"), 2);
  EXPECT_EQ(count_of({"topology.kind=full-mesh", "topology.shape=4x4x3"}, "diameter"), 3 + 2);
  EXPECT_EQ(count_of({"topology.kind=torus", "topology.shape=8x6", "ub.link.lanes=8"}, "diameter"),
            4 + 3 + 2);
  EXPECT_EQ(count_of({"topology.kind=mesh", "topology.shape=8x6"}, "diameter"), 7 + 5 + 2);
  EXPECT_EQ(count_of({"topology.kind=star"}, "diameter"), 2 + 2);
  EXPECT_EQ(counted(hw::load_machine("gb200-nvl72"), "diameter"), 2);
}

// A mesh of a x b has a (b - 1) + b (a - 1) trunks a sub-plane, a torus 2 a b, a full mesh of n n (n - 1)
// / 2.
TEST(Inventory, GridsAndFullMeshes) {
  const std::vector<std::string> mesh{"topology.kind=mesh", "topology.nodes=12", "topology.shape=4x3"};
  EXPECT_EQ(count_of(mesh, "trunks"), 7 * (4 * 2 + 3 * 3));
  EXPECT_EQ(count_of(mesh, "links_between_nodes"), 7 * 17);
  const std::vector<std::string> torus{"topology.kind=torus", "topology.nodes=12", "topology.shape=4x3",
                                       "ub.link.lanes=8"};
  EXPECT_EQ(count_of(torus, "trunks"), 7 * 2 * 12);
  const std::vector<std::string> full{"topology.kind=full-mesh", "topology.nodes=12", "topology.shape=12",
                                      "ub.link.lanes=8"};
  EXPECT_EQ(count_of(full, "trunks"), 7 * 12 * 11 / 2);
  EXPECT_EQ(count_of(full, "switch_chips"), 7 * 12);
}

// The chip in the middle belongs to no node: what goes there leaves its node.
TEST(Inventory, AStarsHubBelongsToNoNode) {
  const std::vector<std::string> star{"topology.kind=star", "topology.nodes=2"};
  EXPECT_EQ(count_of(star, "switch_chips"), 7 * 3);
  EXPECT_EQ(count_of(star, "links_in_node"), 7 * (32 + 8));
  EXPECT_EQ(count_of(star, "links_between_nodes"), 7 * 2);
}

TEST(Inventory, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    count_of({}, "count.switch_chip");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("switch_chips"));
  }
}

}  // namespace
}  // namespace cm384::supernode::inventory_test
