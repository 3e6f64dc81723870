// What Matmul<> is told: types of its operands, tiling, and the job that a vector core gives its cube core.
#pragma once

#include <type_traits>

#include "cm384/kernel.h"

namespace AscendC {

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };  // ND alone
template <TPosition position, CubeFormat cube_format, typename Element, bool transposed = false>
struct MatmulType {
  static constexpr TPosition pos = position;
  static constexpr CubeFormat format = cube_format;
  static constexpr bool isTrans = transposed;
  using T = Element;
};
struct MatmulConfig {};
inline constexpr MatmulConfig CFG_NORM{}, CFG_MDL{}, MM_CFG_BB{}, CFG_IBSHARE_NORM{};
// How tiles are walked is this project's own.
#define CM384_CONFIG(Name)                                      \
  template <typename... Choices>                                \
  CM384_INLINE constexpr MatmulConfig Name(const Choices&...) { \
    return {};                                                  \
  }
CM384_CONFIG(GetNormalConfig)
CM384_CONFIG(GetMDLConfig)
CM384_CONFIG(GetBasicConfig)
CM384_CONFIG(GetSpecialBasicConfig)
CM384_CONFIG(GetSpecialMDLConfig)
#undef CM384_CONFIG

}  // namespace AscendC

// Filled by the host. Order assumed; what stands behind baseK, but for isBias and iterateOrder, is not used.
struct TCubeTiling {
  int32_t usedCoreNum, M, N, Ka, Kb, singleCoreM, singleCoreN, singleCoreK, baseM, baseN, baseK;
  int32_t depthA1, depthB1, stepM, stepN, isBias, transLength, iterateOrder, shareMode, shareL1Size;
  int32_t shareL0CSize, shareUbSize, batchM, batchN, singleBatchM, singleBatchN, stepKa, stepKb;
  int32_t depthAL1CacheUB, depthBL1CacheUB, dbL0A, dbL0B, dbL0C;
};

namespace cm384 {

enum MatmulFlag : uint8_t { kTransposedA = 1, kTransposedB = 2, kAddsToC = 4, kQuits = 8 };

// A line of the data cache, so that it is seen whole. Addresses in GM, sizes and pitches in elements.
struct MatmulJob {
  uint64_t a, b, c, bias;  // bias 0: none
  uint32_t m, n, k, a_pitch, b_pitch, c_pitch;
  uint16_t base_m, base_n, base_k;
  uint8_t flags, sequence;
};
static_assert(sizeof(MatmulJob) == 64);

// What the cores of a group share: jobs and answers of its two vector cores, and a tile for each that goes on
// to the UBuffer.
inline constexpr uint32_t kMatmulTile = 128 * 1024;
struct MatmulSpace {
  MatmulJob job[2];
  struct {
    uint32_t sequence, rest[15];
  } done[2];
  uint8_t tile[2][kMatmulTile];
};
static_assert(sizeof(MatmulSpace) == CM384_PROGRAM_GROUP_SPACE);

}  // namespace cm384
