// What the machine's parts count: against closed forms, against each other, and at no cost to results.
#include "base/engine/statistics.h"

#include <gmock/gmock.h>

#include <set>

#include "base/text/error.h"
#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "system/host/runtime.h"
#include "testbenches/system/machine/study_stand.h"
#include "ub_fabric/wire_format.h"
#include "workloads/moe/dispatch.h"

namespace cm384::supernode::statistics_test {
namespace {

// Writes `bytes` by each of `cores` cores of die 0 to another die, in instructions of 16 KiB.
void write_to(host::Runtime& runtime, int target, int cores, std::uint64_t bytes) {
  cm384_p2p a{};
  a.mode = CM384_P2P_WRITE;
  a.buffers = 4;
  a.chunk_bytes = 16384;
  a.bytes = a.target_stride = bytes;
  a.target = runtime.allocate(target, bytes * static_cast<std::uint64_t>(cores));
  a.results = runtime.allocate(0, static_cast<std::uint64_t>(cores) * CM384_P2P_RESULT_STRIDE);
  const std::uint64_t block = runtime.allocate(0, sizeof a);
  runtime.put(block, a);
  runtime.launch(0, runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p")), block,
                 runtime.first_cores(cores), runtime.earliest_start());
  runtime.wait();
}

TEST(Statistics, OfARemoteWriteAreWhatTheClosedFormSays) {
  constexpr std::uint64_t kCores = 3, kBytes = 64 * 1024;
  constexpr std::uint64_t kRequests = kCores * kBytes / 512;
  constexpr std::uint64_t kRequestFlits = ub::packet_flits(ub::PacketKind::write_request, 512);
  constexpr std::uint64_t kAckFlits = ub::packet_flits(ub::PacketKind::write_ack, 0);
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 16};  // two nodes
  Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  write_to(runtime, 16, kCores, kBytes);
  sim::Statistics all;
  machine.declare_statistics(all);

  EXPECT_EQ(all.sum("die*.aiv*.mte3.remote_requests"), kRequests);
  // One result of 72 B a block goes to the own die.
  EXPECT_EQ(all.sum("die*.aiv*.mte3.instructions"), kCores * (kBytes / 16384 + 1));
  EXPECT_EQ(all.sum("die*.aiv*.mte3.bytes"), kCores * (kBytes + 72));
  EXPECT_EQ(all.total("die0.ub.writes"), kRequests);
  EXPECT_EQ(all.total("die0.ub.bytes_written"), kCores * kBytes);
  EXPECT_EQ(all.total("die0.ub.completions"), kRequests);
  EXPECT_EQ(all.total("die16.ub.served"), kRequests);
  EXPECT_EQ(all.total("die16.memory.writes"), kRequests);
  std::uint64_t sent[2] = {}, flits[2] = {};
  for (std::uint64_t port = 0; port < 7; ++port) {
    for (const std::uint64_t side : {0, 1}) {
      const auto at = sim::StatisticPath{}.part("die", side * 16).part("ub").part("port", port).name;
      sent[side] += all.total(at + ".packets");
      flits[side] += all.total(at + ".flits");
    }
  }
  EXPECT_EQ(sent[0], kRequests);
  EXPECT_EQ(sent[1], kRequests);  // an acknowledgement each
  EXPECT_EQ(flits[0], kRequests * kRequestFlits);
  EXPECT_EQ(flits[1], kRequests * kAckFlits);
  for (const char* hop : {"l1chip*.to_l2chip*", "l2chip*.to_l1chip*", "l1chip*.to_die*"}) {
    const std::string at = std::string("plane*.") + hop;
    EXPECT_EQ(all.sum(at + ".packets"), 2 * kRequests) << at;
    EXPECT_EQ(all.sum(at + ".flits"), kRequests * (kRequestFlits + kAckFlits)) << at;
    EXPECT_EQ(all.sum(at + ".retransmissions"), 0u) << at;
  }
}

TEST(Statistics, TotalsAreWhatStudiesReport) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 1, 16};
  options.sockets = {2};
  Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  write_to(runtime, 16, 2, 32768);
  write_to(runtime, 1, 2, 32768);  // by the package link; a second launch on the same cores
  sim::Statistics all;
  machine.declare_statistics(all);
  const SupernodeCounts counts = machine.counts();
  EXPECT_EQ(all.sum("die*.aiv*.scalar.instructions"), counts.instructions);
  EXPECT_EQ(all.sum("die*.memory.reads") + all.sum("die*.memory.writes") + all.sum("die*.memory.atomics"),
            counts.memory_requests);
  EXPECT_GT(all.sum("die*.ub.package.packets"), 0u);
  EXPECT_EQ(all.total("packets"), counts.packet_hops);
  EXPECT_EQ(all.sum("die*.launches"), 2u);
  for (const sim::Statistic& s : all.list()) {
    EXPECT_FALSE(s.unit.empty()) << s.name;
    EXPECT_FALSE(s.sentence.empty()) << s.name;
  }
}

