// Numbers that studies report, against what they are of.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "system/observe/statistics_file.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/fabric/p2p.h"
#include "workloads/frame/published.h"
#include "workloads/frame/result_json.h"
#include "workloads/kernels/stream.h"
#include "workloads/moe/dispatch.h"

namespace cm384::studies::reported_test {
namespace {

// A matrix of 128 KiB, which stays in L2: the first pass misses, the others hit.
TEST(Reported, HitRateAndBandwidthOfAStream) {
  const StreamShape shape{"small", 64, 2048, 64, 2048, 2048};
  for (const int passes : {1, 4}) {
    supernode::StudyStand stand;
    SimulatorCounts counts;
    const StreamReading reading = measure_stream(stand.context(), shape, 1, passes, false, counts);
    EXPECT_NEAR(reading.l2_hit_rate, (passes - 1.0) / passes, 0.02) << passes;
    EXPECT_NEAR(reading.bandwidth_TBps * reading.kernel_us, passes * 0.131072, 1e-9) << passes;
    EXPECT_GT(reading.task_us, reading.kernel_us);
  }
}

TEST(Reported, BandwidthIsOfAllCores) {
  double one = 0;
  for (const int cores : {1, 4}) {
    supernode::StudyStand stand;
    SimulatorCounts counts;
    const P2pPoint point{.operation = "write", .cores = cores, .volume = Bytes{256 << 10}};
    const double bandwidth = measure_p2p(stand.context(), point, counts).bandwidth_GBps;
    if (cores == 1) one = bandwidth;
    EXPECT_NEAR(bandwidth / one, cores, 0.2 * cores);
  }
}

// Of sizes that do not divide by the cores too: what they move is what they are said to.
TEST(Reported, WhatCoresShareIsWhatTheyMove) {
  for (const std::int64_t bytes : {4, 512, 516, 24576, 24580, 1 << 20}) {
    supernode::StudyStand stand;
    observe::StatisticsFile statistics(false);
    stand.statistics = &statistics;
    SimulatorCounts counts;
    const P2pPoint point{.operation = "write", .bytes = Bytes{bytes}, .cores = 48, .volume = {}};
    EXPECT_GT(measure_shared_p2p(stand.context(), point, counts), 0) << bytes;
    const Json rows = statistics.to_document("p2p")["rows"];
    ASSERT_EQ(rows.size(), 1u);
    const P2pShares shares = shares_of(point);
    // In blocks of 32 B.
    const std::uint64_t written = static_cast<std::uint64_t>(shares.cores) * ((shares.bytes + 31) / 32 * 32);
    EXPECT_EQ(rows[0]["parts"]["die0"]["ub.bytes_written"], written);
    EXPECT_GE(shares.moved(), static_cast<std::uint64_t>(bytes));
    EXPECT_LT(shares.moved(), static_cast<std::uint64_t>(bytes) + 512u * static_cast<unsigned>(shares.cores));
  }
}

TEST(Reported, ADispatchCountsItsIterationsAndNoWarmUp) {
  supernode::StudyStand stand;
  DispatchCase setting;
  setting.ranks = 2;
  setting.batch = 4;
  setting.top_k = 2;
  setting.experts = 4;
  setting.hidden = 64;
  setting.cores = 2;
  setting.warmup = 2;
  setting.iterations = 3;
  SimulatorCounts counts;
  const DispatchReading reading = measure_dispatch(stand.context(), setting, counts);
  ASSERT_EQ(reading.tasks.size(), 6u);
  EXPECT_EQ(reading.task_us.count, 6);
  double sum = 0, phases = 0;
  for (const npu::LaunchRecord& record : reading.tasks) sum += (record.task_end - record.task_start).us();
  EXPECT_NEAR(reading.task_us.mean, sum / 6, 1e-9);
  for (const double phase : reading.phase_us) phases += phase;
  // Blocks start some time apart: a core's phases are within the kernel's time.
  EXPECT_LE(phases, reading.kernel_us.mean);
  EXPECT_GE(phases, 0.8 * reading.kernel_us.mean);
}

// The time with instruction fetch free of charge is that of such a machine.
TEST(Reported, TheTimeWithFreeFetchIsBesideTheRows) {
  const std::vector<std::string> small{"--ranks", "2",         "--batch",   "4",        "--top-k",
                                       "2",       "--experts", "4",         "--hidden", "64",
                                       "--cores", "2",         "--measure", "kernel"};
  for (const std::string_view name : {"dispatch", "combine"}) {
    const Study& study = *std::ranges::find(registry(), name, &Study::name);
    const auto row = [&](bool beside, const char* fetch) {
      supernode::StudyStand stand;
      stand.machine.scalar_core.instruction_fetch = fetch;
      std::vector<std::string> arguments = small;
      if (beside) arguments.emplace_back("--free-fetch");
      return to_json(StudySettings(study, arguments).run(stand.context()).rows.front());
    };
    const Json one = row(true, "charged"), charged = row(false, "charged"), free = row(false, "free");
    EXPECT_EQ(one["kernel_us"], charged["kernel_us"]) << name;
    EXPECT_EQ(one["free_fetch_us"], free["kernel_us"]) << name;
    EXPECT_TRUE(charged["free_fetch_us"].is_null()) << name;
    EXPECT_LT(one["free_fetch_us"], one["kernel_us"]) << name;
    EXPECT_GT(one["fetch_stall_us"], 1.0) << name;
    EXPECT_EQ(free["fetch_stall_us"], 0.0) << name;
    EXPECT_GT(one["code_bytes"], 2000) << name;
  }
}

// Of what all 24 cube cores do at 1.85 GHz, and of those that the product ran on.
TEST(Reported, UtilisationNamesBothPeaks) {
  const Study& study = *std::ranges::find(registry(), "gemm", &Study::name);
  const auto row = [&](const char* type) {
    supernode::StudyStand stand;
    return to_json(StudySettings(study, {"--groups", "1", "--m", "128", "--n", "256", "--k", "256", "--dtype",
                                         type, "--cores", "6"})
                       .run(stand.context())
                       .rows.front());
  };
  for (const auto& [type, die] : {std::pair{"int8", 727.4496}, std::pair{"bf16", 363.7248}}) {
    const Json one = row(type);
    EXPECT_NEAR(one["peak_TOPS"].get<double>(), die, 1e-3) << type;
    EXPECT_NEAR(one["cube_peak_TOPS"].get<double>(), die / 4, 1e-3) << type;
    const double rate = 2e-6 * 128 * 256 * 256 / one["latency_us"].get<double>();
    EXPECT_NEAR(one["TOPS"].get<double>(), rate, 1e-9) << type;
    EXPECT_NEAR(one["compute_utilisation"].get<double>() * die, rate, 1e-5) << type;
    EXPECT_NEAR(one["cube_utilisation"].get<double>() * die / 4, rate, 1e-5) << type;
  }
}

}  // namespace
}  // namespace cm384::studies::reported_test
