// Copies between GM and UBuffer. GM to UBuffer runs on MTE2, UBuffer to GM on MTE3.
#pragma once

#include "cm384/sync.h"
#include "cm384/system.h"
#include "cm384/vector.h"

namespace cm384 {
// Plain copies reach the local memory that the core has: the UBuffer, or L1.
#ifdef __DAV_C220_CUBE__
inline constexpr int kCopyIn = CM384_MTE_GM_TO_L1, kCopyOut = CM384_MTE_L1_TO_GM;
#else
inline constexpr int kCopyIn = CM384_MTE_GM_TO_UB, kCopyOut = CM384_MTE_UB_TO_GM;
#endif
}  // namespace cm384

namespace AscendC {

// Lengths and gaps in 32 B blocks; gaps are from the end of a burst to the start of the next.
struct DataCopyParams {
  uint16_t blockCount = 1;
  uint16_t blockLen = 0;
  uint16_t srcStride = 0;
  uint16_t dstStride = 0;
};
// Length in bytes. Gaps from end to start: on the GM side in bytes, on the UBuffer side in 32 B blocks (after
// the padded burst).
struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;
  uint32_t srcStride = 0;
  uint32_t dstStride = 0;
  uint32_t rsv = 0;
};
// Without isPad a burst is filled up to 32 B with zeros (the part repeats its first element); with it the
// value stands left and right of it and fills it up. Paddings count elements, at most 32 B each.
template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  T paddingValue{};
};

// Of the older form; types assumed.
struct DataCopyPadParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  uint64_t paddingValue = 0;
};

// What fills bursts of DataCopyPad that do not say so themselves, left and right of them too; each source of
// a kernel has its own. Before the first SetPadValue: zeros.
#ifdef CM384_MASK_MODES
static uint32_t cm384_pad_bytes = 0, cm384_pad_value = 0;
template <typename T, TPosition position = TPosition::MAX>
CM384_INLINE void SetPadValue(T value) {
  static_assert(sizeof(T) <= 4, "SetPadValue: of elements of 4 B and less: docs/ascend-c.md");
  static_assert(position == TPosition::MAX || position == TPosition::VECIN || position == TPosition::VECOUT,
                "SetPadValue: of the UBuffer: docs/ascend-c.md");
  cm384_pad_bytes = sizeof(T);
  cm384_pad_value = 0;
  __builtin_memcpy(&cm384_pad_value, &value, sizeof(T));
}
#else
inline constexpr uint32_t cm384_pad_bytes = 0, cm384_pad_value = 0;
#endif

