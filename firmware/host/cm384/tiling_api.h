// What tiling functions of operator projects ask of the library: how a product is shared out, structures that
// calls of rows take, sizes of temporaries. Written from public documentation and call sites of open
// projects; the numbers are this project's own: of the structures the kernel's calls look at sizes alone
// (firmware/runtime/cm384/rows.h, matmul_types.h), and temporaries are what those calls need.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include "cm384/operator.h"
#include "tiling/platform/platform_ascendc.h"

namespace ge {

class Shape {
 public:
  Shape() = default;
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  size_t GetDimNum() const { return dims_.size(); }
  int64_t GetDim(size_t n) const { return n < dims_.size() ? dims_[n] : 0; }
  const std::vector<int64_t>& GetDims() const { return dims_; }
  int64_t GetShapeSize() const {
    int64_t size = 1;
    for (const int64_t dim : dims_) size *= dim;
    return size;
  }

 private:
  std::vector<int64_t> dims_;
};

}  // namespace ge

// The kernel's structures of these names, field by field.
#define CM384_FIELD(name) TILING_DATA_FIELD_DEF(int32_t, name)
#define CM384_COUNT(name) TILING_DATA_FIELD_DEF(uint32_t, name)
namespace optiling {

struct TCubeTiling {
  CM384_FIELD(usedCoreNum)
  CM384_FIELD(M)
  CM384_FIELD(N)
  CM384_FIELD(Ka)
  CM384_FIELD(Kb)
  CM384_FIELD(singleCoreM)
  CM384_FIELD(singleCoreN)
  CM384_FIELD(singleCoreK)
  CM384_FIELD(baseM)
  CM384_FIELD(baseN)
  CM384_FIELD(baseK)
  CM384_FIELD(depthA1)
  CM384_FIELD(depthB1)
  CM384_FIELD(stepM)
  CM384_FIELD(stepN)
  CM384_FIELD(isBias)
  CM384_FIELD(transLength)
  CM384_FIELD(iterateOrder)
  CM384_FIELD(shareMode)
  CM384_FIELD(shareL1Size)
  CM384_FIELD(shareL0CSize)
  CM384_FIELD(shareUbSize)
  CM384_FIELD(batchM)
  CM384_FIELD(batchN)
  CM384_FIELD(singleBatchM)
  CM384_FIELD(singleBatchN)
  CM384_FIELD(stepKa)
  CM384_FIELD(stepKb)
  CM384_FIELD(depthAL1CacheUB)
  CM384_FIELD(depthBL1CacheUB)
  CM384_FIELD(dbL0A)
  CM384_FIELD(dbL0B)
  CM384_FIELD(dbL0C)
  CM384_TILING_MEMBERS
};

struct SoftMaxTiling {
  CM384_COUNT(srcM)
  CM384_COUNT(srcK)
  CM384_COUNT(srcSize)
  CM384_COUNT(outMaxM)
  CM384_COUNT(outMaxK)
  CM384_COUNT(outMaxSize)
  CM384_COUNT(splitM)
  CM384_COUNT(splitK)
  CM384_COUNT(splitSize)
  CM384_COUNT(reduceM)
  CM384_COUNT(reduceK)
  CM384_COUNT(reduceSize)
  CM384_COUNT(rangeM)
  CM384_COUNT(tailM)
  CM384_COUNT(tailSplitSize)
  CM384_COUNT(tailReduceSize)
  CM384_TILING_MEMBERS
};

using LogSoftMaxTiling = SoftMaxTiling;
struct RmsNormTiling {
  CM384_COUNT(bLength)
  CM384_COUNT(sLength)
  CM384_COUNT(hLength)
  CM384_COUNT(originalHLength)
  TILING_DATA_FIELD_DEF(float, reciprocalOfHLength)
  CM384_COUNT(mainBshLength)
  CM384_COUNT(mainBsLength)
  CM384_COUNT(mainBsLengthAlign)
  CM384_COUNT(loopRound)
  CM384_COUNT(inputTailPos)
  CM384_COUNT(tailBshLength)
  CM384_COUNT(tailBsLength)
  CM384_TILING_MEMBERS
};

struct LayerNormTiling {
  CM384_COUNT(bLength)
  CM384_COUNT(sLength)
  CM384_COUNT(hLength)
  CM384_COUNT(originalHLength)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 21, rest)
  TILING_DATA_FIELD_DEF(float, lastDimValueBack)
  CM384_TILING_MEMBERS
};

