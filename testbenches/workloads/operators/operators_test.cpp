// Operators on one die: several at once on cores of their own, right and no faster than alone; memory that
// others get after them; a duration in closed form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/operators/die_rig.h"
#include "traces/random.h"
#include "workloads/operators/ffn/expert_ffn.h"
#include "workloads/operators/gemm/four_bits.h"
#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/ffn_reference.h"

namespace cm384::operators::operators_test {
namespace {

template <class Made, class Setting>
Time alone(const Setting& setting, int first, int count) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  Made made(setting, 1);
  made.place(rig.site(memory, first, count));
  made.enqueue(host::Runtime::default_stream(0));
  rig.runtime.wait();
  return kernel_time(made);
}

TEST(TwoOperators, AreRightSideBySide) {
  const GemmSetting a = gemm_of(300, 512, 2048);
  const MlaSetting b = mla_of(12, 512, 16);
  DieRig rig;
  host::DeviceMemory of_gemm(rig.runtime, 0), of_mla(rig.runtime, 0);
  Gemm gemm(a, 1);
  MlaAttention mla(b, 2);
  gemm.place(rig.site(of_gemm, 0, 4, true));
  mla.place(rig.site(of_mla, 12, 12, true));
  gemm.enqueue(rig.runtime.create_stream(0));
  mla.enqueue(rig.runtime.create_stream(0));
  ASSERT_TRUE(rig.runtime.wait());
  EXPECT_LT(gemm.record().first_instruction, mla.record().last_retired);
  EXPECT_LT(mla.record().first_instruction, gemm.record().last_retired);
  EXPECT_EQ(gemm.check(), "");
  EXPECT_EQ(mla.check(), "");
}

// What moves much and what waits for it: the bandwidth of HBM is shared.
TEST(TwoOperators, TakeFromEachOther) {
  const MlaSetting b = mla_of(12, 1024, 16);
  const Time first = alone<MlaAttention>(b, 0, 12), second = alone<MlaAttention>(b, 12, 12);
  DieRig rig({"host.submit_latency=0ps"});  // both begin at once
  host::DeviceMemory memory(rig.runtime, 0);
  MlaAttention one(b, 1), other(b, 2);
  one.place(rig.site(memory, 0, 12));
  other.place(rig.site(memory, 12, 12));
  one.enqueue(rig.runtime.create_stream(0));
  other.enqueue(rig.runtime.create_stream(0));
  rig.runtime.wait();
  EXPECT_GT(kernel_time(one), first);
  EXPECT_GT(kernel_time(other), second);
  EXPECT_LT(kernel_time(one), first + second);
  EXPECT_LT(kernel_time(other), first + second);
}

TEST(TwoOperators, OfOneStreamRunOneAfterTheOther) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  Gemm one(gemm_of(16, 64, 64), 1), other(gemm_of(16, 64, 64), 2);
  one.place(rig.site(memory, 0, 2));
  other.place(rig.site(memory, 2, 2));
  const host::Stream stream = rig.runtime.create_stream(0);
  one.enqueue(stream);
  other.enqueue(stream);
  rig.runtime.wait();
  EXPECT_GT(other.record().first_instruction, one.record().last_retired);
}

TEST(Memory, OfAnOperatorThatIsDoneIsTheNextOnes) {
  DieRig rig;
  const auto run = [&](std::uint64_t seed) {
    host::DeviceMemory memory(rig.runtime, 0);
    Ffn ffn(ffn_of(20, 256, 64), seed);
    ffn.place(rig.site(memory, 0, 3, true));
    ffn.enqueue(host::Runtime::default_stream(0));
    rig.runtime.wait();
    EXPECT_EQ(ffn.check(), "");
    return memory.regions().front().address;
  };
  const std::uint64_t first = run(1);
  EXPECT_EQ(run(2), first);
  // Nothing of them is left.
  const std::uint64_t fresh = rig.runtime.allocate(0, 4096);
  EXPECT_EQ(fresh, first);
  EXPECT_THAT(rig.runtime.get<std::uint8_t>(fresh, 4096), ::testing::Each(0));
}

