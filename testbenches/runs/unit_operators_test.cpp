// Operators of GPUs at grade formula, their collectives and energy: sums done by hand from published peaks,
// knobs that bind, what is refused, measurements of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text/error.h"
#include "hw/machine.h"
#include "system/observe/energy.h"
#include "system/observe/statistics_file.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/frame/published.h"
#include "workloads/studies.h"

namespace cm384::studies::unit_operators_test {
namespace {

using Words = std::vector<std::string>;

Row row_of(const Study& study, const Words& arguments, const std::string& preset, const Words& changes = {},
           observe::StatisticsFile* statistics = nullptr) {
  supernode::StudyStand stand;
  stand.machine = hw::load_machine(preset, changes);
  stand.statistics = statistics;
  StudySettings settings(study, arguments);
  settings.settle(stand.machine);
  return settings.run(stand.context()).rows.at(0);
}

double us(const Study& study, const Words& arguments, const std::string& preset = "dgx-h800",
          const Words& changes = {}, const char* field = "latency_us") {
  return *row_of(study, arguments, preset, changes)[field].real();
}

std::string refusal(const Study& study, const Words& arguments, const std::string& preset) {
  try {
    row_of(study, arguments, preset);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

// An H800: 989 and 1,979 TFLOPS, 3.35 TB/s; 3 us before a kernel, 1 us behind it, 273 ns to the memory.
constexpr double kAround = 3 + 1 + 0.273;
double products_us(double operations, double tflops) {
  return operations / (tflops * 1e6) / 0.78;
}
double memory_us(double bytes) {
  return bytes / (3.35e6 * 0.896);
}

TEST(UnitOperators, AProductByHand) {
  const double n = 8192;
  EXPECT_NEAR(us(kGemmStudy, {"--groups=1", "--m=8192", "--n=8192", "--k=8192", "--dtype=bf16"}),
              kAround + products_us(2 * n * n * n, 989), 1e-3);
  for (const char* type : {"--dtype=fp8", "--dtype=int8"})
    EXPECT_NEAR(us(kGemmStudy, {"--groups=1", "--m=8192", "--n=8192", "--k=8192", type}),
                kAround + products_us(2 * n * n * n, 1979), 1e-3);
  // One row: the weights of 7168 x 4096 bind.
  const double operands = 7168.0 * 4096 * 2 + 7168 * 2 + 4096 * 2;
  EXPECT_NEAR(us(kGemmStudy, {"--groups=1", "--m=1", "--n=4096", "--k=7168", "--dtype=bf16"}),
              kAround + memory_us(operands), 1e-3);
  EXPECT_NEAR(us(kGemmStudy, {"--groups=3", "--m=1", "--n=4096", "--k=7168", "--dtype=bf16"}),
              kAround + memory_us(3 * operands), 1e-3);
}

TEST(UnitOperators, ARowSaysWhatItIsOf) {
  const Row row =
      row_of(kGemmStudy, {"--groups=1", "--m=8192", "--n=8192", "--k=8192", "--dtype=fp8"}, "gb200-nvl72");
  EXPECT_EQ(*row["grade"].text(), "formula");
  EXPECT_DOUBLE_EQ(*row["peak_TOPS"].real(), 5000);
  const double rate = 2.0 * 8192 * 8192 * 8192 / (*row["latency_us"].real() * 1e6);
  EXPECT_NEAR(*row["TOPS"].real(), rate, 1e-9 * rate);
  EXPECT_NEAR(*row["compute_utilisation"].real(), rate / 5000, 1e-12);
  EXPECT_THAT(*row["bottleneck"].text(), ::testing::StartsWith("products: "));
  EXPECT_THAT(
      *row_of(kGemmStudy, {"--groups=1", "--m=1", "--n=8192", "--k=8192"}, "dgx-h800")["bottleneck"].text(),
      ::testing::StartsWith("memory: "));
  EXPECT_THAT(*row_of(kOpStudy, {"add", "--shape=1x64"}, "dgx-h800")["bottleneck"].text(),
              ::testing::StartsWith("launch: "));
}

TEST(UnitOperators, AttentionAndNetworksByHand) {
  // 64 sequences of 4096 latents of 576 elements, 128 heads: scores over 576, values over 512.
  const double operations = 2.0 * 64 * 4096 * 128 * (576 + 512);
  EXPECT_NEAR(us(kMlaStudy, {"--batch=64", "--kv-len=4096"}), kAround + operations / 989e6 / 0.667, 1e-3);
  // With 16 heads the cache binds, and what goes in and out.
  const double bytes = 64.0 * 4096 * 576 * 2 + 64.0 * 16 * (576 + 512) * 2;
  EXPECT_NEAR(us(kMlaStudy, {"--batch=64", "--kv-len=4096", "--heads=16"}), kAround + memory_us(bytes), 1e-3);
  // Prefill: a causal triangle of 128 + 192 elements a pair, of 4 heads.
  const double pairs = 8192.0 * 8193 / 2 * 4;
  EXPECT_NEAR(us(kOpStudy, {"flash-attention", "--shape=1x4x8192"}),
              kAround + 2 * pairs * (192 + 128) / 989e6 / 0.667, 1e-3);
  // Three kernels: three matrices of 2048 x 7168 of an expert, rows of one in INT8, out in BF16.
  EXPECT_NEAR(us(kFfnStudy, {"--experts=8", "--rows=16", "--type=fp8"}),
              3 * kAround + memory_us(8 * (3 * 2048.0 * 7168 + 16 * 3 * 7168)), 1e-3);
}

TEST(UnitOperators, RowsMoveTheirBytes) {
  const double elements = 4096.0 * 7168;
  EXPECT_NEAR(us(kOpStudy, {"add", "--shape=4096x7168"}), kAround + memory_us(3 * 2 * elements), 1e-3);
  EXPECT_NEAR(us(kOpStudy, {"swiglu", "--shape=4096x7168"}), kAround + memory_us(1.5 * 2 * elements), 2);
}

// What binds moves with its knob, and nothing else does.
TEST(UnitOperators, TwiceAPeakIsHalfOfWhatItBinds) {
  const Words large{"--groups=1", "--m=16384", "--n=16384", "--k=16384", "--dtype=bf16"};
  const Words thin{"--groups=1", "--m=1", "--n=65536", "--k=65472", "--dtype=bf16"};
  const Words long_prompt{"flash-attention", "--shape=1x16x65536"};
  const auto ratio = [](const Study& study, const Words& arguments, const std::string& change) {
    return us(study, arguments) / us(study, arguments, "dgx-h800", {change});
  };
  EXPECT_NEAR(ratio(kGemmStudy, large, "processor.bf16_tflops=1978"), 2, 0.04);
  EXPECT_NEAR(ratio(kGemmStudy, large, "processor.product_efficiency=0.39"), 0.5, 0.01);
  EXPECT_NEAR(ratio(kGemmStudy, large, "transfer_engine.memory_bandwidth=6700GB/s"), 1, 1e-9);
  EXPECT_NEAR(ratio(kGemmStudy, thin, "transfer_engine.memory_bandwidth=6700GB/s"), 2, 0.04);
  EXPECT_NEAR(ratio(kGemmStudy, thin, "processor.memory_efficiency=0.448"), 0.5, 0.01);
  EXPECT_NEAR(ratio(kGemmStudy, thin, "processor.bf16_tflops=1978"), 1, 1e-9);
  EXPECT_NEAR(ratio(kOpStudy, long_prompt, "processor.bf16_tflops=1978"), 2, 0.04);
  EXPECT_NEAR(ratio(kOpStudy, long_prompt, "processor.attention_efficiency=0.3335"), 0.5, 0.01);
  EXPECT_NEAR(ratio(kOpStudy, long_prompt, "processor.product_efficiency=0.39"), 1, 1e-9);
}

// Each to each: two rounds of seven eighths of the bytes over a GPU's links. 128 B are on the wire with 32 B
// of their header, and their acknowledgement of 20 B goes the way of others' requests.
TEST(UnitOperators, AnAllReduceIsBoundByTheLinks) {
  constexpr double kAll = 8 << 20;
  const Words large{"all-reduce", "--shape=8x8388608", "--warmup=0"}, small{"all-reduce", "--shape=8x4096"};
  const double links = 2 * 7.0 / 8 * kAll / (450e3 * 128 / 180);
  // Sums are added by units between the rounds: nine eighths of the bytes at the memory's rate.
  const double adding = 9.0 / 8 * kAll / (3.35e6 * 0.896), latencies = us(kOpStudy, small, "dgx-h100");
  const double before = us(kOpStudy, large, "dgx-h100");
  EXPECT_NEAR(before, links + adding + latencies, 0.05 * before);
  const double after = us(kOpStudy, large, "dgx-h100", {"ub.link.bandwidth=250GB/s"});
  EXPECT_NEAR((before - adding - latencies) / (after - adding - latencies), 2, 0.06);
}

TEST(UnitOperators, SmallCollectivesAreASumOfTheirLatencies) {
  const hw::Machine machine = hw::load_machine("dgx-h100");
  const double launched = (machine.processor.launch_latency + machine.processor.end_latency).us();
  const auto time = [](const char* name, const char* algorithm, const char* shape, const Words& changes) {
    return us(kOpStudy, {name, std::string("--shape=") + shape, std::string("--algorithm=") + algorithm},
              "dgx-h100", changes);
  };
  // A later poll is paid once a round: 1 of direct, 7 of a ring, 3 of halving; twice of an all-reduce.
  const Words later{"processor.poll_latency=1400ns"};
  for (const auto& [name, algorithm, rounds] :
       {std::tuple{"all-gather", "direct", 1}, std::tuple{"all-gather", "ring", 7},
        std::tuple{"all-gather", "halving", 3}, std::tuple{"all-reduce", "direct", 2},
        std::tuple{"all-reduce", "ring", 14}, std::tuple{"reduce-scatter", "halving", 3},
        std::tuple{"all-to-all", "direct", 1}}) {
    const double before = time(name, algorithm, "8x4096", {});
    EXPECT_NEAR(time(name, algorithm, "8x4096", later) - before, rounds, 0.2 * rounds) << name << algorithm;
    EXPECT_GT(before, launched + rounds * 0.4);
  }
}

// Measured by others on eight H100 (ai-dynamo/aiconfigurator): none of these was used for a parameter.
TEST(UnitOperators, MeasurementsOfOthers) {
  const auto product = [](int m, int n, int k, const char* type, const char* preset) {
    return us(kGemmStudy,
              {"--groups=1", "--m=" + std::to_string(m), "--n=" + std::to_string(n),
               "--k=" + std::to_string(k), std::string("--dtype=") + type},
              preset);
  };
  EXPECT_NEAR(product(4096, 4096, 7168, "bf16", "dgx-h100"), 310.8, 0.05 * 310.8);
  EXPECT_NEAR(product(8192, 8192, 8192, "bf16", "dgx-h100"), 1542, 0.10 * 1542);
  EXPECT_NEAR(product(1, 4096, 7168, "bf16", "dgx-h100"), 23.7, 0.05 * 23.7);
  EXPECT_NEAR(product(4096, 4096, 7168, "bf16", "gb200-nvl72"), 141.4, 0.12 * 141.4);
  EXPECT_NEAR(us(kOpStudy, {"all-reduce", "--shape=8x1048576", "--warmup=0"}, "dgx-h100"), 15.0, 0.10 * 15.0);
}

// 700 W of a device and 1,275 W all in at a product of 8192 x 8192 x 8192 in BF16; 1,200 and 1,833 W of a
// GB200.
TEST(UnitOperators, EnergyAddsUpToThePublishedPower) {
  for (const auto& [preset, device, all] :
       {std::tuple{"dgx-h800", 700.0, 1275.0}, std::tuple{"gb200-nvl72", 1200.0, 1833.0}}) {
    observe::StatisticsFile statistics(false);
    row_of(kGemmStudy, {"--groups=1", "--m=8192", "--n=8192", "--k=8192", "--dtype=bf16"}, preset, {},
           &statistics);
    const hw::Machine machine = hw::load_machine(preset);
    const observe::Energy energy = observe::energy_of(statistics.to_document("gemm")["rows"][0], machine,
                                                      observe::EnergyTable::load("default", machine));
    EXPECT_NEAR(energy.packages.value / energy.seconds, device, 0.01 * device);
    EXPECT_NEAR(energy.all.value / energy.seconds, all, 0.01 * all);
    EXPECT_LT(energy.packages.least, energy.packages.value);
    EXPECT_GT(energy.packages.most, energy.packages.value);
  }
}

// What is counted of an operator is what it takes by hand.
TEST(UnitOperators, WorkIsCounted) {
  observe::StatisticsFile statistics(false);
  row_of(kGemmStudy, {"--groups=2", "--m=64", "--n=128", "--k=256", "--dtype=fp8"}, "dgx-h800", {},
         &statistics);
  const Json totals = statistics.to_document("gemm")["rows"][0]["totals"];
  EXPECT_EQ(totals["die*.processor.operations_fp8"], 2 * 2 * 64 * 128 * 256);
  EXPECT_EQ(totals["die*.processor.operations_bf16"], 0);
  EXPECT_EQ(totals["die*.processor.memory_bytes"], 2 * (64 * 256 + 128 * 256 + 64 * 128 * 2));
  observe::StatisticsFile again(false);
  row_of(kOpStudy, {"add", "--shape=8x1024", "--iterations=5"}, "dgx-h800", {}, &again);
  EXPECT_EQ(again.to_document("op")["rows"][0]["totals"]["die*.processor.memory_bytes"], 5 * 3 * 2 * 8192);
  // Seven parts of others, the own one twice, and once written.
  observe::StatisticsFile sums(false);
  row_of(kOpStudy, {"reduce-scatter", "--shape=8x4096", "--warmup=0"}, "dgx-h800", {}, &sums);
  EXPECT_EQ(sums.to_document("op")["rows"][0]["totals"]["die*.processor.bytes"], 8 * 9 * 4096);
}

TEST(UnitOperators, RefuseWhatMeansNothing) {
  const auto starts = [](const std::string& text) { return ::testing::StartsWith(text); };
  EXPECT_THAT(refusal(kGemmStudy, {"--cores=4"}, "dgx-h800"), starts("run gemm: --cores: needs cores"));
  EXPECT_THAT(refusal(kGemmStudy, {"--payload=full"}, "dgx-h800"),
              starts("run gemm: --payload: needs cores"));
  EXPECT_THAT(refusal(kGemmStudy, {"--grade=firmware"}, "dgx-h800"),
              starts("run gemm: --grade firmware: needs cores"));
  EXPECT_EQ(refusal(kGemmStudy, {"--grade=formula"}, "dgx-h800"), "(accepted)");
  EXPECT_THAT(refusal(kFfnStudy, {"--type=w4a8"}, "dgx-h800"), starts("run ffn: --type w4a8: "));
  EXPECT_THAT(refusal(kMlaStudy, {"--stage=prolog"}, "dgx-h800"), starts("run mla: --stage prolog: "));
  EXPECT_THAT(refusal(kMlaStudy, {"--sparse=2048"}, "dgx-h800"), starts("run mla: --sparse: "));
  EXPECT_THAT(refusal(kOpStudy, {"add", "--launch=graph"}, "dgx-h800"),
              starts("run op: --launch: needs cores"));
  EXPECT_THAT(refusal(kOpStudy, {"all-reduce", "--shape=8x4096", "--path=sdma"}, "dgx-h800"),
              starts("run op: --path sdma: needs cores"));
  EXPECT_THAT(refusal(kOpStudy, {"all-reduce", "--shape=9x4096"}, "dgx-h800"),
              ::testing::HasSubstr("2 to 8 ranks"));
  EXPECT_THAT(refusal(kOpStudy, {"all-reduce", "--shape=6x4096", "--algorithm=halving"}, "dgx-h800"),
              ::testing::HasSubstr("a power of two"));
  EXPECT_THAT(refusal(kGemmStudy, {"--dtype=fp8"}, "cloudmatrix384"), starts("run gemm: --dtype fp8: "));
  EXPECT_THAT(refusal(kFfnStudy, {"--type=fp8"}, "cloudmatrix384"), starts("run ffn: --type fp8: "));
  EXPECT_THAT(refusal(kOpStudy, {"matmul", "--shape=16x16x16", "--dtype=fp8"}, "cloudmatrix384"),
              starts("run op: --dtype fp8: "));
  EXPECT_THAT(refusal(kOpStudy, {"all-reduce", "--shape=8x4096", "--path=transfer"}, "cloudmatrix384"),
              starts("run op: --path transfer: "));
  // A format whose peak is 0.
  supernode::StudyStand stand;
  stand.machine = hw::load_machine("dgx-h800", {"processor.fp8_tflops=0"});
  StudySettings settings(kGemmStudy, {"--dtype=fp8"});
  settings.settle(stand.machine);
  EXPECT_THROW(settings.run(stand.context()), InputError);
}

}  // namespace
}  // namespace cm384::studies::unit_operators_test
