// What is known of SDMA against what the machine gives: the published start-up, the measurements of
// ascend-facts C, table 1's bandwidths.
#include <gtest/gtest.h>

#include "testbenches/runs/machine_run.h"

namespace cm384::testing::sdma_figures_test {
namespace {

studies::P2pPoint point(const char* operation, Bytes bytes, const char* distance = "intra-node") {
  studies::P2pPoint p;
  p.operation = operation;
  p.distance = distance;
  p.bytes = bytes;
  p.volume = 0_B;
  return p;
}

// Published: about 10 us, here within 20 %, for either operation; AIV-Direct's is below 1 us.
TEST(SdmaFigures, StartUpFromTheHost) {
  for (const char* operation : {"read", "write"}) {
    const studies::SdmaReading reading = run_sdma(SdmaBy::host, point(operation, 64_B));
    EXPECT_GT(reading.startup_us, 8.0) << operation;
    EXPECT_LT(reading.startup_us, 12.0) << operation;
    EXPECT_LT(run_p2p(point(operation, 64_B)).startup_us, 1.0);
    double sum = 0, before_port = 0;
    for (const studies::Stage& stage : reading.stages) {
      EXPECT_GE(stage.us, 0) << stage.name;
      sum += stage.us;
      if (std::string(stage.name) == "to_port") before_port = sum;
    }
    EXPECT_NEAR(sum, reading.latency_us, 1e-6);
    EXPECT_NEAR(before_port, reading.startup_us, 1e-6);
  }
}

TEST(SdmaFigures, FourKibibytesFromHostAndCore) {
  for (const char* operation : {"read", "write"}) {
    const double host = run_sdma(SdmaBy::host, point(operation, 4_KiB)).latency_us;
    EXPECT_GT(host, 10.0);
    EXPECT_LT(host, 14.0);
  }
  EXPECT_NEAR(run_sdma(SdmaBy::core_prefetch, point("write", 4_KiB)).latency_us, 3.0, 0.75);
  EXPECT_NEAR(run_sdma(SdmaBy::core, point("read", 4_KiB)).latency_us, 3.0, 1.0);
}

// 1 MB 6.10 us, 16 MB 69.4 us from a core: prefetch, entries of 1 MiB, a flag behind them.
TEST(SdmaFigures, LongPrefetchesOfACore) {
  EXPECT_NEAR(run_sdma(SdmaBy::core_prefetch, point("write", 1_MiB)).latency_us / 6.10, 1.0, 0.15);
  EXPECT_NEAR(run_sdma(SdmaBy::core_prefetch, point("write", 16_MiB)).latency_us / 69.4, 1.0, 0.10);
}

// A large copy reaches what 48 vector cores reach: within 5 % of table 1.
TEST(SdmaFigures, LargeCopiesReachTheLinksBandwidth) {
  for (const auto& [operation, distance, published] :
       {std::tuple{"read", "intra-node", 167.0}, std::tuple{"read", "inter-node", 164.0},
        std::tuple{"write", "intra-node", 137.0}, std::tuple{"write", "inter-node", 135.0}}) {
    const double rate = run_sdma(SdmaBy::host, point(operation, 16_MiB, distance)).bandwidth_GBps;
    EXPECT_NEAR(rate / published, 1.0, 0.05) << operation << " " << distance << ": " << rate;
  }
}

// SDMA starts late and needs no cores: one core is faster at 512 B, slower at 16 MiB.
TEST(SdmaFigures, ThePathsCross) {
  for (const auto& [bytes, sdma_wins] : {std::pair{512_B, false}, std::pair{16_MiB, true}}) {
    studies::P2pPoint p = point("write", bytes);
    p.cores = 1;
    EXPECT_EQ(run_sdma(SdmaBy::host, p).latency_us < run_shared_p2p(p), sdma_wins) << bytes.count;
  }
}

}  // namespace
}  // namespace cm384::testing::sdma_figures_test
