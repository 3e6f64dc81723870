// The seams proved: p2p and replays over the RDMA plane, and on accelerators without cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/host/replay.h"
#include "testbenches/runs/plane_scenarios.h"
#include "testbenches/system/machine/in_memory_trace.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/fabric/p2p_sdma.h"

namespace cm384::testing::planes_test {
namespace {

using traces::TrafficRecord;

hw::Machine machine(const std::vector<std::string>& changes = {}) {
  return hw::load_machine(std::string(hw::kDefaultMachine), changes);
}
hw::Machine coreless(std::vector<std::string> changes = {}) {
  changes.insert(changes.begin(), "accelerator.kind=transfer-engine");
  return machine(changes);
}

Time wire(std::int64_t bytes, std::int64_t rate) {
  return {(bytes * 1'000'000'000'000 + rate - 1) / rate};
}
// A packet over one leaf, stored there.
Time way(const hw::Rdma& p, std::int64_t bytes) {
  return wire(bytes, p.link_rate.bytes_per_second) * 2 + p.link_latency * 2 + p.switch_latency +
         p.receive_latency;
}

TEST(TransferEngine, UnloadedLatencyIsTheSumOfItsStages) {
  const hw::Machine m = coreless();
  const hw::TransferEngine& e = m.transfer_engine;
  const hw::Rdma& p = m.rdma;
  const std::uint64_t own = cm384_gm_die(0, 0), there = cm384_gm_die(2, 0) | CM384_GM_VIA_RDMA_BIT;
  const Time local = e.start_latency + e.memory_read_latency + e.memory_write_latency;
  EXPECT_EQ(end_of_transfers(m, {{own, own + 512, 512, 1}}).ps, local.ps);
  const Time read = local + p.send_latency + way(p, p.header.count) + way(p, p.response_header.count + 512);
  EXPECT_EQ(end_of_transfers(m, {{there, own, 512, 1}}, 2, true).ps, read.ps);
  const Time write = local + p.send_latency + way(p, p.header.count + 512) + way(p, p.response_header.count);
  EXPECT_EQ(end_of_transfers(m, {{own, there, 512, 1}}, 2, true).ps, write.ps);
}

// GB/s of 4 MiB within the own memory.
double local_rate(const hw::Machine& m) {
  constexpr std::uint64_t kBytes = 4 << 20;
  return kBytes /
         (end_of_transfers(m, {{cm384_gm_die(0, 0), cm384_gm_die(0, kBytes), kBytes, 1}}).us() * 1e3);
}

TEST(TransferEngine, PeakIsItsRateOrHalfItsMemorys) {
  EXPECT_NEAR(local_rate(coreless()), 400, 400 * 0.11);  // about 1 us before and behind 10.5 us
  EXPECT_NEAR(local_rate(coreless({"transfer_engine.bandwidth=40GB/s"})), 40, 40 * 0.011);
  EXPECT_NEAR(local_rate(coreless({"transfer_engine.memory_bandwidth=100GB/s"})), 50, 50 * 0.02);
  // One request of 512 B in flight, one read and one write latency each.
  EXPECT_NEAR(local_rate(coreless({"transfer_engine.outstanding=1"})), 512.0 / 300, 0.02);
}

studies::SdmaReading reading(const hw::Machine& m, std::int64_t bytes, bool rdma, bool transfer = false,
                             const char* operation = "write", unsigned threads = 1) {
  supernode::StudyStand stand;
  stand.machine = m;
  studies::StudyContext context = stand.context();
  context.threads = threads;
  studies::P2pPoint point;
  point.operation = operation;
  point.bytes = Bytes{bytes};
  point.rdma = rdma;
  studies::SimulatorCounts counts;
  return transfer ? studies::measure_transfer(context, point, counts)
                  : studies::measure_sdma(context, point, counts);
}

TEST(P2p, RdmaComesToTheLinksRateLessHeaders) {
  const double peak = 25.0 * 4096 / (4096 + 98);
  // Memory answers the SDMA engine out of order, and packets are not always full.
  EXPECT_NEAR(reading(machine(), 16 << 20, true).bandwidth_GBps, peak, peak * 0.03);
  EXPECT_NEAR(reading(coreless(), 16 << 20, true, true).bandwidth_GBps, peak, peak * 0.01);
  EXPECT_GT(reading(machine(), 16 << 20, false).bandwidth_GBps, 100);
  // The Unified Bus bounds an engine without cores as it bounds the SDMA engine.
  EXPECT_GT(reading(coreless(), 16 << 20, false, true).bandwidth_GBps, 100);
}

TEST(P2p, ACopyOverRdmaDoesNotDependOnThreads) {
  const studies::SdmaReading one = reading(machine(), 1 << 20, true),
                             four = reading(machine(), 1 << 20, true, false, "write", 4);
  EXPECT_EQ(one.latency_us, four.latency_us);
  EXPECT_EQ(one.bandwidth_GBps, four.bandwidth_GBps);
}

TEST(Runtime, RdmaIsRefusedWhereItDoesNotReach) {
  const hw::Machine m = machine();
  supernode::SupernodeOptions options;
  options.dies = {0, 2};
  options.sockets = {0};
  const auto refusal = [&](bool rdma, bool socket) -> std::string {
    options.rdma = rdma;
    supernode::Supernode supernode(m, options);
    host::Runtime runtime(supernode);
    const std::uint64_t to = socket ? runtime.allocate_on_socket(0, 512) : runtime.allocate(2, 512);
    try {
      runtime.memcpy_async(runtime.create_stream(0), to, runtime.allocate(0, 512), 512, host::Plane::rdma);
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(refusal(false, false), ::testing::HasSubstr("does not take part"));
  EXPECT_THAT(refusal(true, true), ::testing::HasSubstr("does not reach CPU sockets"));
  EXPECT_EQ(refusal(true, false), "");
}

TEST(Runtime, ACopyOverRdmaBringsItsBytes) {
  const hw::Machine m = machine();
  supernode::SupernodeOptions options;
  options.dies = {0, 700};
  options.rdma = true;
  supernode::Supernode supernode(m, options);
  host::Runtime runtime(supernode);
  std::vector<std::uint32_t> values(5000);
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<std::uint32_t>(n * 2654435761u);
  const std::uint64_t from = runtime.allocate(0, values.size() * 4),
                      to = runtime.allocate(700, values.size() * 4);
  runtime.copy_in(from, std::as_bytes(std::span(values)));
  runtime.memcpy_async(runtime.create_stream(0), to, from, values.size() * 4, host::Plane::rdma);
  runtime.wait();
  EXPECT_EQ(runtime.get<std::uint32_t>(to, values.size()), values);
  EXPECT_EQ(supernode.controller(0).packet_hops(), 0u);
  EXPECT_EQ(supernode.rdma_interface(0).counters().bytes_written, values.size() * 4);
}

// A transfer, time without traffic once it is complete, and a transfer back.
InMemoryTrace ping_pong(bool by_rdma) {
  InMemoryTrace trace;
  for (int n = 0; n < 3; ++n) {
    TrafficRecord r;
    r.source.number = n == 2 ? 2 : 0;
    r.target.number = n == 2 ? 0 : 2;
    r.core = TrafficRecord::kAnyCore;
    r.operation = sim::Operation::write;
    r.bytes = 65536;
    r.by_rdma = by_rdma;
    if (n == 1) {
      r = {};
      r.kind = TrafficRecord::Kind::compute;
      r.source = r.target;
      r.end = Time{5'000'000};
    }
    if (n != 0)
      r.dependencies = {{static_cast<std::uint64_t>(n - 1), traces::TrafficDependency::Kind::completion, {}}};
    EXPECT_EQ(traces::fault_of(r, static_cast<std::uint64_t>(n)), "");
    trace.records.push_back(r);
  }
  return trace;
}

std::vector<Time> ends_of_replay(const hw::Machine& m, InMemoryTrace trace, host::ReplayOptions how = {}) {
  supernode::SupernodeOptions options;
  options.dies = {0, 2};
  options.rdma = how.path == host::ReplayOptions::Path::rdma || trace.records.front().by_rdma;
  options.patience = Time::never();
  supernode::Supernode supernode(m, options);
  std::vector<Time> ends;
  how.finished = [&](const TrafficRecord&, Time, Time end) { ends.push_back(end); };
  host::Replay replay(supernode, trace, how);
  EXPECT_TRUE(replay.run());
  return ends;
}

TEST(Replay, TakesTheRecordsPlaneOrTheOneAskedFor) {
  for (const hw::Machine& m : {machine(), coreless()}) {
    const auto bus = ends_of_replay(m, ping_pong(false)), rdma = ends_of_replay(m, ping_pong(true));
    ASSERT_EQ(bus.size(), 3u);
    ASSERT_EQ(rdma.size(), 3u);
    EXPECT_GT(rdma[0], bus[0]);
    EXPECT_GT(rdma[0].us(), 65536 / 25e3);
    EXPECT_EQ(bus[1] - bus[0], Time{5'000'000});
    EXPECT_GT(rdma[2] - rdma[1], bus[2] - bus[1]);
    host::ReplayOptions how;
    how.path = host::ReplayOptions::Path::rdma;
    EXPECT_EQ(ends_of_replay(m, ping_pong(false), how), rdma);
    how.path = host::ReplayOptions::Path::ub;
    EXPECT_EQ(ends_of_replay(m, ping_pong(true), how), bus);
  }
}

TEST(Replay, BurstsBecomeTransfersOfAnEngineWithoutCores) {
  InMemoryTrace trace = ping_pong(false);
  trace.records.resize(1);
  TrafficRecord& r = trace.records.front();
  r.core = 3;
  r.bytes = 4096;
  r.bursts = 16;
  r.stride = 8192;
  const auto bursts = ends_of_replay(coreless(), trace);
  r.bytes = 65536;
  r.bursts = 1;
  r.stride = 0;
  const auto whole = ends_of_replay(coreless(), trace);
  ASSERT_EQ(bursts.size(), 1u);
  EXPECT_NEAR(bursts[0].us(), whole[0].us(), whole[0].us() * 0.1);
  r.operation = sim::Operation::atomic_add_s32;
  EXPECT_THROW(ends_of_replay(coreless(), trace), InputError);
}

TEST(WithoutCores, WhatNeedsThemIsRefusedByName) {
  const hw::Machine m = coreless();
  supernode::SupernodeOptions options;
  options.dies = {0};
  supernode::Supernode supernode(m, options);
  try {
    supernode.die(0);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("accelerator.kind is transfer-engine"));
  }
  EXPECT_THROW(machine({"transfer_engine.engines=4"}), InputError);
  EXPECT_THROW(coreless({"die.aiv=24"}), InputError);
  EXPECT_THROW(coreless({"transfer_engine.request=96B"}), InputError);
}

}  // namespace
}  // namespace cm384::testing::planes_test