CM384_INLINE uint64_t PaddedBurst(uint64_t bytes) {
  return (bytes + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
}

// The instruction itself: `count` bursts of `bytes`, strides from start to start in bytes.
template <int Operation>
CM384_INLINE void CopyBursts(uint64_t destination, uint64_t source, uint64_t bytes, uint64_t count = 1,
                             uint64_t source_stride = 0, uint64_t destination_stride = 0,
                             bool allocate = true) {
  if (!allocate) cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_L2_ALLOCATE>(0);
  if (count != 1)
    cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(source_stride, destination_stride);
  cm384::pipe_instruction<CM384_CLASS_MTE, Operation>(destination, source, bytes | count << 32);
  if (!allocate) cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_L2_ALLOCATE>(1);
}

// Of the form with a count: the part moves whole blocks.
inline constexpr const char* kWholeBlocks =
    "DataCopy: the count is no whole number of blocks of 32 B, which DataCopyPad takes";
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count) {
  Cm384Ensure(count * sizeof(T) / kPacked<T> % ONE_BLK_SIZE == 0, kWholeBlocks);
  CopyBursts<cm384::kCopyIn>(dst.GetPhyAddr(), src.address(), count * sizeof(T) / kPacked<T>, 1, 0, 0,
                             src.allocate());
}
template <typename T>
CM384_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  Cm384Ensure(count * sizeof(T) / kPacked<T> % ONE_BLK_SIZE == 0, kWholeBlocks);
  CopyBursts<cm384::kCopyOut>(dst.address(), src.GetPhyAddr(), count * sizeof(T) / kPacked<T>, 1, 0, 0,
                              dst.allocate());
}
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p) {
  CopyBursts<cm384::kCopyIn>(dst.GetPhyAddr(), src.address(), p.blockLen * 32u, p.blockCount,
                             (p.blockLen + p.srcStride) * 32u, (p.blockLen + p.dstStride) * 32u,
                             src.allocate());
}
template <typename T>
CM384_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p) {
  CopyBursts<cm384::kCopyOut>(dst.address(), src.GetPhyAddr(), p.blockLen * 32u, p.blockCount,
                              (p.blockLen + p.srcStride) * 32u, (p.blockLen + p.dstStride) * 32u,
                              dst.allocate());
}
enum class PaddingMode : uint8_t { Normal = 0, Compact };
template <typename T, PaddingMode mode = PaddingMode::Normal>
CM384_INLINE void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                              const DataCopyExtParams& p, const DataCopyPadExtParams<T>& pad = {}) {
  static_assert(mode == PaddingMode::Normal, "DataCopyPad: PaddingMode::Normal alone: docs/ascend-c.md");
  if (pad.isPad) {
    static_assert(sizeof(T) <= 4 || sizeof(T) == 8);
    if (sizeof(T) == 8) Abort("DataCopyPad: isPad with elements of 8 B: docs/ascend-c.md");
    const uint64_t left = pad.leftPadding * sizeof(T), right = pad.rightPadding * sizeof(T);
    uint32_t value = 0;
    __builtin_memcpy(&value, &pad.paddingValue, sizeof(T) < 4 ? sizeof(T) : 4);
    cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_PADDING>(left | right << 8 | sizeof(T) << 16 |
                                                                 static_cast<uint64_t>(value) << 32);
    CopyBursts<CM384_MTE_GM_TO_UB>(dst.GetPhyAddr(), src.address(), p.blockLen, p.blockCount,
                                   static_cast<uint64_t>(p.blockLen) + p.srcStride,
                                   PaddedBurst(left + p.blockLen + right) + p.dstStride * 32ull,
                                   src.allocate());
    cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_PADDING>(0);
    return;
  }
  if (cm384_pad_bytes == sizeof(T)) {
    DataCopyPadExtParams<T> filled{true, pad.leftPadding, pad.rightPadding, {}};
    __builtin_memcpy(&filled.paddingValue, &cm384_pad_value, sizeof(T) < 4 ? sizeof(T) : 4);
    return DataCopyPad(dst, src, p, filled);
  }
  CopyBursts<CM384_MTE_GM_TO_UB>(dst.GetPhyAddr(), src.address(), p.blockLen, p.blockCount,
                                 static_cast<uint64_t>(p.blockLen) + p.srcStride,
                                 PaddedBurst(p.blockLen) + p.dstStride * 32ull, src.allocate());
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
CM384_INLINE void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                              const DataCopyExtParams& p) {
  static_assert(mode == PaddingMode::Normal, "DataCopyPad: PaddingMode::Normal alone: docs/ascend-c.md");
  CopyBursts<CM384_MTE_UB_TO_GM>(dst.address(), src.GetPhyAddr(), p.blockLen, p.blockCount,
                                 PaddedBurst(p.blockLen) + p.srcStride * 32ull,
                                 static_cast<uint64_t>(p.blockLen) + p.dstStride, dst.allocate());
}
// A matrix in NZ to memory, row by row: a column of blocks of 32 B (64 B for 4 B elements) after the other.
// srcNStride: of rows in the UBuffer, in 16 elements; srcNdMatrixStride in 256; the others in elements.
struct Nz2NdParamsFull {
  CM384_INLINE constexpr Nz2NdParamsFull() {}
  CM384_INLINE constexpr Nz2NdParamsFull(uint16_t nd, uint16_t n, uint16_t d, uint16_t matrix, uint16_t rows,
                                         uint16_t pitch, uint16_t matrices)
      : ndNum(nd),
        nValue(n),
        dValue(d),
        srcNdMatrixStride(matrix),
        srcNStride(rows),
        dstDStride(pitch),
        dstNdMatrixStride(matrices) {}
  uint16_t ndNum = 1;
  uint16_t nValue = 0;
  uint16_t dValue = 0;
  uint16_t srcNdMatrixStride = 0;
  uint16_t srcNStride = 0;
  uint16_t dstDStride = 0;
  uint16_t dstNdMatrixStride = 0;
};
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const Nz2NdParamsFull& p) {
  for (uint32_t matrix = 0; matrix < p.ndNum; ++matrix) {
    for (uint32_t column = 0; column < p.dValue; column += 16) {
      const auto from = src[matrix * p.srcNdMatrixStride * 256u + column * p.srcNStride];
      const auto to = dst[static_cast<uint64_t>(matrix) * p.dstNdMatrixStride + column];
      CopyBursts<cm384::kCopyOut>(to.address(), from.GetPhyAddr(), 16 * sizeof(T), p.nValue, 16 * sizeof(T),
                                  p.dstDStride * sizeof(T), dst.allocate());
    }
  }
}
#ifdef __DAV_C220_CUBE__
// C1 to the bias table, in blocks of 64 B, or to the fixpipe's buffer, of 128 B; gaps of the source in 32 B.
template <typename T>
CM384_INLINE void CopyToTable(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p) {
  const bool bias = dst.GetPosition() == TPosition::C2;
  if (!bias && dst.GetPosition() != TPosition::C2PIPE2GM)
    Abort("DataCopy: between local buffers from C1 to C2 and C2PIPE2GM alone: docs/ascend-c.md");
  const uint64_t unit = bias ? 64 : 128, bytes = p.blockLen * unit;
  for (uint32_t block = 0; block < p.blockCount; ++block) {
    const uint64_t to = dst.GetPhyAddr() + block * (bytes + p.dstStride * unit);
    const uint64_t from = src.GetPhyAddr() + block * (bytes + p.srcStride * 32u);
    if (bias) {
      cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_LOAD_BIAS>(to | from << 32, 0, bytes);
    } else {
      cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_LOAD_FIXPIPE>(to | from << 32, 0, bytes);
    }
  }
}
#endif
// UBuffer to UBuffer, on pipe V: blocks of 32 B, gaps from the end of one to the start of the next.
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p) {
#ifdef __DAV_C220_CUBE__
  return CopyToTable(dst, src, p);
#endif
  for (uint32_t block = 0; block < p.blockCount; ++block) {
    DataCopy(dst[block * (p.blockLen + p.dstStride) * (ONE_BLK_SIZE / sizeof(T))],
             src[block * (p.blockLen + p.srcStride) * (ONE_BLK_SIZE / sizeof(T))],
             static_cast<uint32_t>(p.blockLen * ONE_BLK_SIZE / sizeof(T)));
  }
}
// The older form, lengths in bytes too. A list in braces means the other one.
template <typename T, typename Params>
requires(is_same_v<Params, DataCopyParams>) CM384_INLINE
    void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const Params& p) {
  DataCopyPad(dst, src, DataCopyExtParams{p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0});
}

