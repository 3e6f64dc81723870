// Grade replay beside grade firmware: alone, beside a second operator, at half of HBM's bandwidth, on other
// cores and in other memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbenches/workloads/operators/die_rig.h"

namespace cm384::operators::replay_test {
namespace {

enum class Beside { nothing, a_copy_of_it };

// Time of a kernel on groups `first` to `first + count - 1`, beside the same one at grade firmware on the
// next ones.
template <class Made, class Setting>
double time_of(const Setting& setting, Grade grade, const std::shared_ptr<const npu::Recording>& recording,
               Beside beside, const std::vector<std::string>& changes, int first = 0) {
  constexpr int kCount = 12;
  DieRig rig(changes);
  host::DeviceMemory memory(rig.runtime, 0), others(rig.runtime, 0);
  others.allocate(1'000'000 * static_cast<std::uint64_t>(first));
  Made made(setting, 1), other(setting, 2);
  made.place(rig.site(memory, first, kCount));
  made.run_at(grade, recording);
  if (beside == Beside::a_copy_of_it) {
    other.place(rig.site(others, first + kCount, kCount));
    other.enqueue(rig.runtime.create_stream(0));
  }
  made.enqueue(rig.runtime.create_stream(0));
  rig.runtime.wait();
  return kernel_time(made).us();
}

template <class Made, class Setting>
void expect_near(const Setting& setting, bool tiles_follow_hbm = false) {
  const std::vector<std::string> half{"hbm.t_ccd_s=2.5ns"};
  const auto fast = recorded<Made>(setting, 12);
  const auto own = tiles_follow_hbm ? recorded<Made>(setting, 12, half) : fast;
  for (const Beside beside : {Beside::nothing, Beside::a_copy_of_it}) {
    for (const bool slow : {false, true}) {
      const std::vector<std::string> changes = slow ? half : std::vector<std::string>{};
      const auto recording = slow ? own : fast;
      const double firmware = time_of<Made>(setting, Grade::firmware, nullptr, beside, changes);
      const double replay = time_of<Made>(setting, Grade::replay, recording, beside, changes);
      EXPECT_NEAR(replay / firmware, 1, 0.03)
          << static_cast<int>(beside) << slow << ": " << firmware << " us";
    }
  }
}

TEST(Replay, OfAGemmIsNearItsFirmware) {
  expect_near<Gemm>(gemm_of(512, 2048, 2048));
}

TEST(Replay, OfAnFfnIsNearItsFirmware) {
  expect_near<Ffn>(ffn_of(128, 2048, 512), true);
}

TEST(Replay, OfAnAttentionIsNearItsFirmware) {
  expect_near<MlaAttention>(mla_of(12, 1024, 32));
}

TEST(Replay, PlaysOnOtherCoresInOtherMemory) {
  const MlaSetting setting = mla_of(12, 512, 32);
  const auto recording = recorded<MlaAttention>(setting, 12);
  const double firmware = time_of<MlaAttention>(setting, Grade::firmware, nullptr, Beside::nothing, {}, 9);
  const double replay = time_of<MlaAttention>(setting, Grade::replay, recording, Beside::nothing, {}, 9);
  EXPECT_NEAR(replay / firmware, 1, 0.03);
}

TEST(Replay, ExecutesNothingAndMovesTheSameBytes) {
  const GemmSetting setting = gemm_of(256, 1024, 1024);
  const auto recording = recorded<Gemm>(setting, 12);
  std::uint64_t bytes[2] = {}, requests[2] = {};
  for (const bool replay : {false, true}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    Gemm gemm(setting, 1);
    gemm.place(rig.site(memory, 0, 12));
    if (replay) gemm.run_at(Grade::replay, recording);
    gemm.enqueue(host::Runtime::default_stream(0));
    rig.runtime.wait();
    const npu::MemoryStatistics& s = rig.machine.die(0).memory().statistics();
    bytes[replay] = s.read_bytes + s.written_bytes;
    requests[replay] = s.reads + s.writes;
    EXPECT_EQ(rig.machine.counts().instructions == 0, replay);
  }
  EXPECT_EQ(bytes[1], bytes[0]);
  EXPECT_EQ(requests[1], requests[0]);
}

// Twice on one die, one after the other: nothing of the first is left.
TEST(Replay, PlaysAgain) {
  const GemmSetting setting = gemm_of(256, 512, 512);
  DieRig rig;
  host::DeviceMemory memory(rig.runtime, 0);
  const auto idle = std::make_shared<npu::Recording>(npu::Recording::idle(9, 1_us));
  Gemm gemm(setting, 1);
  gemm.place(rig.site(memory, 0, 3));
  gemm.run_at(Grade::replay, idle);
  for (int run = 0; run < 2; ++run) {
    gemm.enqueue(host::Runtime::default_stream(0));
    ASSERT_TRUE(rig.runtime.wait());
    EXPECT_EQ(kernel_time(gemm), 1_us + rig.parameters.scheduler.block_interval * 8);
  }
}

}  // namespace
}  // namespace cm384::operators::replay_test
