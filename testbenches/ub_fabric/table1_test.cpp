// Table 1 of arXiv:2506.12708v2 with the default machine, the core's and memory's parts stood in by fixed
// latencies: 108 ns to set up an MTE read and 27 ns a write, 350 ns a read of HBM, 150 ns a write's
// acknowledgement.
#include <gtest/gtest.h>

#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/socket_dram.h"

namespace cm384::ub::table1_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

struct Figure {
  const char* name;
  Operation operation;
  bool inter, socket;
  double latency_us, bandwidth;  // GB/s
};

class Table1 : public ::testing::TestWithParam<Figure> {};

std::uint64_t target(const Figure& f, std::uint64_t offset) {
  return f.socket ? cm384_gm_cpu(f.inter ? 5 : 1, offset) : cm384_gm_die(f.inter ? 17 : 5, offset);
}

FabricBench make(const Parameters& p, const Figure& f) {
  const unsigned socket = static_cast<unsigned>(p.topology.socket_endpoint(f.inter ? 5 : 1));
  const unsigned unit = f.socket ? socket : f.inter ? 17 : 5;
  FabricBench bench(p, {0, unit});
  bench.at(unit).read_latency = f.socket ? p.cpu.memory_read_latency : 350_ns;
  bench.at(unit).write_latency = f.socket ? p.cpu.memory_write_latency : 150_ns;
  return bench;
}

TEST_P(Table1, LatencyWithinFivePercent) {
  const Figure& f = GetParam();
  const Parameters p = machine();
  FabricBench bench = make(p, f);
  bench.at(0).request(0_ns, Operation::read, target(f, 0), 32, 1);
  bench.at(0).request(10_us, f.operation, target(f, 0), 512, 2);
  bench.run();
  const Time set_up = f.operation == Operation::read ? 108_ns : 27_ns;
  const double us = (bench.at(0).done.at(1).at - 10_us + set_up).us();
  RecordProperty("us", std::to_string(us));
  EXPECT_NEAR(us, f.latency_us, f.latency_us * 0.05);
}

TEST_P(Table1, BandwidthWithinFivePercent) {
  const Figure& f = GetParam();
  const Parameters p = machine();
  FabricBench bench = make(p, f);
  constexpr std::uint64_t kCount = 40'000;
  bench.at(0).stream(f.operation, 512, kCount, 2'000,
                     [&f](std::uint64_t i) { return target(f, i % 4096 * 512); });
  bench.run();
  const auto& done = bench.at(0).done;
  const double ns = (done.back().at - done[kCount / 4].at).ns();
  const double measured = static_cast<double>(kCount - 1 - kCount / 4) * 512 / ns;
  RecordProperty("GBps", std::to_string(measured));
  EXPECT_NEAR(measured, f.bandwidth, f.bandwidth * 0.05);
}

INSTANTIATE_TEST_SUITE_P(Figures, Table1,
                         ::testing::Values(Figure{"NpuReadIntra", Operation::read, false, false, 1.2, 167},
                                           Figure{"NpuReadInter", Operation::read, true, false, 1.9, 164},
                                           Figure{"NpuWriteIntra", Operation::write, false, false, 1.3, 137},
                                           Figure{"NpuWriteInter", Operation::write, true, false, 2.1, 135},
                                           Figure{"CpuReadIntra", Operation::read, false, true, 1.0, 151},
                                           Figure{"CpuReadInter", Operation::read, true, true, 1.7, 147},
                                           Figure{"CpuWriteIntra", Operation::write, false, true, 1.1, 110},
                                           Figure{"CpuWriteInter", Operation::write, true, true, 1.9, 107}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SocketDram, LatencyAndBandwidth) {
  const Parameters p = machine();
  SocketDram dram(p.cpu);
  EXPECT_EQ(dram.access(false, 512, 1_us), 1_us + p.cpu.memory_read_latency);
  // 512 B at 200 GB/s take 2.56 ns.
  EXPECT_EQ(dram.access(true, 512, 1_us), 1_us + p.cpu.memory_write_latency + Time{2560});
  EXPECT_EQ(dram.access(false, 512, 1_us), 1_us + p.cpu.memory_read_latency + Time{5120});
  EXPECT_EQ(dram.access(false, 512, 2_us), 2_us + p.cpu.memory_read_latency);
}

}  // namespace
}  // namespace cm384::ub::table1_test