template <typename T, typename Params>
requires(is_same_v<Params, DataCopyParams>) CM384_INLINE
    void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Params& p,
                     const DataCopyPadParams& pad) {
  DataCopyPadExtParams<T> ext{pad.isPad, pad.leftPadding, pad.rightPadding, {}};
  __builtin_memcpy(&ext.paddingValue, &pad.paddingValue, sizeof(T));
  DataCopyPad(dst, src, DataCopyExtParams{p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0}, ext);
}

// Pieces of a tensor along a dimension, the first one along its rows: from startIndex to endIndex, that one
// inside too, pieces of burstLen (along rows in 32 B, elsewhere 1) with `stride` elements between; the whole
// dimension has shapeValue elements. Types assumed.
struct SliceInfo {
  uint32_t startIndex = 0;
  uint32_t endIndex = 0;
  uint32_t stride = 0;
  uint32_t burstLen = 0;
  uint32_t shapeValue = 0;
};
// Walks the pieces in order, the first dimension fastest.
template <typename T>
class SliceWalk {
 public:
  CM384_INLINE SliceWalk(const SliceInfo* info, uint32_t dimensions) : info_(info), dimensions_(dimensions) {
    if (dimensions == 0 || dimensions > kMost) Abort("DataCopy: 1 to 8 dimensions of SliceInfo");
    for (uint32_t d = 0; d < dimensions; ++d) at_[d] = info[d].startIndex;
  }
  // Elements of a piece; where the piece in hand begins.
  CM384_INLINE uint32_t Length() const { return info_[0].burstLen * (ONE_BLK_SIZE / sizeof(T)); }
  CM384_INLINE uint64_t Offset() const {
    uint64_t offset = 0, pitch = 1;
    for (uint32_t d = 0; d < dimensions_; pitch *= info_[d++].shapeValue) offset += at_[d] * pitch;
    return offset;
  }
  // The next piece; false: there is none.
  CM384_INLINE bool Next() {
    for (uint32_t d = 0; d < dimensions_; ++d) {
      const uint32_t length = d == 0 ? Length() : info_[d].burstLen;
      at_[d] += length + info_[d].stride;
      if (at_[d] + length <= info_[d].endIndex + 1) return true;
      at_[d] = info_[d].startIndex;
    }
    return false;
  }

