// What tiling functions of operator projects ask of the library on the host (firmware/host): shares of a
// product, structures that kernels' calls of rows take.
#include <gtest/gtest.h>

#include "tiling/tiling_api.h"

namespace cm384::tiling_test {
namespace {

using matmul_tiling::CubeFormat;
using matmul_tiling::DataType;
using matmul_tiling::MultiCoreMatmulTiling;
using matmul_tiling::TPosition;

struct Share {
  explicit Share(DataType type) { tiling.SetAType(TPosition::GM, CubeFormat::ND, type); }
  bool of(int m, int n, int k, int cores) {
    tiling.SetDim(cores);
    tiling.SetShape(m, n, k);
    tiling.SetOrgShape(m, n, k);
    return tiling.GetTiling(made) == 0;
  }
  MultiCoreMatmulTiling tiling;
  optiling::TCubeTiling made;
};
int up(int value, int by) {
  return (value + by - 1) / by;
}

// Every part is a core's, none larger than the best cut into rows and columns of parts makes it.
TEST(Tiling, PartsOfCoresCoverTheProduct) {
  for (const auto& [m, n, cores] : {std::tuple{1000, 512, 20}, {16, 16, 24}, {4096, 7168, 24}, {33, 65, 7}}) {
    Share share(DataType::DT_FLOAT16);
    ASSERT_TRUE(share.of(m, n, 256, cores));
    const int part_m = share.made.get_singleCoreM(), part_n = share.made.get_singleCoreN();
    EXPECT_EQ(up(m, part_m) * up(n, part_n), share.made.get_usedCoreNum()) << m << " " << n;
    EXPECT_LE(share.made.get_usedCoreNum(), cores);
    int best = m * n;
    for (int down = 1; down <= cores; ++down)
      best = std::min(best,
                      std::min(m, up(up(m, down), 16) * 16) * std::min(n, up(up(n, cores / down), 16) * 16));
    EXPECT_LE(part_m * part_n, best) << m << " " << n;
    EXPECT_EQ(share.made.get_singleCoreK(), 256);
    EXPECT_EQ(share.made.get_M(), m);
    EXPECT_EQ(share.made.get_Kb(), 256);
  }
}

TEST(Tiling, PiecesFitTheBuffersOrThereIsNoWay) {
  for (const auto& [type, bytes] :
       {std::pair{DataType::DT_INT8, 1}, {DataType::DT_BF16, 2}, {DataType::DT_FLOAT, 4}}) {
    Share share(type);
    ASSERT_TRUE(share.of(4096, 4096, 4096, 24));
    const int a = share.made.get_baseM() * share.made.get_baseK() * bytes;
    EXPECT_LE(2 * a, 64 << 10);
    EXPECT_LE(share.made.get_baseM() * share.made.get_baseN() * 4, 128 << 10);
    EXPECT_EQ(share.made.get_baseK() * bytes % 32, 0);
    share.tiling.SetFixSplit(256, 256, 64);
    EXPECT_FALSE(share.of(4096, 4096, 4096, 24)) << "256 KiB of sums";
  }
  Share fixed(DataType::DT_FLOAT16);
  fixed.tiling.SetFixSplit(32, 48, -1);
  fixed.tiling.SetBias(true);
  ASSERT_TRUE(fixed.of(64, 96, 64, 4));
  EXPECT_EQ(fixed.made.get_singleCoreM(), 32);
  EXPECT_EQ(fixed.made.get_singleCoreN(), 48);
  EXPECT_EQ(fixed.made.get_baseM(), 32);
  EXPECT_EQ(fixed.made.get_baseN(), 48);
  EXPECT_EQ(fixed.made.get_baseK(), 64);
  EXPECT_EQ(fixed.made.get_isBias(), 1);
  ASSERT_TRUE(fixed.of(96, 96, 64, 4)) << "parts are whole pieces";
  EXPECT_EQ(fixed.made.get_singleCoreM() % 32, 0);
  EXPECT_FALSE(fixed.of(0, 96, 64, 4));
}

// Sizes of the structures are the kernel's, fields of 4 B without gaps.
TEST(Tiling, StructuresOfRows) {
  EXPECT_EQ(sizeof(optiling::TCubeTiling), 33u * 4);
  EXPECT_EQ(sizeof(optiling::SoftMaxTiling), 16u * 4);
  EXPECT_EQ(sizeof(optiling::RmsNormTiling), 12u * 4);
  EXPECT_EQ(sizeof(optiling::LayerNormTiling), 26u * 4);
  EXPECT_EQ(sizeof(optiling::TopkTiling), 24u * 4);
  const ge::Shape rows({3, 5, 64});
  optiling::SoftMaxTiling softmax;
  AscendC::SoftMaxTilingFunc(rows, 4, 1024, softmax);
  EXPECT_EQ(softmax.get_srcM(), 15u);
  EXPECT_EQ(softmax.get_srcK(), 64u);
  AscendC::SoftMaxFlashV2TilingFunc(rows, 4, 4, 1024, softmax, true);
  EXPECT_EQ(softmax.get_srcSize(), 960u);
  optiling::RmsNormTiling rms;
  ASSERT_TRUE(AscendC::GetRmsNormTilingInfo(rows, ge::Shape({3, 5, 60}), 1024, 4, rms, false));
  EXPECT_EQ(rms.get_bLength() * rms.get_sLength(), 15u);
  EXPECT_EQ(rms.get_hLength(), 64u);
  EXPECT_EQ(rms.get_originalHLength(), 60u);
  uint32_t most = 0, least = 0;
  AscendC::GetSinMaxMinTmpSize(rows, 4u, false, most, least);
  EXPECT_GE(most, least);
  EXPECT_GT(least, 0u);
}

}  // namespace
}  // namespace cm384::tiling_test