struct TopkTiling {
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 24, reserved)
  CM384_TILING_MEMBERS
};

struct PadTiling {
  CM384_COUNT(srcHeight)
  CM384_COUNT(srcWidth)
  CM384_COUNT(srcOriWidth)
  CM384_COUNT(srcSize)
  CM384_COUNT(dstHeight)
  CM384_COUNT(dstWidth)
  CM384_COUNT(dstSize)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 13, rest)
  CM384_TILING_MEMBERS
};

struct UnPadTiling {
  CM384_COUNT(srcHeight)
  CM384_COUNT(srcWidth)
  CM384_COUNT(srcSize)
  CM384_COUNT(dstHeight)
  CM384_COUNT(dstWidth)
  CM384_COUNT(dstSize)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 8, rest)
  CM384_TILING_MEMBERS
};

struct ConfusionTransposeTiling {
  CM384_COUNT(param0)
  CM384_COUNT(param1)
  CM384_COUNT(param2)
  CM384_COUNT(param3)
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 14, rest)
  CM384_TILING_MEMBERS
};

}  // namespace optiling
#undef CM384_FIELD
#undef CM384_COUNT

namespace AscendC {
namespace tiling {
using optiling::ConfusionTransposeTiling;
using optiling::LayerNormTiling;
using optiling::LogSoftMaxTiling;
using optiling::PadTiling;
using optiling::RmsNormTiling;
using optiling::SoftMaxTiling;
using optiling::TCubeTiling;
using optiling::TopkTiling;
using optiling::UnPadTiling;
}  // namespace tiling

// Rows of the last axis, elements to whole blocks of 32 B.
inline uint32_t cm384_row(const ge::Shape& shape) {
  return shape.GetDimNum() == 0 ? 1u : static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1));
}
inline uint32_t cm384_temporary(uint32_t row, uint32_t bytes) {
  return (row + 7) / 8 * 8 * bytes + 544;
}

// Of softmax, its pieces and its logarithm.
#define CM384_SOFTMAX(Name)                                                                                  \
  template <typename... Rest>                                                                                \
  uint32_t Get##Name##MaxTmpSize(const ge::Shape& shape, uint32_t, Rest...) {                                \
    return cm384_temporary(cm384_row(shape), 12);                                                            \
  }                                                                                                          \
  template <typename... Rest>                                                                                \
  uint32_t Get##Name##MinTmpSize(const ge::Shape& shape, uint32_t, Rest...) {                                \
    return cm384_temporary(cm384_row(shape), 12);                                                            \
  }                                                                                                          \
  template <typename... Rest>                                                                                \
  void Name##TilingFunc(const ge::Shape& shape, uint32_t, uint32_t, optiling::SoftMaxTiling& made,           \
                        Rest...) {                                                                           \
    cm384_softmax(shape, made);                                                                              \
  }                                                                                                          \
  template <typename... Rest>                                                                                \
  void Name##TilingFunc(const ge::Shape& shape, uint32_t, uint32_t, uint32_t, optiling::SoftMaxTiling& made, \
                        Rest...) {                                                                           \
    cm384_softmax(shape, made);                                                                              \
  }
inline void cm384_softmax(const ge::Shape& shape, optiling::SoftMaxTiling& made) {
  const uint32_t row = cm384_row(shape), all = static_cast<uint32_t>(shape.GetShapeSize());
  made.set_srcM(all / row);
  made.set_srcK(row);
  made.set_srcSize(all);
}
CM384_SOFTMAX(SoftMax)
CM384_SOFTMAX(SoftMaxFlashV2)
CM384_SOFTMAX(LogSoftMax)
CM384_SOFTMAX(SoftMaxGrad)
#undef CM384_SOFTMAX