 private:
  static constexpr uint32_t kMost = 8;
  const SliceInfo* info_;
  uint32_t dimensions_, at_[kMost];
};
template <typename To, typename From>
CM384_INLINE void CopySlices(const To& dst, const From& src, const SliceInfo* dstInfo,
                             const SliceInfo* srcInfo, uint32_t dimValue) {
  using T = typename To::PrimType;
  SliceWalk<T> to(dstInfo, dimValue), from(srcInfo, dimValue);
  for (bool more = true; more;) {
    DataCopy(dst[to.Offset()], src[from.Offset()], from.Length());
    const bool also = to.Next();
    more = from.Next();
    if (also != more) Abort("DataCopy: both sides of SliceInfo have as many pieces");
  }
}
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const SliceInfo dstInfo[],
                           const SliceInfo srcInfo[], uint32_t dimValue = 1) {
  CopySlices(dst, src, dstInfo, srcInfo, dimValue);
}
template <typename T>
CM384_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const SliceInfo dstInfo[],
                           const SliceInfo srcInfo[], uint32_t dimValue = 1) {
  CopySlices(dst, src, dstInfo, srcInfo, dimValue);
}

// What later copies to GM do at the target, until SetAtomicNone(). The mode of an element type is the first
// one's plus its place.
template <typename T>
inline constexpr int kAtomicType = -1;
template <>
inline constexpr int kAtomicType<int32_t> = 0;
template <>
inline constexpr int kAtomicType<float> = 1;
template <>
inline constexpr int kAtomicType<int16_t> = 2;
template <>
inline constexpr int kAtomicType<int8_t> = 3;
template <>
inline constexpr int kAtomicType<half> = 4;
template <>
inline constexpr int kAtomicType<bfloat16_t> = 5;
template <int first, typename T>
CM384_INLINE void SetAtomicMode() {
  static_assert(kAtomicType<T> >= 0,
                "SetAtomicAdd, SetAtomicMax, SetAtomicMin: for float, half, bfloat16_t, int32_t, int16_t, "
                "int8_t: docs/ascend-c.md");
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_ATOMIC>(static_cast<uint64_t>(first + kAtomicType<T>));
}
template <typename T>
CM384_INLINE void SetAtomicAdd() {
  SetAtomicMode<CM384_ATOMIC_ADD_S32, T>();
}
template <typename T>
CM384_INLINE void SetAtomicMax() {
  SetAtomicMode<CM384_ATOMIC_MAX_S32, T>();
}
template <typename T>
CM384_INLINE void SetAtomicMin() {
  SetAtomicMode<CM384_ATOMIC_MIN_S32, T>();
}
CM384_INLINE void SetAtomicNone() {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_ATOMIC>(CM384_ATOMIC_NONE);
}

// Adds at the target, element by element (int32 or float); `count` elements.
template <typename T>
CM384_INLINE void DataCopyAtomicAdd(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  static_assert(is_same_v<T, int32_t> || is_same_v<T, float>);
  CopyBursts<is_same_v<T, float> ? CM384_MTE_UB_TO_GM_ADD_F32 : CM384_MTE_UB_TO_GM_ADD_S32>(
      dst.address(), src.GetPhyAddr(), count * sizeof(T));
}

}  // namespace AscendC
