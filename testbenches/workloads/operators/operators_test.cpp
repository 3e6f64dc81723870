// Operators on one die: several at once on cores of their own, right and no faster than alone; memory that
// others get after them; a duration in closed form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/operators/die_rig.h"

namespace cm384::operators {
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
  DieRig rig;
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
}  // namespace cm384::operators