// Shapes of [b, s, h], of which the last axis may be padded.
template <typename Tiling>
bool cm384_rows_of(const ge::Shape& shape, const ge::Shape& original, Tiling& made) {
  if (shape.GetDimNum() != 3) return false;
  made.set_bLength(static_cast<uint32_t>(shape.GetDim(0)));
  made.set_sLength(static_cast<uint32_t>(shape.GetDim(1)));
  made.set_hLength(static_cast<uint32_t>(shape.GetDim(2)));
  made.set_originalHLength(cm384_row(original));
  return true;
}
inline bool GetRmsNormMaxMinTmpSize(const ge::Shape& shape, uint32_t, uint32_t& most, uint32_t& least,
                                    bool = false) {
  most = least = cm384_temporary(cm384_row(shape), 12);
  return true;
}
inline bool GetRmsNormTilingInfo(const ge::Shape& shape, const ge::Shape& original, uint32_t, uint32_t,
                                 optiling::RmsNormTiling& made, bool = false) {
  return cm384_rows_of(shape, original, made);
}
inline void GetLayerNormMaxMinTmpSize(const ge::Shape& shape, const uint32_t, const bool, uint32_t& most,
                                      uint32_t& least) {
  most = least = cm384_temporary(cm384_row(shape), 16);
}
inline void GetLayerNormNDTilingInfo(const ge::Shape& shape, const uint32_t, const uint32_t, const bool,
                                     optiling::LayerNormTiling& made) {
  cm384_rows_of(shape, shape, made);
}
template <typename... Rest>
bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const int32_t inner, const int32_t,
                          Rest&&... rest) {
  auto given = std::forward_as_tuple(rest...);
  std::get<sizeof...(Rest) - 2>(given) = std::get<sizeof...(Rest) - 1>(given) =
      static_cast<uint32_t>(inner) * 32;
  return true;
}
template <typename... Rest>
bool TopKTilingFunc(const Rest&...) {
  return true;
}

// Rows of [height, width], of which the first originalWidth elements count.
inline void PadTilingFunc(const ge::Shape& shape, const ge::Shape& original, const uint32_t, const uint32_t,
                          optiling::PadTiling& made) {
  made.set_srcHeight(static_cast<uint32_t>(shape.GetDim(0)));
  made.set_srcWidth(cm384_row(shape));
  made.set_srcOriWidth(cm384_row(original));
  made.set_srcSize(static_cast<uint32_t>(shape.GetShapeSize()));
}
inline void UnPadTilingFunc(const ge::Shape& shape, const uint32_t, const uint32_t,
                            optiling::UnPadTiling& made) {
  made.set_srcHeight(static_cast<uint32_t>(shape.GetDim(0)));
  made.set_srcWidth(cm384_row(shape));
  made.set_srcSize(static_cast<uint32_t>(shape.GetShapeSize()));
}
inline void GetConfusionTransposeTilingInfo(const ge::Shape& shape, const uint32_t, const uint32_t,
                                            const uint32_t, optiling::ConfusionTransposeTiling& made) {
  made.set_param0(static_cast<uint32_t>(shape.GetDim(0)));
  made.set_param1(static_cast<uint32_t>(shape.GetDim(1)));
  made.set_param2(static_cast<uint32_t>(shape.GetDim(2)));
  made.set_param3(static_cast<uint32_t>(shape.GetDim(3)));
}

// Of functions on every element: the last two arguments become the largest and the smallest size.
#define CM384_TEMPORARY(Name)                                                                       \
  template <typename... Arguments>                                                                  \
  void Get##Name##MaxMinTmpSize(Arguments&&... arguments) {                                         \
    auto given = std::forward_as_tuple(arguments...);                                               \
    std::get<sizeof...(Arguments) - 2>(given) = std::get<sizeof...(Arguments) - 1>(given) = 16384u; \
  }
CM384_TEMPORARY(Acos)
CM384_TEMPORARY(Acosh)
CM384_TEMPORARY(AscendAntiQuant)
CM384_TEMPORARY(AscendDequant)
CM384_TEMPORARY(AscendQuant)
CM384_TEMPORARY(Asin)
CM384_TEMPORARY(Asinh)
CM384_TEMPORARY(Atan)
CM384_TEMPORARY(Atanh)
CM384_TEMPORARY(BroadCast)
CM384_TEMPORARY(Ceil)
CM384_TEMPORARY(ConfusionTranspose)
CM384_TEMPORARY(Pad)
CM384_TEMPORARY(UnPad)
CM384_TEMPORARY(ClampMax)
CM384_TEMPORARY(ClampMin)
CM384_TEMPORARY(Cos)
CM384_TEMPORARY(Cosh)
CM384_TEMPORARY(CumSum)
CM384_TEMPORARY(DropOut)
CM384_TEMPORARY(Erf)
CM384_TEMPORARY(Erfc)
CM384_TEMPORARY(Exp)
CM384_TEMPORARY(Floor)
CM384_TEMPORARY(Fmod)
CM384_TEMPORARY(Frac)
CM384_TEMPORARY(GeGLU)
CM384_TEMPORARY(Gelu)
CM384_TEMPORARY(Log)
CM384_TEMPORARY(Log10)
CM384_TEMPORARY(Log2)
CM384_TEMPORARY(Mean)
CM384_TEMPORARY(Power)
CM384_TEMPORARY(ReGlu)
CM384_TEMPORARY(Round)
CM384_TEMPORARY(Sigmoid)
CM384_TEMPORARY(Sign)
CM384_TEMPORARY(Silu)
CM384_TEMPORARY(Sin)
CM384_TEMPORARY(Sinh)
CM384_TEMPORARY(Sum)
CM384_TEMPORARY(SwiGLU)
CM384_TEMPORARY(Swish)
CM384_TEMPORARY(Tan)
CM384_TEMPORARY(Tanh)
CM384_TEMPORARY(Trunc)
CM384_TEMPORARY(Xor)
#undef CM384_TEMPORARY

}  // namespace AscendC

