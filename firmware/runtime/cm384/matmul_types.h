// What Matmul<> is told: types of its operands, tiling, and the job that a vector core gives its cube core.
#pragma once

#include <type_traits>

#include "cm384/kernel.h"

namespace AscendC {

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class LayoutMode { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };
template <TPosition position, CubeFormat cube_format, typename Element, bool transposed = false,
          LayoutMode layout_mode = LayoutMode::NONE, bool shares_l1 = false>
struct MatmulType {
  static constexpr TPosition pos = position;
  static constexpr CubeFormat format = cube_format;
  static constexpr bool isTrans = transposed;
  static constexpr LayoutMode layout = layout_mode;
  static constexpr bool ibShare = shares_l1;
  using T = Element;
};
// How tiles are walked is this project's own: what is chosen here has no effect. Fields and their order are
// assumed.
enum class BatchMode { NONE = 0, BATCH_LESS_THAN_L1, BATCH_LARGE_THAN_L1, SINGLE_LARGE_THAN_L1 };
enum class IterateOrder { ORDER_M = 0, ORDER_N, UNDEF };
enum class ScheduleType { INNER_PRODUCT = 0, OUTER_PRODUCT, N_BUFFER_33 };
enum class IterateMode {
  ITERATE_MODE_ALL = 0,
  ITERATE_MODE_BATCH,
  ITERATE_MODE_N_BATCH,
  ITERATE_MODE_NORMAL
};
enum class MatmulConfigMode { CONFIG_NULL = 0, CONFIG_NORM, CONFIG_MDL, CONFIG_SPECIALMDL, CONFIG_IBSHARE };
struct MatmulConfig {
  bool doNorm = true, doBasicBlock = false, doMultiDataLoad = false;
  uint32_t basicM = 0, basicN = 0, basicK = 0;
  bool intrinsicsCheck = false, isNBatch = false, enVecND2NZ = false, doSpecialBasicBlock = false;
  uint32_t doMTE2Preload = 0, singleCoreM = 0, singleCoreN = 0, singleCoreK = 0, stepM = 0, stepN = 0,
           baseMN = 0, singleCoreMN = 0;
  bool enUnitFlag = true, isPerTensor = false, hasAntiQuantOffset = false, doIBShareNorm = false,
       doSpecialMDL = false, enableInit = true;
  BatchMode batchMode = BatchMode::NONE;
  bool enableEnd = true, enableGetTensorC = true, enableSetOrgShape = true, enableSetBias = true,
       enableSetTail = true, enableQuantVector = true, enableSetDefineData = true;
  uint32_t iterateMode = 0;
  bool enableReuse = true, enableUBReuse = true, enableL1CacheUB = false, intraBlockPartSum = false;
  IterateOrder iterateOrder = IterateOrder::UNDEF;
  ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
  bool enableDoubleCache = false, isBiasBatch = true, enableStaticPadZeros = false, isA2B2Shared = false,
       isPartialOutput = false, enableMixDualMaster = false;
};
inline constexpr MatmulConfig CFG_NORM{}, CFG_MDL{.doNorm = false, .doMultiDataLoad = true}, MM_CFG_BB{},
    CFG_IBSHARE_NORM{.doIBShareNorm = true};
// Choices of GetMMConfig.
struct MatmulShapeParams {
  uint32_t singleCoreM = 0, singleCoreN = 0, singleCoreK = 0, basicM = 0, basicN = 0, basicK = 0;
};
struct MatmulQuantParams {
  bool isPerTensor = false, hasAntiQuantOffset = false;
};
struct MatmulBatchParams {
  bool isNBatch = false;
  BatchMode batchMode = BatchMode::NONE;
  bool isBiasBatch = true;
};
struct MatmulFuncParams {
  bool intrinsicsLimit = false, enVecND2NZ = false, enableDoubleCache = false, enableL1CacheUB = false;
  uint32_t doMTE2Preload = 0;
  IterateOrder iterateOrder = IterateOrder::UNDEF;
  ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
  bool enableReuse = true, enableUBReuse = true, isPartialOutput = false;
};
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
CM384_CONFIG(GetIBShareNormConfig)
#undef CM384_CONFIG
template <MatmulConfigMode mode, typename... Choices>
CM384_INLINE constexpr MatmulConfig GetMMConfig(const Choices&...) {
  return {};
}
// What a kernel's own copy of a tile of C is given: columns of 16 (cBurstNum), 32 B of rows in each, from one
// to the next in 32 B (srcStride), elements of a row of C (dstStride), the tile's columns. Order and units
// assumed.
struct DataCopyOutParams {
  uint16_t cBurstNum;
  uint16_t burstLen;
  uint16_t srcStride;
  uint32_t dstStride;
  uint16_t oriNSize;
  bool enUnitFlag;
  uint64_t quantScalar;
  uint64_t cbufWorkspaceAddr;
};
// Functions for copies: of tiles of C to memory, each with the tile's place in it; of blocks of A and B to
// L1, as columns of blocks of 32 B, rows of which are made up to 16 (of operands that are turned on the way
// to L0 to 32, where elements have 1 B). These are given the operand's start in memory and the block's first
// row and column and its size, all in elements, of A (m x k) or B (k x n) as they are multiplied; a block of
// a transposed operand goes to L1 as it stands in memory (assumed).
template <auto DataCopyOut = nullptr, auto CopyA1 = nullptr, auto CopyB1 = nullptr>
struct MatmulCallBackFunc {
  template <auto Function>
  static constexpr bool kOwn = !is_same_v<decltype(Function), decltype(nullptr)>;
  static constexpr bool kOwnCopy = kOwn<DataCopyOut>, kOwnA = kOwn<CopyA1>, kOwnB = kOwn<CopyB1>;
  CM384_INLINE static void Copy(const __gm__ void* gm, const LocalTensor<int8_t>& co1, const void* params,
                                uint64_t tiling, uint64_t data) {
    if constexpr (kOwnCopy) DataCopyOut(gm, co1, params, tiling, data);
  }
  struct Block {
    uint32_t row, column, rows, columns;
  };
  template <bool of_a>
  CM384_INLINE static void CopyIn(const LocalTensor<int8_t>& l1, uint64_t gm, const Block& block,
                                  uint64_t tiling, uint64_t data) {
    const auto call = [&](auto copy) {
      copy(l1, reinterpret_cast<const void*>(gm), static_cast<int>(block.row), static_cast<int>(block.column),
           static_cast<int>(block.rows), static_cast<int>(block.columns), tiling, data);
    };
    if constexpr (of_a && kOwnA) call(CopyA1);
    if constexpr (!of_a && kOwnB) call(CopyB1);
  }
};
struct MatmulPolicy {};

}  // namespace AscendC

