// Small operators on a die: values of each against a reference in double precision, the same times in both
// payload modes and launches as the scheduler has them, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "hw/machine.h"
#include "testbenches/hw/refusal.h"
#include "testbenches/runs/machine_run.h"
#include "workloads/kernels/op_cases.h"
#include "workloads/operators/rows/rows.h"
#include "workloads/operators/token_operators/token_operators.h"

namespace cm384::testing::op_test {
namespace {

using operators::Rows;
using reference::RowCase;
using reference::RowOperation;
using studies::OpReading;
using studies::OpSetting;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

OpReading run_rows(const RowCase& row_case, std::uint32_t buffers, OpSetting setting,
                   const Changes& changes = {}) {
  return run_operator(
      setting, [&] { return std::make_unique<Rows>(row_case, buffers); }, changes);
}

struct Case {
  RowCase rows;
  std::uint32_t buffers;
  int groups;
};

class RowValues : public ::testing::TestWithParam<Case> {};

TEST_P(RowValues, AreTheReferencesAndTimesDoNotDependOnThem) {
  const Case& c = GetParam();
  OpSetting setting{.groups = c.groups, .graph = true, .iterations = 2, .warmup = 0, .full = true};
  const OpReading full = run_rows(c.rows, c.buffers, setting);
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  setting.full = false;
  const OpReading control = run_rows(c.rows, c.buffers, setting);
  EXPECT_EQ(full.task_us, control.task_us);
  EXPECT_EQ(full.kernel_us, control.kernel_us);
  EXPECT_EQ(full.hbm_bytes, control.hbm_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, RowValues,
    ::testing::Values(
        Case{{RowOperation::add, 3, 4160}, 2, 1}, Case{{RowOperation::add, 1, 64}, 1, 2},
        Case{{RowOperation::rms_norm, 5, 1344}, 1, 1}, Case{{RowOperation::rms_norm, 3, 64}, 2, 2},
        Case{{RowOperation::quantise, 5, 7168}, 1, 1}, Case{{RowOperation::quantise, 3, 64}, 2, 1},
        Case{{RowOperation::quantise, 2, 64}, 1, 1}, Case{{RowOperation::quantise, 1, 1536}, 1, 1},
        Case{{RowOperation::quantise, 37, 1536}, 1, 1}, Case{{RowOperation::quantise, 101, 576}, 2, 1},
        Case{{RowOperation::quantise, 501, 64}, 1, 1}, Case{{RowOperation::static_quantise, 37, 1344}, 2, 1},
        Case{{RowOperation::static_quantise, 3, 960}, 2, 1}, Case{{RowOperation::swiglu, 3, 4096}, 1, 1},
        Case{{RowOperation::head_norm, 3, 128}, 1, 1}, Case{{RowOperation::head_norm, 401, 64}, 2, 1},
        Case{{RowOperation::head_norm, 250, 128}, 2, 1}, Case{{RowOperation::softmax, 3, 17984}, 1, 1},
        Case{{RowOperation::softmax, 1, 64}, 2, 1}));

// By name, as the command asks for them; each also in a second launch of the same kernel.
class NamedOperator : public ::testing::TestWithParam<studies::OpRequest> {};

TEST_P(NamedOperator, GivesTheReferencesValuesInTheSameTime) {
  const studies::OpRequest& request = GetParam();
  OpSetting setting{.groups = 2, .graph = true, .iterations = 2, .warmup = 1, .full = true};
  const auto run = [&] {
    if (!studies::is_collective(request.name)) return run_operator(setting, studies::operator_of(request));
    return run_collective(setting, studies::collective_of(request, 2 * setting.groups, setting.full,
                                                          hw::load_machine("cloudmatrix384")));
  };
  const OpReading full = run();
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  setting.full = false;
  const OpReading control = run();
  EXPECT_EQ(full.task_us, control.task_us);
  EXPECT_EQ(full.kernel_us, control.kernel_us);
}

studies::OpRequest named(std::string name, std::string shape, std::string type = "bf16",
                         std::string layout = "nz", int split_k = 1) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .type = std::move(type),
          .layout = std::move(layout),
          .split_k = split_k};
}

studies::OpRequest by_package(std::string name, std::string shape) {
  studies::OpRequest made = named(std::move(name), std::move(shape));
  made.algorithm = "by-package";
  return made;
}

INSTANTIATE_TEST_SUITE_P(
    All, NamedOperator,
    ::testing::Values(
        named("matmul", "3x72x160"), named("matmul", "17x48x96", "int8"),
        named("batch-matmul", "3x5x64x48", "bf16", "nd"), named("matmul", "5x200x768", "bf16", "nz", 4),
        named("gate", "9x256"), named("gate", "2x64"), named("gate", "5x256x8x32x4"),
        named("gate", "3x160x8x160x1"), named("gate", "3x96x4x24x2"), named("gate", "2x72x3x8x9"),
        named("gate", "2x1024x16x64x16"), named("gate", "2x65x1x65x1"), named("gate", "3x512x8x8x4"),
        named("softmax-gate", "3x128x4x128x1"), named("softmax-gate", "2x128"),
        named("softmax-gate", "9x256x16x16x5"), named("softmax-gate", "2x2x2x2x1"), named("rope", "5x16"),
        named("rope", "2x128"), named("rope", "9x128"), named("rope", "150x4"), named("rope", "501x2"),
        named("rope", "9x60"), named("kv-norm-rope", "9"), named("flash-attention", "1x1x16"),
        named("flash-attention", "2x3x272"), named("flash-attention", "2x2x400x128"),
        named("flash-attention", "1x3x512x384"), named("flash-attention", "1x1x656"),
        named("grouped-attention", "1x4x2x128x272"), named("grouped-attention", "2x8x1x64x400x128"),
        named("attention-backward", "1x2x1x144"), named("all-gather", "4x70016"),
        named("reduce-scatter", "3x100000"), named("all-reduce", "4x40000"), named("all-gather", "2x32"),
        // More ranks than the four AIVs, and sums that are written to all ranks.
        named("all-gather", "6x10016"), named("reduce-scatter", "5x20000"), named("all-reduce", "6x100000"),
        named("all-reduce", "3x1000000"), named("all-reduce", "9x32"),
        // Pairs of dies; with six packages on four AIVs each serves several.
        by_package("all-gather", "4x70016"), by_package("all-gather", "12x10016"),
        by_package("reduce-scatter", "4x100000"), by_package("reduce-scatter", "12x20000"),
        by_package("all-gather", "8x32"), by_package("reduce-scatter", "8x32")));

// Weights that do not add up to anything: a shape does not say it.
TEST(Op, AGateMayLeaveScoresAsTheyAre) {
  const OpSetting setting{.groups = 2, .graph = true, .iterations = 1, .warmup = 0, .full = true};
  for (const bool softmax : {false, true}) {
    reference::GateCase gate{.tokens = 3, .experts = 160, .top_groups = 3, .chosen = 6, .group = 32};
    gate.softmax = softmax;
    gate.normalised = false;
    const OpReading full = run_operator(setting, [gate] { return std::make_unique<operators::Gate>(gate); });
    EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  }
}

TEST(Op, AGateIsForWholeGroupsWithEnoughExperts) {
  const auto said = [](const char* shape) {
    return refusal([&] { run_operator({.groups = 1}, studies::operator_of(named("gate", shape))); });
  };
  EXPECT_EQ(said("1x1x1x1x1"), "gate: 1 experts; allowed: 2 to 1024");
  EXPECT_EQ(said("1x1025x1x1025x1"), "gate: 1025 experts; allowed: 2 to 1024");
  EXPECT_EQ(said("1x256x17x256x1"), "gate: 17 chosen of 256 experts; allowed: 1 to 16");
  EXPECT_EQ(said("1x5x6x5x1"), "gate: 6 chosen of 5 experts; allowed: 1 to 5");
  for (const char* shape : {"1x160x8x20x3", "1x256x8x72x3", "1x200x8x16x8", "1x576x8x8x8"})
    EXPECT_THAT(said(shape), ::testing::HasSubstr("allowed: none, or at most 64 whole groups"));
  EXPECT_EQ(said("1x256x9x8x1"),
            "gate: 9 chosen out of 1 groups of 8 experts; allowed: at most as many as these have");
}

// By how long a die's bytes take to leave it, and what a further exchange takes.
TEST(Op, AnAllReduceChoosesItsAlgorithmBySize) {
  const auto algorithm = [](const char* shape, const Changes& changes = {}) {
    return studies::collective_of(named("all-reduce", shape), 48, false,
                                  hw::load_machine("cloudmatrix384", changes))
        .algorithm;
  };
  EXPECT_EQ(algorithm("8x16384"), "one-shot");
  EXPECT_EQ(algorithm("8x16777216"), "reduce-scatter + all-gather");
  EXPECT_EQ(algorithm("2x16777216"), "one-shot") << "nothing to spare between two";
  EXPECT_EQ(algorithm("64x64"), "reduce-scatter + all-gather") << "more ranks than AIVs";
  EXPECT_EQ(algorithm("8x65536"), "one-shot");
  EXPECT_EQ(algorithm("8x65536", {"ub.controller.write_interval=37ns"}), "reduce-scatter + all-gather");
}

TEST(Op, AnAllGatherGoesByPackageWhereItIsLarge) {
  const auto algorithm = [](const char* name, const char* shape, const Changes& changes = {}) {
    return studies::collective_of(named(name, shape), 48, false, hw::load_machine("cloudmatrix384", changes))
        .algorithm;
  };
  for (const char* name : {"all-gather", "reduce-scatter"}) {
    EXPECT_EQ(algorithm(name, "16x16384"), "direct");
    EXPECT_EQ(algorithm(name, "16x4194304"), "by package");
    EXPECT_EQ(algorithm(name, "15x4194304"), "direct") << "a die without its twin";
    EXPECT_EQ(algorithm(name, "2x4194304"), "direct") << "one package";
    EXPECT_EQ(algorithm(name, "16x4194304", {"topology.dies_per_package=1"}), "direct");
    EXPECT_EQ(algorithm(name, "16x4194304", {"package_link.bandwidth=100GB/s"}), "direct");
    EXPECT_EQ(algorithm(name, "64x4194304"), "by package") << "more ranks than AIVs";
  }
}

// 2 MiB of each of eight ranks: three parts leave a die by the bus at what its cores write, then four by the
// package's link, whose packets have a header. A reduce-scatter has the link first, and its two sums read
// what came.
TEST(Op, APackageTakesItsBytesOnce) {
  const double part = 2097152;
  const double bus = 3 * part / (512e6 / 3732), link = 4 * part / (270e3 * 512 / 544);  // microseconds
  const auto kernel = [](const char* name) {
    return run_collective({.groups = 24, .graph = true},
                          studies::collective_of(named(name, "8x2097152"), 48, false,
                                                 hw::load_machine("cloudmatrix384")))
        .kernel_us;
  };
  const double gather = kernel("all-gather"), scatter = kernel("reduce-scatter");
  EXPECT_GT(gather, bus + link);
  EXPECT_LT(gather, 1.1 * (bus + link) + 10);
  EXPECT_GT(scatter, bus + link);
  EXPECT_LT(scatter, 1.5 * (bus + link) + 10);
}

// 16.8 MB on eight ranks: seven eighths of it leave a die twice, at what its cores write.
TEST(Op, ALargeAllReduceTakesWhatItsBytesTake) {
  const studies::CollectiveRun run =
      studies::collective_of(named("all-reduce", "8x2097152"), 48, false, hw::load_machine("cloudmatrix384"));
  const double kernel = run_collective({.groups = 24, .graph = true}, run).kernel_us;
  const double bytes = 2.0 * 7 / 8 * 2097152, rate = 512e6 / 3732;  // a microsecond
  EXPECT_GT(kernel, bytes / rate);
  EXPECT_LT(kernel, 1.6 * bytes / rate + 10);
}

// What a launch adds to its kernel, by the parameters of the scheduler.
TEST(Op, AGraphLaunchAddsItsHeadTailAndCompletion) {
  const RowCase row{RowOperation::quantise, 1, 2048};
  const Changes changes{"scheduler.graph_block_head=700ns", "scheduler.graph_block_tail=300ns",
                        "scheduler.completion_latency=100ns", "scalar_core.instruction_fetch=free"};
  const OpReading graph = run_rows(row, 1, {.groups = 24, .graph = true, .iterations = 3}, changes);
  EXPECT_EQ(graph.blocks, 1u);
  EXPECT_NEAR(graph.task_us - graph.kernel_us, 1.1, 1e-5);
  EXPECT_NEAR(graph.pace_us, graph.task_us, 1e-5);
  const OpReading single = run_rows(row, 1, {.groups = 24, .iterations = 3}, changes);
  EXPECT_GT(single.task_us - single.kernel_us, 11);
  EXPECT_NEAR(single.kernel_us, graph.kernel_us, 0.1);
}

// Tiles of queries that see most keys come first, so that cores end together: of 8 tiles with 1 to 8 blocks
// of keys one of two cores has 20 blocks, the other 16. A core is no faster than its cube unit multiplies,
// and at most four times slower.
TEST(Op, AttentionOfAPrefillIsDealtOutEvenly) {
  const auto time = [](int groups) {
    return run_operator({.groups = groups, .graph = true, .warmup = 0},
                        studies::operator_of({.name = "flash-attention", .shape = "1x1x1024"}))
        .kernel_us;
  };
  const double one = time(1), two = time(2);
  EXPECT_LT(two, 0.65 * one);
  // 128 x 128 x (192 + 128) in blocks of 16: cycles of a block of keys.
  const double cube = 36 * (8 * 8 * 12 + 8 * 8 * 8) / 1850.0;
  EXPECT_GT(one, cube);
  EXPECT_LT(one, 4 * cube);
}

// Behind 1,024 cached tokens eight tiles of queries see 9 to 16 blocks of keys, 100 of 136.
TEST(Op, CachedTokensOfAnAttentionHaveKeysButNoQueries) {
  const auto time = [](const char* shape) {
    return run_operator({.groups = 1, .graph = true, .warmup = 0},
                        studies::operator_of({.name = "flash-attention", .shape = shape}))
        .kernel_us;
  };
  EXPECT_NEAR(time("1x2x2048x1024") / time("1x2x2048"), 100 / 136.0, 0.02);
  EXPECT_THROW(time("1x1x1024x500"), InputError);
  EXPECT_THROW(time("1x1x1024x1024"), InputError);
}

// The copies overlap: two buffers are faster than one, and no slower than the longer of copy and compute.
TEST(Op, TwoBuffersOverlapCopiesWithTheVectorUnit) {
  const RowCase rows{RowOperation::swiglu, 16, 4096};
  const OpSetting setting{.groups = 1, .graph = true};
  EXPECT_LT(run_rows(rows, 2, setting).kernel_us, run_rows(rows, 1, setting).kernel_us * 0.8);
}

// Short rows alone go several to a tile: whole blocks of scales that fit the UBuffer, where a core has more
// than one row. The widths of the published figures go row by row.
TEST(Op, RowsOfATileAreAsManyAsFit) {
  const auto tile = [](std::uint32_t rows, std::uint32_t width, std::uint32_t buffers = 1,
                       RowOperation operation = RowOperation::quantise) {
    return operators::rows_of_tile({operation, rows, width}, buffers, 48);
  };
  EXPECT_EQ(tile(49, 2048), 8u);  // 8 x 2048 x 11.5 B, and a block for each factor, beside 4 KiB
  EXPECT_EQ(tile(49, 2112), 1u);
  EXPECT_EQ(tile(49, 1600, 2), 8u);
  EXPECT_EQ(tile(49, 1664, 2), 1u);
  EXPECT_EQ(tile(48, 1536), 1u);
  EXPECT_EQ(tile(49, 1536), 8u);
  EXPECT_EQ(tile(49, 512), 32u);
  EXPECT_EQ(tile(49, 64), 248u);
  EXPECT_EQ(tile(256, 7168), 1u);
  EXPECT_EQ(tile(49, 1984, 1, RowOperation::static_quantise), 8u);
  EXPECT_EQ(tile(49, 2048, 1, RowOperation::static_quantise), 1u);
  EXPECT_EQ(tile(49, 512, 1, RowOperation::rms_norm), 1u);
  EXPECT_EQ(tile(49, 128, 2, RowOperation::head_norm), 88u);  // 88 x (128 x 16 + 36) B beside 1 KiB
  EXPECT_EQ(tile(1, 64, 1, RowOperation::head_norm), 240u);
}

TEST(Op, TokensOfATileAreAsManyAsFit) {
  const auto tile = [](std::uint32_t tokens, std::uint32_t heads) {
    return operators::tokens_of_tile(tokens, heads, 48);
  };
  EXPECT_EQ(tile(48, 4), 1u);
  EXPECT_EQ(tile(49, 4), 27u);  // 27 x (4 x 1,536 + 1,024) B beside 1 KiB
  EXPECT_EQ(tile(49, 2), 47u);
  EXPECT_EQ(tile(49, 62), 2u);
  EXPECT_EQ(tile(49, 64), 1u);
}

// A row in a tile takes no longer than the vector unit's work on it, casts, magnitude, maximum and product of
// 24 repeats, and its two copies: nothing is started for it alone.
TEST(Op, ShortRowsCostWhatTheVectorUnitAndCopiesTake) {
  const auto time = [](std::uint32_t rows) {
    return run_rows({RowOperation::quantise, rows, 1536}, 1, {.groups = 1, .graph = true, .warmup = 0})
        .kernel_us;
  };
  const double each = (time(256) - time(32)) / 112;  // of a core's rows
  constexpr double kVector = 24 * (4 * 2 + 1 + 1 + 2.3) / 1850.0;
  constexpr double kCopies = 1536 * 3 / 50e3;  // a lone core at 50 GB/s or more
  EXPECT_GT(each, kVector);
  EXPECT_LT(each, 1.5 * (kVector + kCopies));
}

TEST(Op, RowsThatDoNotFitAreRefused) {
  EXPECT_THAT(
      [] {
        run_rows({RowOperation::head_norm, 2, 192}, 1, {.groups = 1});
      },
      ThrowsMessage<InputError>(HasSubstr("head-norm: rows of 192 elements; allowed: 64 or 128")));
  EXPECT_THAT(
      [] {
        run_rows({RowOperation::add, 2, 100}, 1, {.groups = 1});
      },
      ThrowsMessage<InputError>(HasSubstr("add: rows of 100 elements; allowed: multiples of 64")));
  EXPECT_THAT(
      [] {
        run_rows({RowOperation::rms_norm, 2, 16384}, 1, {.groups = 1});
      },
      ThrowsMessage<InputError>(HasSubstr("of the UBuffer with 1 buffers; allowed: 196608 B")));
}

}  // namespace
}  // namespace cm384::testing::op_test
