// Collectives by copies of SDMA engines: right values of every algorithm, and closed forms of what binds:
// bytes over the bus and over the package's link, rounds, who writes the entries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "testbenches/runs/machine_run.h"
#include "workloads/kernels/op_cases.h"

namespace cm384::testing::copy_collectives_test {
namespace {

using studies::OpReading;
using studies::OpRequest;
using studies::OpSetting;

OpRequest request_of(std::string name, std::string shape, std::string algorithm, bool reads = false) {
  OpRequest made;
  made.name = std::move(name);
  made.shape = std::move(shape);
  made.algorithm = std::move(algorithm);
  made.path = "sdma";
  made.reads = reads;
  made.graph = true;
  return made;
}

OpReading run_of(const OpRequest& request, OpSetting setting = {.groups = 24}, const Changes& changes = {},
                 unsigned threads = 1) {
  setting.graph = request.graph;
  const studies::CopyRun copies = studies::copies_of(request, 2 * setting.groups, setting.full,
                                                     hw::load_machine("cloudmatrix384", changes));
  return run_copies(setting, copies, changes, threads);
}

class CopyCollective : public ::testing::TestWithParam<OpRequest> {};

TEST_P(CopyCollective, GivesTheReferencesValuesInTheSameTimeOnTwoThreads) {
  const OpRequest& request = GetParam();
  OpSetting setting{.groups = 2, .iterations = 2, .warmup = 1, .full = true};
  const OpReading full = run_of(request, setting);
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  setting.full = false;
  const OpReading control = run_of(request, setting, {}, 2);
  EXPECT_EQ(full.task_us, control.task_us);
  EXPECT_EQ(full.pace_us, control.pace_us);
}

OpRequest singly(OpRequest request, bool by_aicpu) {
  request.graph = false;
  request.by_aicpu = by_aicpu;
  return request;
}

INSTANTIATE_TEST_SUITE_P(
    All, CopyCollective,
    ::testing::Values(
        request_of("all-gather", "5x10016", "direct"), request_of("all-gather", "5x10016", "direct", true),
        request_of("all-gather", "3x4096", "ring"), request_of("all-gather", "8x4064", "halving"),
        request_of("all-gather", "6x10016", "hierarchical"), request_of("all-gather", "18x32", "direct"),
        request_of("all-gather", "32x2048", "hierarchical", true),
        request_of("reduce-scatter", "5x20000", "direct"),
        request_of("reduce-scatter", "5x20000", "direct", true),
        request_of("reduce-scatter", "4x4096", "ring"), request_of("reduce-scatter", "8x4064", "halving"),
        request_of("reduce-scatter", "6x10016", "hierarchical"),
        request_of("reduce-scatter", "8x2048", "hierarchical", true),
        request_of("all-reduce", "4x40000", "direct"), request_of("all-reduce", "9x32", "direct"),
        request_of("all-reduce", "3x20000", "ring", true), request_of("all-reduce", "8x100000", "halving"),
        request_of("all-reduce", "8x100000", "hierarchical"), request_of("all-to-all", "5x10016", "direct"),
        request_of("all-to-all", "4x512", "best", true),
        singly(request_of("all-reduce", "4x40000", "direct"), false),
        singly(request_of("all-gather", "6x10016", "hierarchical"), true)));

// Table 1's rates ([P]) within its tolerance, in bytes a microsecond.
constexpr double kWrites = 137e3, kLink = 270e3 * 512 / 544, kEngine = 280e3;

// Of eight ranks a direct all-gather or all-to-all has six parts for the bus, and one for the package's link
// beside them.
TEST(CopyCollectives, EachToEachTakesItsBytesOverTheBus) {
  const double part = 2097152, bytes = 6 * part / kWrites;
  for (const char* name : {"all-gather", "all-to-all"}) {
    const double took = run_of(request_of(name, "8x2097152", "direct")).task_us;
    EXPECT_GT(took, 0.98 * bytes) << name;
    EXPECT_LT(took, 1.03 * bytes + 15) << name;
  }
}

// What the other die of the package has does not cross the bus: with two ranks no part does. The engine
// copies the own part to its place beside it.
TEST(CopyCollectives, APackagesDiesHaveTheirLink) {
  const double part = 8388608;
  const auto took = [](bool reads, const Changes& changes) {
    return run_of(request_of("all-gather", "2x8388608", "direct", reads), {.groups = 24}, changes).task_us;
  };
  const double link = took(false, {"sdma.bandwidth=1000GB/s"}), engine = took(false, {});
  EXPECT_GT(link, 0.98 * part / kLink);
  EXPECT_LT(link, 1.1 * part / kLink + 12);
  EXPECT_GT(engine, 0.98 * 2 * part / kEngine);
  EXPECT_LT(engine, 1.05 * 2 * part / kEngine + 10);
  // Who reads waits until the input is in the window.
  EXPECT_GT(took(true, {}), engine + part / kEngine);
}

// Three parts by the bus, then four by the link. Eight packages of 16 ranks: seven, then eight. Those of the
// link are copies one behind the other, each with its entry, descriptor and last write.
TEST(CopyCollectives, AHierarchicalAllGatherCrossesTheBusOnceAPackage) {
  for (const int packages : {4, 8}) {
    const double part = 2097152;
    const double bytes = (packages - 1) * part / kWrites + packages * part / kLink;
    const double took =
        run_of(request_of("all-gather", std::to_string(2 * packages) + "x2097152", "hierarchical")).task_us;
    EXPECT_GT(took, 0.98 * bytes) << packages;
    EXPECT_LT(took, 1.03 * bytes + 20 + 2.5 * packages) << packages;
  }
}

// Small parts: a ring's rounds are alike, so that four ranks more are four rounds more.
TEST(CopyCollectives, ARingTakesARoundAPart) {
  const auto took = [](int ranks) {
    return run_of(request_of("all-gather", std::to_string(ranks) + "x512", "ring")).task_us;
  };
  const double six = took(6), ten = took(10), fourteen = took(14);
  EXPECT_NEAR((fourteen - ten) / (ten - six), 1, 0.05);
  // A round is nine entries one behind the other (event, wait, notify, wait, copy, notify, wait, event,
  // wait), each read, decoded and completed, 0.45 us or more, and a copy with its write, 2 us.
  const double round = (ten - six) / 4;
  EXPECT_GT(round, 5 * 0.45 + 2);
  EXPECT_LT(round, 12 * 0.9 + 4);
}

// Where an AICPU takes longer for an entry than anything else does, each entry more is that much more.
TEST(CopyCollectives, ASlowAicpuIsOneEntryAfterAnother) {
  const auto took = [](int ranks, const char* entry) {
    return run_of(singly(request_of("all-gather", std::to_string(ranks) + "x512", "direct"), true),
                  {.groups = 24}, {std::string("aicpu.entry=") + entry})
        .task_us;
  };
  // A peer more: an event each way with their waits, a notify each way with their waits, and a copy, less
  // the event that its stream's wait shares with others.
  EXPECT_NEAR((took(6, "40us") - took(5, "40us")) / 40, 8, 0.3);
  EXPECT_GT(took(6, "40us"), took(6, "1us") + 8 * 5 * 39);
}

// What is added: two rounds' worth of launches of a hierarchical reduce-scatter, one of a direct one.
TEST(CopyCollectives, SumsAreLaunchesOfVectorCores) {
  EXPECT_EQ(run_of(request_of("reduce-scatter", "8x65536", "hierarchical")).blocks, 2u);
  EXPECT_EQ(run_of(request_of("reduce-scatter", "8x65536", "direct")).blocks, 1u);
  EXPECT_EQ(run_of(request_of("all-gather", "8x65536", "direct")).blocks, 0u);
  // 16 parts of 1 MiB: their bytes from HBM or L2 at no more than 1.64 TB/s beside what they take to come.
  const double part = 1048576, copies = 14 * part / kWrites;
  const double took = run_of(request_of("reduce-scatter", "16x1048576", "direct")).task_us;
  EXPECT_GT(took, copies + 16 * part / 4e6);
  EXPECT_LT(took, 1.05 * copies + 17 * part / 1e6 + 40);
}

TEST(CopyCollectives, BestIsHierarchicalWhereItIsLarge) {
  const auto best = [](const char* name, const char* shape, const Changes& changes = {}) {
    return studies::copies_of(request_of(name, shape, "best"), 48, false,
                              hw::load_machine("cloudmatrix384", changes))
        .setting.algorithm;
  };
  using enum operators::CopyAlgorithm;
  EXPECT_EQ(best("all-gather", "16x21400000"), hierarchical);
  EXPECT_EQ(best("reduce-scatter", "16x21400000"), hierarchical)
      << "only every second rank of a ring has a link";
  EXPECT_EQ(best("all-gather", "16x4096"), direct);
  EXPECT_EQ(best("all-gather", "7x21400000"), direct) << "half a package";
  EXPECT_EQ(best("all-gather", "16x21400000", {"package_link.bandwidth=50GB/s"}), direct);
  EXPECT_EQ(best("all-to-all", "16x21400000"), direct);
}

TEST(CopyCollectives, RefusesARingOfMoreEntriesThanAStreamTakes) {
  EXPECT_THROW(
      run_of(request_of("all-gather", "64x512", "ring"), {.groups = 24}, {"scheduler.queue_depth=256"}),
      InputError);
}

}  // namespace
}  // namespace cm384::testing::copy_collectives_test