namespace matmul_tiling {

enum class TPosition {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  MAX
};
enum class CubeFormat { ND = 1, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class DataType {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_BF16 = 27,
  DT_BFLOAT16 = 27,
  DT_INT4 = 29
};
enum class MatrixTraverse { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };
enum class DequantType { SCALAR = 0, TENSOR = 1 };
enum class ScheduleType { INNER_PRODUCT = 0, OUTER_PRODUCT, N_BUFFER_33 };
struct SysTilingTempBufSize {
  int32_t ubSize = 0, l1Size = 0, l0cSize = 0;
};

// C (M x N) = A (M x K) B (K x N): parts of cores, and pieces of a part. A choice that is set stays;
// of the others parts are as even as whole pieces of 16, or of a piece that is set, allow.
class MatmulApiTilingBase {
 public:
  MatmulApiTilingBase() = default;
  explicit MatmulApiTilingBase(const platform_ascendc::PlatformAscendC&) {}

  int32_t SetAType(TPosition, CubeFormat, DataType type, bool = false) {
    type_ = type;
    return 0;
  }
  int32_t SetBType(TPosition, CubeFormat, DataType, bool = false) { return 0; }
  int32_t SetCType(TPosition, CubeFormat, DataType) { return 0; }
  int32_t SetBiasType(TPosition, CubeFormat, DataType) { return 0; }
  int32_t SetDequantType(DequantType) { return 0; }
  int32_t SetShape(int32_t m, int32_t n, int32_t k) {
    m_ = m;
    n_ = n;
    k_ = k;
    return 0;
  }
  int32_t SetOrgShape(int32_t m, int32_t n, int32_t k) { return SetOrgShape(m, n, k, k); }
  int32_t SetOrgShape(int32_t m, int32_t n, int32_t ka, int32_t kb) {
    whole_m_ = m;
    whole_n_ = n;
    whole_ka_ = ka;
    whole_kb_ = kb;
    return 0;
  }
  int32_t SetSingleShape(int32_t m, int32_t n, int32_t k) {
    single_[0] = m;
    single_[1] = n;
    single_[2] = k;
    return 0;
  }
  int32_t SetSingleRange(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) {
    return 0;
  }
  int32_t SetFixSplit(int32_t m = -1, int32_t n = -1, int32_t k = -1) {
    fixed_[0] = m;
    fixed_[1] = n;
    fixed_[2] = k;
    return 0;
  }
  int32_t SetBias(bool bias = false) {
    bias_ = bias;
    return 0;
  }
  int32_t EnableBias(bool bias = false) { return SetBias(bias); }
  int32_t SetTraverse(MatrixTraverse order) {
    by_rows_ = order == MatrixTraverse::FIRSTN;
    return 0;
  }
  // What this one does without.
  int32_t SetBufferSpace(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) { return 0; }
  int32_t SetSplitRange(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) {
    return 0;
  }
  int32_t SetDoubleBuffer(bool, bool, bool, bool, bool = true, bool = true) { return 0; }
  int32_t SetMadType(int32_t) { return 0; }
  template <typename... Choices>
  void SetMatmulConfigParams(const Choices&...) {}

  int32_t GetBaseM() const { return made_.get_baseM(); }
  int32_t GetBaseN() const { return made_.get_baseN(); }
  int32_t GetBaseK() const { return made_.get_baseK(); }

