// Topologies from files: a Clos in files is the Clos; latency and rate of a small case against closed forms;
// ways by routes; lanes where routes need them; what is refused, by file and line.
#include "hw/topology_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "firmware/abi/memory_map.h"
#include "hw/machine.h"
#include "hw/ns3ub_classes.h"
#include "testbenches/hw/refusal.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/topology/kinds.h"

namespace cm384::ub::topology_files_test {
namespace {

namespace fs = std::filesystem;
using namespace cm384::literals;
using ::cm384::refusal;
using sim::Operation;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Bandwidth mega(std::int64_t bytes_per_second) {
  return {bytes_per_second * 1'000'000};
}

constexpr const char* kNodes = "nodeId,nodeType,portNum\n";
constexpr const char* kLinks = "nodeId1,portId1,nodeId2,portId2,bandwidth,delay\n";
constexpr const char* kRoutes = "nodeId,dstNodeId,dstPortId,outPorts,metrics\n";

// A folder with files that lives as long as the test.
class Folder {
 public:
  Folder()
      : path_(
            fs::path(::testing::TempDir()) /
            fmt::format("cm384-files-{}", ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder& put(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this;
  }
  std::string path() const { return path_.string(); }
  hw::Machine load(const std::vector<std::string>& overrides = {}) const {
    return hw::load_machine(path(), overrides);
  }

 private:
  fs::path path_;
};

Parameters of(const hw::Machine& m) {
  return {m.topology, m.ub, m.cpu, m.package_link};
}

std::string case_folder() {
  return CM384_SOURCE_DIR "/examples/cases/triangle";
}

// Two nodes of four dies and a socket each, three L2 chips, written as files.
Folder& put_clos(Folder& folder) {
  std::string nodes = kNodes, links = kLinks;
  nodes =
      "nodeId,nodeType,portNum,class\n0..7,DIE,1,\n8..9,SOCKET,1,\n10..11,SWITCH,8,l1\n12..14,SWITCH,2,l2\n";
  for (int die = 0; die < 8; ++die) links += fmt::format("{},0,{},{},,\n", die, 10 + die / 4, die % 4);
  for (int s = 0; s < 2; ++s) links += fmt::format("{},0,{},4,,\n", 8 + s, 10 + s);
  for (int l1 = 0; l1 < 2; ++l1) {
    for (int l2 = 0; l2 < 3; ++l2) links += fmt::format("{},{},{},{},,\n", 10 + l1, 5 + l2, 12 + l2, l1);
  }
  return folder.put("node.csv", nodes).put("topology.csv", links);
}

std::vector<std::string> clos_of(const std::string& kind) {
  return {"topology.kind=" + kind, "topology.nodes=2", "topology.dies_per_node=4",
          "topology.sockets_per_node=1", "topology.sub_planes=2"};
}

TEST(Files, AClosInFilesIsTheClos) {
  Folder folder;
  put_clos(folder);
  std::vector<std::string> files = clos_of("file"), kind = clos_of("clos");
  files.push_back("topology.file=" + folder.path());
  kind.emplace_back("topology.l2_switches=3");
  const auto done = [](const Parameters& p) {
    FabricBench bench(p, {0, 1, 5, 6});
    for (unsigned i = 0; i < 200; ++i) {
      bench.at(0).request(Time{i * 3'000}, i % 3 == 0 ? Operation::read : Operation::write,
                          cm384_gm_die(i % 2 == 0 ? 5 : 1, i * 512), 512, i);
      bench.at(6).request(Time{i * 2'000}, Operation::write, cm384_gm_die(5, i * 512), 200, i);
    }
    bench.run();
    std::vector<std::pair<std::uint32_t, std::int64_t>> all;
    for (const unsigned die : {0u, 6u}) {
      for (const StandIn::Done& d : bench.at(die).done) all.emplace_back(d.tag, d.at.ps);
    }
    return all;
  };
  const auto from_files = done(machine(files));
  EXPECT_EQ(from_files.size(), 400u);
  // Chips stand in another order: only where their turns begin differs, so ways by L2 chips alike in all
  // else.
  EXPECT_EQ(from_files, done(machine(kind)));
}

struct Stage {
  Bandwidth rate;
  Time latency;
  Time pipeline;  // of the chip at its end
};

// Each link waits for its next flit; a slow one lets a packet go on so early that its flits do not run out.
Time one_way(Time head, const std::vector<Stage>& stages, int flits) {
  for (std::size_t k = 0;; ++k) {
    const Clock clock(Bytes{20}, stages[k].rate);
    const std::int64_t tick = clock.tick_at_or_after(head);
    const Time tail = clock.start(tick + flits) + stages[k].latency;
    if (k + 1 == stages.size()) return tail;
    const Clock next(Bytes{20}, stages[k + 1].rate);
    head = clock.start(tick) + stages[k].latency;
    if (stages[k].rate < stages[k + 1].rate) head = std::max(head, tail - next.start(flits));
    head += stages[k].pipeline;
  }
}

// Devices 0, 1 and 2 in a line of 100 and 200 Gbit/s, and 0 and 2 by a switch as well: the answer comes back
// that way.
TEST(Case, UnloadedLatencyIsTheSumOfItsStages) {
  const Parameters p = of(hw::load_machine(case_folder()));
  FabricBench bench(p, {0, 2});
  const Time at{10'000'123};
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(2, 0), 32, 1);  // fills the translation cache
  bench.at(0).request(at, Operation::write, cm384_gm_die(2, 0x1000), 512, 2);
  bench.run();
  const Time inside = 1_ns, forward = 15_ns;
  const Bandwidth of_0 = mega(62'500), of_1 = mega(12'500), of_2 = mega(75'000), trunk = mega(25'000),
                  up = mega(50'000);
  Time t = one_way(
      at, {{of_0, inside, forward}, {of_1, 7_ns, forward}, {trunk, 30_ns, {}}, {of_2, inside, {}}}, 28);
  t += p.ub.controller.write_inbound_latency;
  t = one_way(t, {{of_2, inside, forward}, {up, 20_ns, 40_ns}, {up, 20_ns, {}}, {of_0, inside, {}}}, 1);
  t += p.ub.controller.completion_latency;
  EXPECT_NEAR(static_cast<double>(bench.at(0).done.at(1).at.ps), static_cast<double>(t.ps), 2);
}

// Two dies, each on a switch chip: what arrives takes its chip's pipeline too, and links have their own
// latencies.
TEST(Files, ADieOnASwitchPaysItsPipelineBothWays) {
  Folder folder;
  folder
      .put("node.csv",
           "nodeId,nodeType,portNum,forwardDelay\n0..1,DIE,1,\n2,SWITCH,2,30ns\n3,SWITCH,2,50ns\n")
      .put("topology.csv",
           std::string(kLinks) + "0,0,2,0,400Gbps,5ns\n1,0,3,0,200Gbps,9ns\n2,1,3,1,100Gbps,20ns\n");
  const Parameters p = of(folder.load());
  FabricBench bench(p, {0, 1});
  const Time at{10'000'123};
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(1, 0), 32, 1);
  bench.at(0).request(at, Operation::write, cm384_gm_die(1, 0x1000), 512, 2);
  bench.run();
  const Bandwidth near = mega(50'000), far = mega(25'000), trunk = mega(12'500);
  Time t = one_way(at, {{near, 5_ns, 30_ns}, {trunk, 20_ns, 50_ns}, {far, 9_ns, {}}}, 28);
  t += p.ub.controller.write_inbound_latency;
  t = one_way(t, {{far, 9_ns, 50_ns}, {trunk, 20_ns, 30_ns}, {near, 5_ns, {}}}, 1);
  t += p.ub.controller.completion_latency;
  EXPECT_NEAR(static_cast<double>(bench.at(0).done.at(1).at.ps), static_cast<double>(t.ps), 2);
}

TEST(Case, TheSlowestLinkOfAWayBindsItsRate) {
  const auto rate = [](unsigned from, unsigned to) {
    const Parameters p = of(hw::load_machine(case_folder(), {"ub.controller.write_interval=0ps"}));
    FabricBench bench(p, {from, to});
    bench.at(from).logs = false;
    bench.at(from).stream(Operation::write, 512, 20'000, 2'000,
                          [=](std::uint64_t i) { return cm384_gm_die(to, i % 512 * 512); });
    bench.run();
    return 20'000 * 512 / static_cast<double>(bench.at(from).last_done.ps) * 1e3;  // GB/s
  };
  const double data = 512.0 / 560.0;
  EXPECT_NEAR(rate(0, 2), 12.5 * data, 0.02 * 12.5);  // 100 Gbit/s, then 200
  EXPECT_NEAR(rate(1, 2), 25 * data, 0.02 * 25);
  EXPECT_NEAR(rate(2, 0), 50 * data, 0.03 * 50);
}

TEST(Case, RoutesOfTheLowestMetricAreTheWays) {
  const hw::Machine m = hw::load_machine(case_folder());
  EXPECT_THAT(m.notes, ElementsAre(HasSubstr("routing_table.csv: 2 out ports of a higher metric")));
  const auto network = Network::of(m.topology);
  EXPECT_EQ(network->chips(), 4u);
  EXPECT_EQ(network->layout().chips[3].text(), "chip3");
  const auto next = [&](unsigned chip, unsigned destination) {
    const auto ways = network->ways(chip, destination);
    EXPECT_EQ(ways.size(), 1u);
    return network->link(network->link(network->first_link(chip) + ways.front()).peer).chip;
  };
  EXPECT_EQ(next(0, 1), 1u);
  EXPECT_EQ(next(0, 2), 1u);
  EXPECT_EQ(next(2, 0), 3u);
  EXPECT_TRUE(network->ways(3, 1).empty());
}

TEST(Files, ANodeWithoutRoutesTakesAllShortestWays) {
  Folder folder;
  folder.put("node.csv", std::string(kNodes) + "0..1,DEVICE,2\n2..3,SWITCH,2\n")
      .put("topology.csv", std::string(kLinks) +
                               "0,0,2,0,400Gbps,1ns\n0,1,3,0,400Gbps,1ns\n1,0,2,1,400Gbps,1ns\n"
                               "1,1,3,1,400Gbps,1ns\n")
      .put("routing_table.csv", std::string(kRoutes) + "2..3,0,0,0,1\n2..3,1,0,1,1\n");
  const auto network = Network::of(folder.load().topology);
  EXPECT_EQ(network->ways(0, 1).size(), 2u);
  EXPECT_EQ(network->ways(1, 0).size(), 2u);
  EXPECT_EQ(network->ways(2, 1).size(), 1u);
}

// A ring whose packets all go up.
Folder& put_ring(Folder& folder, int length, const std::string& last_route = "") {
  std::string links = kLinks, routes = kRoutes;
  for (int n = 0; n < length; ++n) {
    links += fmt::format("{},0,{},1,400Gbps,1ns\n", n, (n + 1) % length);
    for (int to = 0; to < length; ++to) {
      if (to != n) routes += fmt::format("{},{},0,0,1\n", n, to);
    }
  }
  return folder.put("node.csv", fmt::format("{}0..{},DEVICE,2\n", kNodes, length - 1))
      .put("topology.csv", links)
      .put("routing_table.csv", routes + last_route);
}

TEST(Files, RoutesThatCouldDeadlockTakeALanePerHop) {
  Folder folder;
  put_ring(folder, 4);
  EXPECT_EQ(Network::of(folder.load().topology)->classes(), 3u);
  FabricBench bench(of(folder.load()), {0, 1, 2, 3});
  for (unsigned die = 0; die < 4; ++die)
    bench.at(die).stream(Operation::write, 512, 500, 100,
                         [=](std::uint64_t i) { return cm384_gm_die((die + 3) % 4, i * 512); });
  bench.run();
  for (unsigned die = 0; die < 4; ++die) EXPECT_EQ(bench.at(die).completions, 500u);
  EXPECT_THAT(refusal([&] { FabricBench b(of(folder.load({"ub.link.lanes=4"})), {0}); }),
              HasSubstr("allowed: at least 6"));
  put_ring(folder, 8);
  EXPECT_THAT(refusal([&] { FabricBench b(of(folder.load()), {0}); }), HasSubstr("allowed: at least 14"));
  // What was to go from 1 to 3 comes back to 0, which sends it to 1.
  put_ring(folder, 4, "1,3,0,1,0\n");
  EXPECT_THAT(refusal([&] { Network::of(folder.load().topology); }),
              HasSubstr("could deadlock in a circle of links: "));
}

TEST(Files, AreAPartOfTheMachine) {
  Folder folder;
  put_ring(folder, 3);
  const hw::Machine before = folder.load();
  EXPECT_THAT(hw::to_toml(before), HasSubstr(before.topology.content));
  EXPECT_EQ(before.files.size(), 3u);
  EXPECT_EQ(hw::parse_machine(hw::to_toml(before), "shown.toml").topology.content, before.topology.content);
  // A path in a machine file starts where the file is.
  folder.put(
      "machine.toml",
      "base = \"cloudmatrix384\"\n[topology]\nkind = \"file\"\nfile = \".\"\nnodes = 3\ndies_per_node = 1\n"
      "dies_per_package = 1\nsockets_per_node = 0\n");
  EXPECT_EQ(hw::load_machine(folder.path() + "/machine.toml").topology.content, before.topology.content);
  const std::string kept = "topology.content=" + before.topology.content;
  EXPECT_EQ(folder.load({kept}).topology.content, before.topology.content);
  put_ring(folder, 3, "\n");
  EXPECT_NE(folder.load().topology.content, before.topology.content);
  EXPECT_THAT(refusal([&] { folder.load({kept}); }), HasSubstr("topology.content: the files of"));
}

TEST(Files, AFaultLowersTheRateOfAPortAndOthersAreNamed) {
  Folder folder;
  put_ring(folder, 3).put(
      "fault.csv",
      "taskId,faultType,dropRate(%),delay(ns),lowerDataRate(node port datrate(Mbps)),"
      "shutdownDropPackets(start end),OccasionalDropRate(%)\n0,2,0,0,1 0 1000,0,0\n1,0,5,0,0,0,0\n");
  const hw::Machine m = folder.load();
  EXPECT_THAT(m.notes, ElementsAre(HasSubstr("fault.csv:2: port 0 of node 1 sends at 125MB/s"),
                                   HasSubstr("fault.csv:3: ignored: loss")));
  const auto network = Network::of(m.topology);
  const auto rate = [&](unsigned from, unsigned to) {
    return network->link(network->link_between(from, to)).wire.rate;
  };
  EXPECT_EQ(rate(1, 2), mega(125));
  EXPECT_EQ(rate(2, 1), mega(50'000));
}

// Node 0 loses 1 % of both its tasks, node 1 of one of two, node 2 damages half of its only one.
TEST(Files, LossesThatADeviceHasInAllItsTasksAreToldAsFaults) {
  Folder folder;
  put_ring(folder, 3)
      .put("traffic.csv", "taskId,sourceNode,destNode\n0,0,1\n1,0,2\n2,1,0\n3,1,2\n4,2,0\n")
      .put("fault.csv",
           "taskId,faultType,dropRate(%),delay(ns),lowerDataRate(node port datrate(Mbps)),"
           "shutdownDropPackets(start "
           "end),OccasionalDropRate(%)\n0,0,1,0,0,0,0\n1,0,1,0,0,0,0\n2,0,1,0,0,0,0\n"
           "4,5,0,0,0,0,50\n");
  EXPECT_THAT(
      folder.load().notes,
      ::testing::Contains(::testing::EndsWith(
          "of devices whose tasks all lose the same a replay takes: --fault die=0,rate=0.01,kind=lost "
          "--fault die=2,rate=0.5,kind=corrupt")));
}

// network_attribute.txt: what is taken moves the machine, the rest is named.
TEST(Case, SettingsAreTakenOrNamed) {
  Folder folder;
  folder
      .put("node.csv",
           "nodeId,nodeType,portNum,forwardDelay,systemId\n0..1,DEVICE,1,1ns,0\n2,SWITCH,2,1ns,1\n")
      .put("topology.csv", std::string(kLinks) + "0,0,2,0,400Gbps,20ns\n1,0,2,1,400Gbps,20ns\n");
  EXPECT_EQ(folder.load().ub.switch_chip.routing, "spray");
  folder.put("network_attribute.txt",
             "default ns3::UbTransportChannel::UsePacketSpray \"false\"\n"
             "default ns3::UbSwitchAllocator::AllocationTime \"+30ns\"\n"
             "default ns3::UbLink::Delay \"+0ns\"\n\n# a comment\n"
             "default ns3::UbPort::UbDataRate \"200Gbps\"\n"
             "default ns3::UbPort::UbInterframeGap \"+0ns\"\n"
             "default ns3::UbJetty::UbInflightMax \"10000\"\n"
             "default ns3::UbSwitch::VlScheduler \"DWRR\"\n"
             "global UB_VL_NUM \"16\"\nglobal UB_TRACE_ENABLE \"true\"\nglobal UB_CC_ENABLED \"true\"\n");
  const hw::Machine machine = folder.load();
  EXPECT_EQ(machine.ub.switch_chip.routing, "flow");
  EXPECT_EQ(machine.ub.switch_chip.pipeline_latency, 30_ns);
  EXPECT_EQ(machine.ub.link.endpoint_latency, 1_ns);  // none is given as 1 ns
  EXPECT_EQ(machine.ub.link.bandwidth, mega(25'000));
  EXPECT_EQ(machine.ub.link.lanes, 16);
  EXPECT_THAT(machine.notes,
              ::testing::Contains(HasSubstr("ignored: UB_CC_ENABLED, UbJetty::UbInflightMax")));
  EXPECT_THAT(
      machine.notes,
      ::testing::Contains(HasSubstr("VlScheduler DWRR: ignored, lanes have equal turns: no traffic.csv")));
  for (const auto& [text, message] :
       {std::pair{"default ns3::UbPort::UbDataRate \"fast\"\n", ":1: UbPort::UbDataRate: 'fast'"},
        {"global UB_VL_NUM \"17\"\n", ":1: UB_VL_NUM: '17'; allowed: 1 to 16"},
        {"default ns3::UbTransportChannel::UsePacketSpray \"yes\"\n", "allowed: true, false"},
        {"default ns3::UbLink::Delay \"soon\"\n", ":1: UbLink::Delay: 'soon'"},
        {"set x\n", ":1: line: 'set x'; allowed: default ns3::"}}) {
    folder.put("network_attribute.txt", text);
    EXPECT_THAT(refusal([&] { folder.load(); }), HasSubstr(message));
  }
  // Faults that are switched off do not hold, and it is said.
  folder.put("network_attribute.txt", "global UB_FAULT_ENABLE \"false\"\n")
      .put("fault.csv", "not even read\n");
  EXPECT_THAT(folder.load().notes,
              ::testing::Contains(HasSubstr("fault.csv: ignored: UB_FAULT_ENABLE is false")));
}

// Priorities of a case are service classes, each with its quantum as a turn.
TEST(Case, QuantaOfPrioritiesAreClasses) {
  Folder folder;
  put_ring(folder, 3);
  const auto load = [&](const std::string& settings, const std::string& priorities) {
    std::string traffic =
        "taskId,sourceNode,destNode,dataSize(Byte),opType,priority,delay,phaseId,dependOnPhases\n";
    for (const char priority : priorities)
      traffic += fmt::format("0,0,1,64,URMA_WRITE,{},10ns,0,\n", priority - 'a');
    folder.put("traffic.csv", traffic)
        .put("network_attribute.txt", "default ns3::UbSwitch::VlScheduler \"DWRR\"\n" + settings);
    return folder.load();
  };
  const std::string others = "default ns3::UbDwrrAllocator::DefaultQuantum \"2000\"\n",
                    named = "default ns3::UbDwrrAllocator::VlQuantums \"7:6000,9:3000\"\n";
  const hw::Machine three = load(others + named, "hjchj");  // 7, 9, 2, 7, 9
  EXPECT_EQ(three.ub.qos.classes, 3);
  EXPECT_EQ(three.ub.qos.arbitration, "drr");
  EXPECT_EQ(three.ub.qos.weights, "2,6,3");
  EXPECT_EQ(three.ub.qos.quantum, Bytes{1000});
  EXPECT_EQ(three.ub.link.lanes, 6);  // a pair each, of the four of a case
  EXPECT_EQ(hw::priorities_of_case(folder.path()), (std::vector<int>{2, 7, 9}));
  EXPECT_THAT(three.notes, ::testing::Contains(HasSubstr("priorities 2, 7, 9 are service classes 0 to 2")));
  EXPECT_EQ(load(named + "global UB_VL_NUM \"4\"\n", "hj").ub.link.lanes, 4);
  EXPECT_EQ(load(others, "abcdefgh").ub.qos.classes, 8);
  // One alone has no turns to take, and what cannot be is told.
  EXPECT_EQ(load(others, "h").ub.qos.classes, 1);
  for (const auto& [settings, priorities, why] :
       {std::tuple{named, "ah", "nothing says the quantum of priority 0"},
        {others, "abcdefghi", "traffic.csv has 9 priorities; allowed: 8"},
        {std::string("default ns3::UbDwrrAllocator::VlQuantums \"0:6000,1:6001\"\n"), "ab",
         "quanta of 6000, 6001 B have 1 B in common"}}) {
    const hw::Machine left = load(settings, priorities);
    EXPECT_EQ(left.ub.qos.classes, 1);
    EXPECT_THAT(left.notes, ::testing::Contains(HasSubstr(why)));
    EXPECT_THAT(hw::priorities_of_case(folder.path()), ::testing::IsEmpty());
  }
  for (const char* bad : {"0", "x:1", "3:0", "16:5", "3:4:5"}) {
    EXPECT_THAT(
        refusal([&] { load(fmt::format("default ns3::UbDwrrAllocator::VlQuantums \"{}\"\n", bad), "ab"); }),
        HasSubstr("network_attribute.txt:2: UbDwrrAllocator::VlQuantums"))
        << bad;
  }
}

TEST(Files, BadOnesAreRefusedByFileLineAndField) {
  const std::string h = kNodes, l = kLinks, r = kRoutes;
  const std::tuple<std::string, std::string, std::string> bad[] = {
      {"node.csv", "", "node.csv:1: header: is missing"},
      {"node.csv", "nodeId,nodeType\n",
       "node.csv:1: header: 'nodeId,nodeType'; allowed: nodeId,nodeType,portNum, further"},
      {"node.csv", "nodeId,nodeType,portNum,colour\n", "node.csv:1: header: 'colour'"},
      {"node.csv", h + "0..2,DEVICE,2,7\n", "node.csv:2: line: 4 fields; allowed: 3"},
      {"node.csv", h + "0..2,ROUTER,2\n",
       "node.csv:2: nodeType: 'ROUTER'; allowed: DEVICE, SWITCH, DIE, SOCKET"},
      {"node.csv", h + "2..0,DEVICE,2\n", "node.csv:2: nodeId: '2..0'"},
      {"node.csv", h + "0..2,DEVICE,2\n1,SWITCH,2\n", "node.csv:3: nodeId: '1'; allowed: each node once"},
      {"node.csv", h + "0..2,SWITCH,2\n", "none is a DEVICE or DIE"},
      {"node.csv", "nodeId,nodeType,portNum,forwardDelay\n0..2,DEVICE,2,10\n",
       "node.csv:2: forwardDelay: '10'"},
      {"node.csv", "nodeId,nodeType,portNum,class\n0..2,DEVICE,2,l4\n",
       "node.csv:2: class: 'l4'; allowed: chip, l1"},
      {"topology.csv", l + "0,0,1,1,400,1ns\n", "topology.csv:2: bandwidth: '400'"},
      {"topology.csv", l + "0,0,1,1,1bps,1ns\n", "topology.csv:2: bandwidth: '1bps'"},
      {"topology.csv", l + "0,0,1,1,400Gbps,1\n", "topology.csv:2: delay: '1'"},
      {"topology.csv", l + "0,0,9,1,400Gbps,1ns\n", "topology.csv:2: nodeId2: '9'; allowed: a node of"},
      {"topology.csv", l + "0,2,1,1,400Gbps,1ns\n",
       "topology.csv:2: portId1: '2'; allowed: 0 to portNum - 1"},
      {"topology.csv", l + "0,0,0,1,400Gbps,1ns\n", "topology.csv:2: nodeId2: '0'; allowed: another node"},
      {"topology.csv", l + "0,0,1,1,400Gbps,1ns\n2,0,1,1,400Gbps,1ns\n",
       "topology.csv:3: portId2: '1'; allowed: each port once"},
      {"topology.csv", l + "0,0,1,1,400Gbps,1ns\n", "topology.csv: node 2 has no link"},
      {"node.csv", h + "0..1,DEVICE,2\n2,DIE,1\n", "topology.csv:3: portId2: '1'; allowed: 0 to portNum - 1"},
      {"routing_table.csv", r + "0,1,0,5,1\n",
       "routing_table.csv:2: outPorts: '5'; allowed: ports of node 0"},
      {"routing_table.csv", r + "0,1,0,0 1,1\n",
       "routing_table.csv:2: metrics: '1'; allowed: a number for each of 2"},
      {"routing_table.csv", r + "0,7,0,0,1\n", "routing_table.csv:2: dstNodeId: '7'"},
      {"routing_table.csv", r + "0,0,0,0,1\n", "routing_table.csv:2: dstNodeId: '0'; allowed: another node"},
      {"fault.csv", "taskId\n", "fault.csv:1: header: 'taskId'"},
  };
  for (const auto& [file, text, message] : bad) {
    Folder folder;
    put_ring(folder, 3).put(file, text);
    const std::string said = refusal([&] { folder.load(); });
    EXPECT_THAT(said, HasSubstr(message)) << file << "\n" << text;
    EXPECT_EQ(std::ranges::count(said, '\n'), 0);
  }
  Folder folder;
  put_ring(folder, 3).put("routing_table.csv", r + "0,1,0,0,1\n");
  EXPECT_THAT(refusal([&] { Network::of(folder.load().topology); }),
              HasSubstr("node 0 has no route to what hangs on node 2"));
  EXPECT_THAT(refusal([&] { folder.load({"topology.nodes=4"}); }),
              HasSubstr("3 dies (DEVICE or DIE), but the machine has 4"));
  EXPECT_THAT(refusal([] { machine({"topology.kind=file"}); }),
              HasSubstr("topology.file: 'none' is not a folder"));
  EXPECT_THAT(refusal([] { machine({"topology.file=x"}); }),
              HasSubstr("has no effect with topology.kind=clos"));
}

}  // namespace
}  // namespace cm384::ub::topology_files_test