// A second launch adds to what the first has counted.
TEST(Statistics, InstructionsAreOfAllLaunches) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 2};
  Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  write_to(runtime, 2, 1, 32768);
  const std::uint64_t once = machine.counts().instructions;
  write_to(runtime, 2, 1, 32768);
  EXPECT_NEAR(static_cast<double>(machine.counts().instructions), 2.0 * static_cast<double>(once),
              0.1 * static_cast<double>(once));
}

TEST(StatisticsFile, HoldsSumsByMachineAndPart) {
  StudyStand stand;
  observe::StatisticsFile file(true);
  stand.statistics = &file;
  studies::DispatchCase setting;
  setting.ranks = 2;
  setting.batch = 4;
  setting.top_k = 2;
  setting.experts = 4;
  setting.hidden = 64;
  setting.cores = 2;
  studies::SimulatorCounts counts;
  studies::measure_dispatch(stand.context(), setting, counts);
  const Json document = file.to_document("dispatch");
  EXPECT_EQ(document["schema"], 1);
  ASSERT_EQ(document["rows"].size(), 1u);
  const Json& row = document["rows"][0];
  EXPECT_EQ(row["run"], "dispatch, 2 ranks");
  std::uint64_t packets = 0;
  for (const auto& [pattern, value] : row["totals"].items()) {
    EXPECT_TRUE(document["glossary"][pattern].contains("unit")) << pattern;
    if (pattern.ends_with(".packets")) packets += value.get<std::uint64_t>();
  }
  EXPECT_EQ(packets, counts.packet_hops);
  EXPECT_EQ(row["totals"]["die*.aiv*.scalar.instructions"], counts.instructions);
  EXPECT_EQ(row["parts"]["die0"]["aiv*.scalar.instructions"].get<std::uint64_t>() +
                row["parts"]["die1"]["aiv*.scalar.instructions"].get<std::uint64_t>(),
            counts.instructions);
  EXPECT_EQ(row["detail"]["die0.aiv0.scalar.instructions"].get<std::uint64_t>() +
                row["detail"]["die0.aiv1.scalar.instructions"].get<std::uint64_t>(),
            row["parts"]["die0"]["aiv*.scalar.instructions"].get<std::uint64_t>());
  EXPECT_FALSE(row["detail"].contains("die0.aiv5.scalar.instructions"));
}

// By the same grammar as faults and waves: a link has both its ends in its counters' names.
TEST(StatisticsFile, MayHoldChosenPartsAlone) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0, 16};
  Supernode machine(parameters, options);
  host::Runtime runtime(machine);
  write_to(runtime, 16, 1, 64 * 1024);
  const auto shown = [&](const std::vector<const char*>& texts) {
    std::vector<LinkSelection> chosen;
    for (const char* text : texts) chosen.push_back(parse_link_selection(text));
    observe::StatisticsFile file(true, chosen);
    file.begin("", Time{});
    machine.visit_statistics([&](const sim::Statistics& part) { file.add(part); });
    std::set<std::string> parts;  // without the counter
    const Json document = file.to_document("");
    for (const auto& [name, value] : document["rows"][0]["detail"].items())
      parts.insert(name.substr(0, name.rfind('.')));
    return parts;
  };
  EXPECT_EQ(shown({"plane=2,die=0"}), (std::set<std::string>{"die0.ub.port2", "plane2.l1chip0.to_die0"}));
  const auto trunks = shown({"plane=1,l2=3", "plane=2,die=16"});
  EXPECT_TRUE(trunks.contains("plane1.l1chip0.to_l2chip3"));
  EXPECT_TRUE(trunks.contains("plane1.l2chip3.to_l1chip1"));
  EXPECT_TRUE(trunks.contains("plane2.l1chip1.to_die16"));
  EXPECT_FALSE(trunks.contains("plane1.l1chip0.to_l2chip4"));
  EXPECT_EQ(shown({"all"}).size(), shown({}).size());
  EXPECT_GT(shown({"die=0"}).size(), 10u);
  const observe::StatisticsFile wrong(false, {parse_link_selection("l2=16")});
  EXPECT_THROW(wrong.check(machine.plane(0).network(), 7), InputError);
}

TEST(StatisticsFile, ChangesNoResult) {
  StudyStand stand;
  const studies::P2pPoint point{.volume = Bytes{65536}};
  studies::SimulatorCounts off, on;
  const auto without = studies::measure_p2p(stand.context(), point, off);
  observe::StatisticsFile file(false);
  stand.statistics = &file;
  const auto with = studies::measure_p2p(stand.context(), point, on);
  EXPECT_EQ(without.latency_us, with.latency_us);
  EXPECT_EQ(without.startup_us, with.startup_us);
  EXPECT_EQ(without.bandwidth_GBps, with.bandwidth_GBps);
  EXPECT_EQ(off.events, on.events);
  EXPECT_EQ(file.to_document("p2p")["rows"].size(), 2u);  // one machine for latency, one for bandwidth
}

}  // namespace
}  // namespace cm384::supernode::statistics_test