  // 0, or -1 where there is no way.
  int64_t GetTiling(optiling::TCubeTiling& tiling) {
    if (m_ <= 0 || n_ <= 0 || k_ <= 0) return -1;
    Share();
    Pieces();
    // A and B of a piece twice in L0, its sums in L0C (64, 64, 128 KiB).
    const int64_t a = int64_t{made_.get_baseM()} * made_.get_baseK() * Bytes();
    const int64_t b = int64_t{made_.get_baseN()} * made_.get_baseK() * Bytes();
    if (a > 65536 || b > 65536 || int64_t{made_.get_baseM()} * made_.get_baseN() * 4 > 131072) return -1;
    made_.set_M(whole_m_ < 0 ? m_ : whole_m_);
    made_.set_N(whole_n_ < 0 ? n_ : whole_n_);
    made_.set_Ka(whole_ka_ < 0 ? k_ : whole_ka_);
    made_.set_Kb(whole_kb_ < 0 ? k_ : whole_kb_);
    made_.set_depthA1(2);
    made_.set_depthB1(2);
    made_.set_stepM(1);
    made_.set_stepN(1);
    made_.set_stepKa(1);
    made_.set_stepKb(1);
    made_.set_dbL0A(2);
    made_.set_dbL0B(2);
    made_.set_dbL0C(1);
    made_.set_isBias(bias_ ? 1 : 0);
    made_.set_iterateOrder(by_rows_ ? 1 : 0);
    tiling = made_;
    return 0;
  }

 protected:
  static int32_t Up(int32_t value, int32_t to) { return (value + to - 1) / to * to; }
  int32_t Bytes() const { return type_ == DataType::DT_FLOAT ? 4 : type_ == DataType::DT_INT8 ? 1 : 2; }
  // Parts of `cores_` cores.
  void Share() {
    const int32_t unit_m = fixed_[0] > 0 ? fixed_[0] : 16, unit_n = fixed_[1] > 0 ? fixed_[1] : 16;
    int64_t best = 0;
    for (int32_t down = 1; down <= cores_; ++down) {
      const int32_t across = cores_ / down;
      const int32_t m = single_[0] > 0 ? single_[0] : Up((m_ + down - 1) / down, unit_m),
                    n = single_[1] > 0 ? single_[1] : Up((n_ + across - 1) / across, unit_n);
      const int64_t work = int64_t{m} * n * 4096 + m + n;  // of equal ones the squarest
      if (best != 0 && work >= best) continue;
      best = work;
      made_.set_singleCoreM(std::min(m, m_));
      made_.set_singleCoreN(std::min(n, n_));
    }
    made_.set_singleCoreK(single_[2] > 0 ? single_[2] : k_);
    const int32_t m = made_.get_singleCoreM(), n = made_.get_singleCoreN();
    made_.set_usedCoreNum(((m_ + m - 1) / m) * ((n_ + n - 1) / n));
  }
  void Pieces() {
    const int32_t row = 32 / Bytes(), deep = 128 / Bytes();
    made_.set_baseM(fixed_[0] > 0 ? fixed_[0] : std::min(Up(made_.get_singleCoreM(), 16), 128));
    made_.set_baseN(fixed_[1] > 0 ? fixed_[1]
                                  : std::min(Up(made_.get_singleCoreN(), std::max(16, row)), 128));
    made_.set_baseK(fixed_[2] > 0 ? fixed_[2] : std::min(Up(made_.get_singleCoreK(), row), deep));
  }

  DataType type_ = DataType::DT_FLOAT16;
  int32_t m_ = 0, n_ = 0, k_ = 0, whole_m_ = -1, whole_n_ = -1, whole_ka_ = -1, whole_kb_ = -1, cores_ = 1;
  int32_t single_[3] = {-1, -1, -1}, fixed_[3] = {-1, -1, -1};
  bool bias_ = false, by_rows_ = false;
  optiling::TCubeTiling made_;
};
// Of one core.
class MatmulApiTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
};
class MultiCoreMatmulTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
  // At most so many parts.
  int32_t SetDim(int32_t cores) {
    cores_ = std::max(cores, 1);
    return 0;
  }
  int32_t SetAlignSplit(int32_t, int32_t, int32_t) { return 0; }
  void EnableMultiCoreSplitK(bool) {}
  int32_t GetSingleShape(int32_t& m, int32_t& n, int32_t& k) const {
    m = made_.get_singleCoreM();
    n = made_.get_singleCoreN();
    k = made_.get_singleCoreK();
    return 0;
  }
  int32_t GetCoreNum(int32_t& cores, int32_t& down, int32_t& across) const {
    cores = made_.get_usedCoreNum();
    down = (m_ + made_.get_singleCoreM() - 1) / made_.get_singleCoreM();
    across = cores / down;
    return 0;
  }
};
class BatchMatmulTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
};

}  // namespace matmul_tiling
