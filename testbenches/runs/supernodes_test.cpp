// Several supernodes in one machine: what goes between them takes the RDMA plane, and that alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/host/placement.h"
#include "testbenches/runs/plane_scenarios.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/fabric/p2p_sdma.h"
#include "workloads/moe/moe.h"
#include "workloads/moe/moe_run.h"

namespace cm384::testing::supernodes_test {
namespace {

using ::testing::HasSubstr;

constexpr int kDies = 16;  // of a supernode

hw::Machine machine(std::vector<std::string> changes = {}) {
  changes.insert(changes.begin(), {"topology.nodes=1", "topology.supernodes=2"});
  return hw::load_machine(std::string(hw::kDefaultMachine), changes);
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

Time wire(std::int64_t bytes, std::int64_t rate) {
  return {(bytes * 1'000'000'000'000 + rate - 1) / rate};
}
// A packet over leaf, spine, core switch, spine and leaf, stored at each.
Time way(const hw::Rdma& p, std::int64_t bytes) {
  const std::int64_t die = p.link_rate.bytes_per_second, up = die * p.dies_per_leaf / p.spines;
  return (wire(bytes, die) + p.link_latency + wire(bytes, up) + p.link_latency +
          wire(bytes, p.core_rate.bytes_per_second) + p.core_latency) *
             2 +
         p.switch_latency * 5 + p.receive_latency;
}

TEST(Supernodes, ATransferTakesTheSumOfItsStages) {
  const hw::Machine m = machine({"accelerator.kind=transfer-engine"});
  const hw::TransferEngine& e = m.transfer_engine;
  const hw::Rdma& p = m.rdma;
  const std::uint64_t own = cm384_gm_die(0, 0), there = cm384_gm_die(kDies, 0) | CM384_GM_VIA_RDMA_BIT;
  const Time local = e.start_latency + e.memory_read_latency + e.memory_write_latency + p.send_latency;
  const Time read = local + way(p, p.header.count) + way(p, p.response_header.count + 512);
  EXPECT_EQ(end_of_transfers(m, {{there, own, 512, 1}}, kDies, true).ps, read.ps);
  const Time write = local + way(p, p.header.count + 512) + way(p, p.response_header.count);
  EXPECT_EQ(end_of_transfers(m, {{own, there, 512, 1}}, kDies, true).ps, write.ps);
}

studies::SdmaReading cache(const hw::Machine& m, Bytes bytes, unsigned threads = 1) {
  supernode::StudyStand stand;
  stand.machine = m;
  studies::StudyContext context = stand.context();
  context.threads = threads;
  studies::P2pPoint point;
  point.operation = "write";
  point.distance = "inter-supernode";
  point.bytes = bytes;
  point.rdma = true;
  studies::SimulatorCounts counts;
  return studies::measure_sdma(context, point, counts);
}

// A cache goes from prefill to decode at the rate of a die's link, less headers.
TEST(Supernodes, ACacheGoesAtTheRateOfTheLink) {
  const double peak = 25.0 * 4096 / (4096 + 98);
  const double found = cache(machine(), Bytes{16 << 20}).bandwidth_GBps;
  EXPECT_NEAR(found, peak, peak * 0.04);
  EXPECT_LT(found, peak);
  const double slow = 10.0 * 4096 / (4096 + 98);
  // Memory answers the engine out of order, and packets are not always full.
  EXPECT_NEAR(cache(machine({"rdma.core_rate=10GB/s"}), Bytes{16 << 20}).bandwidth_GBps, slow, slow * 0.03);
}

// Of a small copy the links to core switches take their latency four times, there and back.
TEST(Supernodes, TheirDistanceIsALatency) {
  const double us = cache(machine(), Bytes{512}).latency_us;
  EXPECT_NEAR(cache(machine({"rdma.core_latency=1650ns"}), Bytes{512}).latency_us - us, 4.0, 1e-6);
  const studies::SdmaReading one = cache(machine(), Bytes{1 << 20}),
                             four = cache(machine(), Bytes{1 << 20}, 4);
  EXPECT_EQ(one.latency_us, four.latency_us);
}

TEST(Supernodes, TheUnifiedBusStaysInside) {
  const hw::Machine m = machine();
  supernode::SupernodeOptions options;
  options.dies = {0, 3, kDies};
  options.sockets = {0, 4};
  options.rdma = true;
  {
    supernode::Supernode supernode(m, options);
    host::Runtime runtime(supernode);
    const std::uint64_t own = runtime.allocate(0, 512), near = runtime.allocate(3, 512),
                        far = runtime.allocate(kDies, 512), socket = runtime.allocate_on_socket(4, 512);
    EXPECT_EQ(runtime.reached_from(0, near), near);
    EXPECT_EQ(runtime.reached_from(0, far), far | CM384_GM_VIA_RDMA_BIT);
    EXPECT_EQ(runtime.reached_from(kDies, far), far);
    EXPECT_EQ(runtime.reached_from(kDies, socket), socket);
    const host::Stream stream = runtime.create_stream(0);
    EXPECT_THAT(refusal([&] { runtime.memcpy_async(stream, far, own, 512); }),
                HasSubstr("die 16, which is in another supernode"));
    EXPECT_THAT(refusal([&] { runtime.memcpy_async(stream, socket, own, 512); }),
                HasSubstr("CPU socket 4, which is in another supernode"));
    runtime.memcpy_async(stream, near, own, 512);
    runtime.memcpy_async(stream, far, own, 512, host::Plane::rdma);
    EXPECT_TRUE(runtime.wait());
  }
  const hw::Machine coreless = machine({"accelerator.kind=transfer-engine"});
  EXPECT_THAT(refusal([&] {
                end_of_transfers(coreless, {{cm384_gm_die(0, 0), cm384_gm_die(kDies, 0), 512, 1}}, kDies);
              }),
              HasSubstr("die 0 asks for die 16, which is in another supernode"));
}

TEST(Supernodes, RanksSpreadEvenly) {
  const hw::Topology topology = machine().topology;
  EXPECT_EQ(host::place_ranks("linear", 4, topology, 1), (std::vector<int>{0, 1, kDies, kDies + 1}));
  EXPECT_EQ(host::place_ranks("3,20", 2, topology, 1), (std::vector<int>{3, 20}));
  EXPECT_THAT(refusal([&] { host::place_ranks("linear", 5, topology, 1); }), HasSubstr("a multiple of 2"));
  EXPECT_THAT(refusal([&] { host::place_ranks("linear", 34, topology, 1); }), HasSubstr("--ranks"));
}

studies::CombineCase layer() {
  studies::CombineCase setting;
  setting.ranks = 8;
  setting.batch = 16;
  setting.top_k = 4;
  setting.experts = 16;
  setting.hidden = 1024;
  setting.cores = 8;
  setting.full = true;
  return setting;
}

struct Exchange {
  std::vector<double> times;
  std::uint64_t by_rdma = 0;  // bytes written
  std::string difference;
  bool operator==(const Exchange&) const = default;
};

// Dispatch and combine of 8 ranks.
Exchange exchange(const hw::Machine& m, const studies::CombineCase& setting, unsigned threads = 1,
                  bool by_value = false, bool combine = true) {
  supernode::StudyStand stand;
  stand.machine = m;
  studies::StudyContext context = stand.context();
  context.threads = threads;
  studies::CombineCase prepared = setting;
  prepared.prepare = [&](supernode::Supernode& of) {
    if (by_value) of.serialise_crossings();
  };
  studies::MoeRun run(context, prepared, &prepared, "exchange", 0, 1);
  Exchange found;
  std::vector<studies::DispatchReading> readings{run.dispatch()};
  if (combine) readings.push_back(run.combine());
  for (const studies::DispatchReading& reading : readings) {
    found.difference += reading.first_difference;
    EXPECT_EQ(reading.correct, true);
    for (const npu::LaunchRecord& task : reading.tasks) found.times.push_back(task.task_end.us());
  }
  for (const int die : run.dies()) {
    if (run.session().machine().has_rdma())
      found.by_rdma += run.session().machine().rdma_interface(die).counters().bytes_written;
  }
  return found;
}

TEST(Supernodes, ExpertsInBothGetTheirRows) {
  const studies::CombineCase setting = layer();
  const Exchange found = exchange(machine(), setting, 1, false, false);
  EXPECT_EQ(found.difference, "");
  // Each token's row once to every expert elsewhere, and a count for each of them.
  const reference::DispatchCase dispatch = studies::make_moe_case(1, setting);
  std::uint64_t rows = 0;
  for (int rank = 0; rank < setting.ranks; ++rank) {
    for (const std::int32_t expert : dispatch.expert_ids[static_cast<std::size_t>(rank)])
      rows += (expert / 2 < 4) != (rank < 4) ? 1 : 0;  // two experts a rank, four ranks a supernode
  }
  EXPECT_GT(rows, 200u);
  const std::uint64_t counts = 8 * 8;  // of each rank, to the experts of the other supernode
  const std::uint64_t rounds = static_cast<std::uint64_t>(setting.warmup + setting.iterations);
  EXPECT_EQ(found.by_rdma, rounds * (rows * (1024 + 32 + 12) + counts * 32));
}

// Bytes over the RDMA plane of one dispatch and one combine by relays, as the description of the relay has
// them.
struct RelayedBytes {
  std::uint64_t dispatch = 0, combine = 0;
};
RelayedBytes relayed_bytes(const studies::CombineCase& setting, int supernodes) {
  const auto up = [](std::uint64_t bytes) { return (bytes + 31) / 32 * 32; };
  const reference::DispatchCase dispatch = studies::make_moe_case(1, setting);
  const int each = setting.ranks / supernodes;
  const auto blocks = static_cast<std::uint64_t>(setting.cores),
             hidden = static_cast<std::uint64_t>(setting.hidden);
  RelayedBytes sum;
  for (int rank = 0; rank < setting.ranks; ++rank) {
    const int tokens = dispatch.tokens_of(rank);
    std::uint64_t rows = 0;
    for (int token = 0; token < tokens; ++token) {
      std::set<std::uint32_t> others;
      for (int k = 0; k < setting.top_k; ++k) {
        const std::int32_t expert = dispatch.expert_ids[static_cast<std::size_t>(rank)]
                                                       [static_cast<std::size_t>(token * setting.top_k + k)];
        others.insert(dispatch.placement.slot_of(expert, rank).rank / static_cast<std::uint32_t>(each));
      }
      others.erase(static_cast<std::uint32_t>(rank / each));
      rows += others.size();
    }
    if (tokens == 0) continue;
    const auto n = static_cast<std::uint64_t>(tokens), relays = static_cast<std::uint64_t>(supernodes - 1);
    const std::uint64_t list = up(n * static_cast<std::uint64_t>(setting.top_k) * 4);
    // Rows with their scales, ids and a flag for each block, a flag for each block that has tokens.
    sum.dispatch += rows * (hidden + 32) + relays * (list + blocks * 32 + std::min(n, blocks) * 32);
    // Sums and a flag each, ids and weights and a flag for each block.
    sum.combine += rows * (2 * hidden + 32) + relays * (2 * list + blocks * 32);
  }
  return sum;
}

TEST(Supernodes, ByRelaysARowCrossesOnceToEach) {
  studies::CombineCase setting = layer();
  setting.relay = true;
  const auto rounds = static_cast<std::uint64_t>(setting.warmup + setting.iterations);
  for (const int supernodes : {2, 4}) {
    const hw::Machine m = machine({"topology.supernodes=" + std::to_string(supernodes)});
    const RelayedBytes bytes = relayed_bytes(setting, supernodes);
    EXPECT_EQ(exchange(m, setting, 1, false, false).by_rdma, rounds * bytes.dispatch);
    const Exchange both = exchange(m, setting);
    EXPECT_EQ(both.difference, "");
    EXPECT_EQ(both.by_rdma, rounds * (bytes.dispatch + bytes.combine));
    EXPECT_EQ(exchange(m, setting, 4, true), both);
    setting.relay = false;
    EXPECT_GT(exchange(m, setting).by_rdma, both.by_rdma);
    setting.relay = true;
  }
}

// Ranks without tokens, with a few, with more than blocks; a batch that is no multiple of anything.
TEST(Supernodes, RelaysStandForUnlikeRanks) {
  studies::CombineCase setting = layer();
  setting.relay = true;
  setting.batches = "13,1,30,7,9,5,2";
  setting.top_k = 3;
  setting.cores = 5;
  const RelayedBytes bytes = relayed_bytes(setting, 2);
  const Exchange both = exchange(machine(), setting);
  EXPECT_EQ(both.difference, "");
  EXPECT_EQ(both.by_rdma, 2 * (bytes.dispatch + bytes.combine));
  studies::CombineCase apart = layer();
  apart.relay = true;
  apart.expert_ranks = 5;
  EXPECT_EQ(exchange(machine(), apart).difference, "");
}

// Dispatch, the experts' network and combine of each rank, one behind the other; sums of what relays bring.
TEST(Supernodes, TheFusedFlowGoesByRelays) {
  studies::MoeCase setting;
  static_cast<studies::CombineCase&>(setting) = layer();
  setting.expert_width = 256;
  setting.expert_cores = 4;
  supernode::StudyStand stand;
  stand.machine = machine();
  const auto measured = [&] {
    studies::SimulatorCounts counts;
    return studies::measure_moe(stand.context(), setting, counts);
  };
  const double direct = measured().latency_us.mean;
  setting.relay = true;
  const studies::MoeReading relayed = measured();
  EXPECT_EQ(relayed.correct, true) << relayed.first_difference;
  EXPECT_NE(relayed.latency_us.mean, direct);
  setting.expert_network = true;
  const studies::MoeReading computed = measured();
  EXPECT_EQ(computed.correct, true) << computed.first_difference;
  EXPECT_GT(computed.latency_us.mean, relayed.latency_us.mean);
}

TEST(Supernodes, WhatARelayCannotDoIsRefused) {
  studies::CombineCase setting = layer();
  setting.relay = true;
  const auto refused = [&](const studies::CombineCase& of, int supernodes = 2) {
    return refusal([&] { exchange(machine({"topology.supernodes=" + std::to_string(supernodes)}), of); });
  };
  EXPECT_THAT(refused(setting, 1), HasSubstr("--supernodes 2"));
  // Of the published size: 768 dies and 192 sockets each, 68 of which packets can name.
  const hw::Machine many = hw::load_machine("cloudmatrix384", {"topology.supernodes=69"});
  EXPECT_THAT(refusal([&] { supernode::Supernode(many, {}); }),
              HasSubstr("69 cannot be simulated as one machine; allowed: at most 68"));
  studies::CombineCase other = setting;
  other.placement = "0,16,1,17,2,18,3,19";
  EXPECT_THAT(refused(other), HasSubstr("--placement linear"));
  other = setting;
  other.full_mesh = true;
  EXPECT_THAT(refused(other), HasSubstr("--variant status"));
  other = setting;
  other.shared_copies = 2;
  EXPECT_THAT(refused(other), HasSubstr("--shared-copies 0"));
  other = setting;
  other.completion = "atomic";
  EXPECT_THAT(refused(other), HasSubstr("--completion flag"));
}

TEST(Supernodes, AnExchangeDoesNotDependOnThreadsOrMemory) {
  const Exchange alone = exchange(machine(), layer());
  EXPECT_EQ(alone.difference, "");
  EXPECT_EQ(exchange(machine(), layer(), 4), alone);
  EXPECT_EQ(exchange(machine(), layer(), 1, true), alone);
  const Exchange near = exchange(machine({"topology.supernodes=1"}), layer());
  EXPECT_EQ(near.by_rdma, 0u);
  EXPECT_LT(near.times.front(), alone.times.front());
}

TEST(Supernodes, MoreThanTwo) {
  studies::CombineCase setting = layer();
  setting.ranks = 6;
  setting.full_mesh = true;
  const Exchange found = exchange(machine({"topology.supernodes=3"}), setting, 1, false, false);
  EXPECT_EQ(found.difference, "");
  EXPECT_GT(found.by_rdma, 0u);
}

}  // namespace
}  // namespace cm384::testing::supernodes_test
