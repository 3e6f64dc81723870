// Read rates of 48 AIVs as ascend-facts A6 measured them, with a stand-in for the MTEs (traffic.h).
#include <gtest/gtest.h>

#include <memory>

#include "testbenches/npu_core/memory/preset.h"
#include "testbenches/npu_core/memory/traffic.h"

namespace cm384::npu::testing::memory_bandwidth_test {
namespace {

constexpr int kAivs = 48;

double rate(const MatrixRead& matrix, int cores = kAivs, const Pace& pace = {}) {
  DieMemory memory(preset_memory());
  return run(memory, cores, pace, matrix, 1_us).terabytes_per_second();
}

MatrixRead tiles(std::uint32_t rows, std::uint32_t bytes, std::uint64_t row_bytes = 24576) {
  MatrixRead m;
  m.tile_rows = rows;
  m.tile_bytes = bytes;
  m.row_bytes = row_bytes;
  m.rows_a_core = 64;
  return m;
}

TEST(MemoryBandwidth, StreamingReadsReachWhatTheDieReaches) {
  EXPECT_NEAR(rate(tiles(64, 2048)), 1.490, 1.490 * 0.05);
}

TEST(MemoryBandwidth, ShapesComeInTheirOrder) {
  const double single = rate(tiles(1, 128));
  const double strided = rate(tiles(64, 128));
  const double streaming = rate(tiles(64, 2048));
  const double unaligned = rate(tiles(64, 2048, 24574));
  EXPECT_NEAR(single, 0.551, 0.551 * 0.2);
  EXPECT_NEAR(strided, 1.368, 1.368 * 0.2);
  EXPECT_NEAR(unaligned, 1.166, 1.166 * 0.2);
  EXPECT_LT(single, unaligned);
  EXPECT_LT(unaligned, strided);
  EXPECT_LT(strided, streaming);
}

TEST(MemoryBandwidth, ThreeQuartersHits) {
  MatrixRead quarter = tiles(64, 2048);
  quarter.rows_a_core = 64;
  quarter.rounds = 4;
  Pace pace;
  pace.window = 24576;
  EXPECT_NEAR(rate(quarter, kAivs, pace), 3.41, 3.41 * 0.1);
}

TEST(MemoryBandwidth, AllHits) {
  MatrixRead quarter = tiles(64, 2048);
  quarter.rows_a_core = 64;
  DieMemory memory(preset_memory());
  Pace pace;
  pace.window = 32768;
  pace.request_cycles = 6;
  const Outcome first = run(memory, kAivs, pace, quarter, 1_us);
  const Outcome second = run(memory, kAivs, pace, quarter, 10_us + first.finish);
  EXPECT_NEAR(second.terabytes_per_second(), 5.96, 5.96 * 0.05);
}

TEST(MemoryBandwidth, CoresThatShareLines) {
  MatrixRead shared = tiles(128, 128);
  shared.rows_a_core = 128;
  shared.shared = true;
  MatrixRead rotated = shared;
  rotated.rotated = true;
  Pace pace;
  pace.window = 24576;
  EXPECT_NEAR(rate(shared, kAivs, pace), 0.636, 0.636 * 0.15);
  EXPECT_NEAR(rate(rotated, kAivs, pace), 0.982, 0.982 * 0.15);  // how far cores are apart matters
}

TEST(MemoryBandwidth, SameRunSameTimes) {
  EXPECT_EQ(rate(tiles(64, 512)), rate(tiles(64, 512)));
}

}  // namespace
}  // namespace cm384::npu::testing::memory_bandwidth_test