// Filled by the host. Order assumed; what stands behind baseK, but for isBias and iterateOrder, is not used.
struct TCubeTiling {
  int32_t usedCoreNum, M, N, Ka, Kb, singleCoreM, singleCoreN, singleCoreK, baseM, baseN, baseK;
  int32_t depthA1, depthB1, stepM, stepN, isBias, transLength, iterateOrder, shareMode, shareL1Size;
  int32_t shareL0CSize, shareUbSize, batchM, batchN, singleBatchM, singleBatchN, stepKa, stepKb;
  int32_t depthAL1CacheUB, depthBL1CacheUB, dbL0A, dbL0B, dbL0C;
};

namespace cm384 {

enum MatmulFlag : uint8_t {
  kTransposedA = 1,
  kTransposedB = 2,
  kAddsToC = 4,
  kQuits = 8,
  kNzA = 16,
  kNzB = 32,
  kNzC = 64
};
// Of several objects of a kernel the one that a job is of: above the bits of base_m.
inline constexpr uint32_t kObjectShift = 12;

// A line of the data cache, so that it is seen whole. Addresses in GM, sizes and pitches in elements; of NZ
// the pitch is how many rows a column of blocks has.
struct MatmulJob {
  uint64_t a, b, c, bias;  // bias 0: none
  uint32_t m, n, k, a_pitch, b_pitch, c_pitch;
  uint16_t base_m, base_n, base_k;
  uint8_t flags, sequence;
};
static_assert(sizeof(MatmulJob) == 64);

// What few jobs have: the scale that takes int32_t to C's type, and what the kernel's own copies of C are
// given.
struct MatmulMore {
  uint64_t scale;  // its bits, or where one of each column stands
  uint64_t tiling, data;
  uint32_t scales;  // 0: none, 1: one, 2: of each column
  uint32_t rest[9];
};
static_assert(sizeof(MatmulMore) == 64);

// What the cores of a group share: jobs and answers of its two vector cores, a tile for each that goes on to
// the UBuffer, and operands that come from there.
inline constexpr uint32_t kMatmulTile = 128 * 1024, kMatmulOperands = 192 * 1024;
struct MatmulSpace {
  MatmulJob job[2];
  struct {
    uint32_t sequence, rest[15];
  } done[2];
  MatmulMore more[2];
  uint8_t tile[2][kMatmulTile];
  uint8_t operand[2][kMatmulOperands];
};
static_assert(sizeof(MatmulSpace) == CM384_PROGRAM_GROUP_SPACE);

}  // namespace cm384