// Rows of INT8 with their scales, as dispatch leaves them, come out as those that a BF16 network would have.
TEST(Experts, InBf16TakeWhatDispatchSends) {
  constexpr std::uint32_t kHidden = 192, kWidth = 128;
  const std::vector<std::uint32_t> counts{3, 0, 18};
  const reference::GemmCase gate_up{1, counts, 2 * kWidth, kHidden, CM384_GEMM_BF16},
      down{2, counts, kHidden, kWidth, CM384_GEMM_BF16};
  reference::GemmInputs in = make_gemm_inputs(gate_up), behind = make_gemm_inputs(down);
  const std::uint64_t rows = gate_up.rows();
  std::vector<std::int8_t> x(rows * kHidden);
  std::vector<float> scales(rows);
  traces::Random random(3, 1);
  for (auto& element : x) element = static_cast<std::int8_t>(static_cast<int>(random.below(255)) - 127);
  for (auto& scale : scales) scale = static_cast<float>(1 + random.below(1000)) * 0x1p-16f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint16_t bits = reference::to_bf16(static_cast<float>(x[i]) * scales[i / kHidden]);
    std::memcpy(&in.a[i * 2], &bits, 2);
  }
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  const std::uint64_t most = cm384_dispatch_max_rows(1, counts.size(), 24, 1);
  cm384_dispatch dispatch{};
  dispatch.ranks = 1;
  dispatch.own_experts = static_cast<std::uint32_t>(counts.size());
  dispatch.max_tokens = 24;
  dispatch.top_k = 1;
  dispatch.expand_x = memory.allocate_lines(most * kHidden);
  dispatch.expand_scales = memory.allocate_lines(most * 4);
  dispatch.expert_token_nums = memory.allocate_lines(counts.size() * 8);
  cm384_combine combine{};
  combine.expert_x = memory.allocate_lines(most * kHidden * 2);
  ExpertFfn experts({counts, 8, kHidden, kWidth, true});
  experts.stand_between(dispatch, combine);
  experts.place(rig.site(memory, 0, 3, true));
  const std::vector<std::int64_t> numbers(counts.begin(), counts.end());
  rig.runtime.put(dispatch.expand_x, std::span<const std::int8_t>(x));
  rig.runtime.put(dispatch.expand_scales, std::span<const float>(scales));
  rig.runtime.put(dispatch.expert_token_nums, std::span<const std::int64_t>(numbers));
  write_b(rig.runtime, experts.arguments().gate_up, in.b);
  write_b(rig.runtime, experts.arguments().down, behind.b);
  experts.enqueue(host::Runtime::default_stream(0));
  ASSERT_TRUE(rig.runtime.wait());
  const auto out = rig.runtime.get<std::uint16_t>(combine.expert_x, rows * kHidden);
  EXPECT_EQ(compare_ffn_bf16(gate_up, in, down, behind, out), "");
  // The first row with all its signs turned.
  for (std::size_t i = 0; i < kHidden; ++i) in.a[i * 2 + 1] ^= std::byte{0x80};
  EXPECT_NE(compare_ffn_bf16(gate_up, in, down, behind, out), "");
}

// The network with weights of 4 bits, alone: the same reference as of INT8, to which they are weights of
// -8..7, and the same time without values. Tiles of one and of several; an expert without rows; odd numbers
// of rows; all of INT8's values, -128 among them; a width that is no multiple of what vectors take at a time.
class FourBits : public ::testing::TestWithParam<FfnSetting> {};

