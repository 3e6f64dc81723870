// Copies between GM and UBuffer. GM to UBuffer runs on MTE2, UBuffer to GM on MTE3.
#pragma once

#include "cm384/sync.h"
#include "cm384/system.h"

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
// The model pads with zeros on the right, up to 32 B; a kernel that asks for other padding ends with a
// message.
template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  T paddingValue{};
};

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

template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count) {
  CopyBursts<CM384_MTE_GM_TO_UB>(dst.GetPhyAddr(), src.address(), count * sizeof(T), 1, 0, 0, src.allocate());
}
template <typename T>
CM384_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  CopyBursts<CM384_MTE_UB_TO_GM>(dst.address(), src.GetPhyAddr(), count * sizeof(T), 1, 0, 0, dst.allocate());
}
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p) {
  CopyBursts<CM384_MTE_GM_TO_UB>(dst.GetPhyAddr(), src.address(), p.blockLen * 32u, p.blockCount,
                                 (p.blockLen + p.srcStride) * 32u, (p.blockLen + p.dstStride) * 32u,
                                 src.allocate());
}
template <typename T>
CM384_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p) {
  CopyBursts<CM384_MTE_UB_TO_GM>(dst.address(), src.GetPhyAddr(), p.blockLen * 32u, p.blockCount,
                                 (p.blockLen + p.srcStride) * 32u, (p.blockLen + p.dstStride) * 32u,
                                 dst.allocate());
}
template <typename T>
CM384_INLINE void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                              const DataCopyExtParams& p, const DataCopyPadExtParams<T>& pad = {}) {
  if (pad.isPad) Abort("DataCopyPad: padding with values is not modelled: docs/ascend-c.md");
  CopyBursts<CM384_MTE_GM_TO_UB>(dst.GetPhyAddr(), src.address(), p.blockLen, p.blockCount,
                                 static_cast<uint64_t>(p.blockLen) + p.srcStride,
                                 PaddedBurst(p.blockLen) + p.dstStride * 32ull, src.allocate());
}
template <typename T>
CM384_INLINE void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                              const DataCopyExtParams& p) {
  CopyBursts<CM384_MTE_UB_TO_GM>(dst.address(), src.GetPhyAddr(), p.blockLen, p.blockCount,
                                 PaddedBurst(p.blockLen) + p.srcStride * 32ull,
                                 static_cast<uint64_t>(p.blockLen) + p.dstStride, dst.allocate());
}
// The older form, lengths in bytes too. A list in braces means the other one.
template <typename T, typename Params>
requires(is_same_v<Params, DataCopyParams>) CM384_INLINE
    void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const Params& p) {
  DataCopyPad(dst, src, DataCopyExtParams{p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0});
}

// What later copies to GM do at the target, until SetAtomicNone().
template <typename T>
CM384_INLINE void SetAtomicAdd() {
  if constexpr (is_same_v<T, int32_t> || is_same_v<T, float>) {
    cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_ATOMIC>(is_same_v<T, float> ? CM384_ATOMIC_ADD_F32
                                                                                    : CM384_ATOMIC_ADD_S32);
  } else {
    Abort("SetAtomicAdd: copies add int32_t and float only: docs/ascend-c.md");
  }
}
// Not in the machine: a kernel that gets there ends with this message.
template <typename T>
CM384_INLINE void SetAtomicMax() {
  Abort("SetAtomicMax: copies that take the larger value are not modelled: docs/ascend-c.md");
}
template <typename T>
CM384_INLINE void SetAtomicMin() {
  Abort("SetAtomicMin: copies that take the smaller value are not modelled: docs/ascend-c.md");
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