TEST_P(FourBits, AreWithinTheBoundsOfInt8) {
  Time times[2];
  for (const bool full : {false, true}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    Ffn ffn(GetParam(), 5);
    ffn.place(rig.site(memory, 0, 3, full));
    ffn.enqueue(host::Runtime::default_stream(0));
    ASSERT_TRUE(rig.runtime.wait());
    times[full] = kernel_time(ffn);
    if (full) {
      EXPECT_EQ(ffn.check(), "");
    }
  }
  EXPECT_EQ(times[0], times[1]);
}

FfnSetting four_bits_of(std::vector<std::uint32_t> rows, std::uint32_t hidden, std::uint32_t width) {
  FfnSetting made{std::move(rows), hidden, width};
  made.int4 = true;
  return made;
}

INSTANTIATE_TEST_SUITE_P(Shapes, FourBits,
                         ::testing::Values(four_bits_of({1}, 64, 64), four_bits_of({3, 0, 18}, 192, 128),
                                           four_bits_of({70, 1}, 1024, 320), four_bits_of({300}, 448, 192)));

// Half of the bytes of weights, and less time where these bound it.
TEST(FourBits, TakeLessTimeWhereWeightsBindIt) {
  const auto run = [](bool int4) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    FfnSetting setting{std::vector<std::uint32_t>(8, 16), 4096, 2048};
    setting.int4 = int4;
    Ffn ffn(setting, 1);
    ffn.place(rig.site(memory, 0, 24));
    ffn.enqueue(host::Runtime::default_stream(0));
    rig.runtime.wait();
    return std::pair(kernel_time(ffn).us(),
                     static_cast<double>(rig.machine.die(0).memory().statistics().read_bytes));
  };
  const auto [four_us, four_bytes] = run(true);
  const auto [eight_us, eight_bytes] = run(false);
  EXPECT_LT(four_us, 0.75 * eight_us);
  EXPECT_GT(four_us, 0.5 * eight_us);
  const double weights = 8 * 3 * 4096.0 * 2048;
  EXPECT_NEAR(eight_bytes - four_bytes, weights / 2, 0.2 * weights);
}

// The rate of the cube core for them is a parameter: with many rows it binds.
TEST(FourBits, AreMultipliedAtARateOfTheirOwn) {
  const auto time = [](const std::vector<std::string>& changes) {
    DieRig rig(changes);
    host::DeviceMemory memory(rig.runtime, 0);
    Ffn ffn(four_bits_of({512}, 2048, 512), 1);
    ffn.place(rig.site(memory, 0, 3));
    ffn.enqueue(host::Runtime::default_stream(0));
    rig.runtime.wait();
    return kernel_time(ffn).us();
  };
  EXPECT_GT(time({"cube_core.macs_per_cycle.int4=1024"}), 2.5 * time({}));
  EXPECT_EQ(time({"cube_core.macs_per_cycle.int8=4096"}), time({}));
}

TEST(Experts, OfFourBitsTakeWhatDispatchSends) {
  constexpr std::uint32_t kHidden = 192, kWidth = 128;
  const std::vector<std::uint32_t> counts{3, 0, 18};
  const reference::GemmCase gate_up{1, counts, 2 * kWidth, kHidden, CM384_GEMM_INT8, true},
      down{2, counts, kHidden, kWidth, CM384_GEMM_INT8, true};
  const reference::GemmInputs in = make_gemm_inputs(gate_up), behind = make_gemm_inputs(down);
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  const std::uint64_t most = cm384_dispatch_max_rows(1, counts.size(), 24, 1);
  cm384_dispatch dispatch{};
  dispatch.ranks = 1;
  dispatch.own_experts = static_cast<std::uint32_t>(counts.size());
  dispatch.max_tokens = 24;
  dispatch.top_k = 1;
  dispatch.expand_x = memory.allocate_lines(most * kHidden);
  dispatch.expand_scales = memory.allocate_lines(most * 4);
  dispatch.expert_token_nums = memory.allocate_lines(counts.size() * 8);
  cm384_combine combine{};
  combine.expert_x = memory.allocate_lines(most * kHidden * 2);
  ExpertFfn experts({counts, 8, kHidden, kWidth, false, true});
  experts.stand_between(dispatch, combine);
  experts.place(rig.site(memory, 0, 3, true));
  const std::vector<std::int64_t> numbers(counts.begin(), counts.end());
  rig.runtime.copy_in(dispatch.expand_x, in.a);
  rig.runtime.put(dispatch.expand_scales, std::span<const float>(in.token_scales));
  rig.runtime.put(dispatch.expert_token_nums, std::span<const std::int64_t>(numbers));
  const auto put = [&](const cm384_gemm& gemm, const reference::GemmInputs& of, std::uint64_t sums_at) {
    const std::vector<std::byte> weights = packed(of.b);
    const std::vector<float> sums = eight_times_sums(of.b, gemm.k);
    write_b(rig.runtime, gemm, weights);
    rig.runtime.put(gemm.channel_scales, std::span<const float>(of.channel_scales));
    rig.runtime.put(sums_at, std::span<const float>(sums));
  };
  put(experts.arguments().gate_up, in, experts.four_bits().gate_up_sums);
  put(experts.arguments().down, behind, experts.four_bits().down_sums);
  experts.enqueue(host::Runtime::default_stream(0));
  ASSERT_TRUE(rig.runtime.wait());
  const auto out = rig.runtime.get<std::uint16_t>(combine.expert_x, gate_up.rows() * kHidden);
  EXPECT_EQ(compare_ffn(gate_up, in, down, behind, out), "");
  EXPECT_EQ(experts.work().weights, 0.5 * 3 * 3 * kHidden * kWidth);
}

// Two in a byte, the first in the low half; 8 times the sum of each row.
TEST(FourBits, ArePackedByHand) {
  const std::vector<std::byte> weights{std::byte{1}, std::byte{0xff}, std::byte{0xf8}, std::byte{7}};
  EXPECT_EQ(packed(weights), (std::vector<std::byte>{std::byte{0xf1}, std::byte{0x78}}));
  EXPECT_EQ(eight_times_sums(weights, 2), (std::vector<float>{0, -8}));
}

TEST(Formula, TakesItsDurationAndMovesNothing) {
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  Gemm gemm(gemm_of(1024, 4096, 4096), 1);
  gemm.place(rig.site(memory, 0, 12));
  gemm.run_at(Grade::formula);
  gemm.enqueue(host::Runtime::default_stream(0));
  rig.runtime.wait();
  const Time duration = duration_of(gemm.work(), 12, rig.parameters);
  // A block dispatched after the others ends so much later.
  EXPECT_EQ(kernel_time(gemm), duration + rig.parameters.scheduler.block_interval * 35);
  EXPECT_EQ(rig.machine.counts().instructions, 0u);
}

// 2 x 1024 x 4096 x 4096 operations at half of 752 TOPS; 4 + 16 + 8 MiB at 1.6 TB/s take less.
TEST(Formula, IsThePeakOfTheCoresOrOfHbm) {
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine));
  const double operations = 2.0 * 1024 * 4096 * 4096;
  const Time trip = duration_of({}, 12, machine);
  EXPECT_GT(trip, Time{});
  const Time computing = duration_of({operations, true, 1}, 12, machine) - trip;
  EXPECT_NEAR(computing.us(), operations / (hw::peaks_of(machine).int8_tops * 1e6) * 2, 1e-5);
  const Time moving = duration_of({1, true, 1e9}, 12, machine) - trip;
  EXPECT_NEAR(moving.us(), 1e9 / static_cast<double>(hw::peaks_of(machine).hbm.bytes_per_second) * 1e6, 1e-5);
  EXPECT_EQ(duration_of({0, true, 0, 3}, 12, machine).ps, trip.ps * 3);
}

}  // namespace
}  // namespace cm384::operators::operators_test
