// Cube cores: copies to L1, loads to L0, matrix multiplication, fixpipe. Offsets are bytes in the buffer
// named.
#pragma once

#include "cm384/sync.h"

// Which kind of core this is: a kernel of a MIX launch runs on both.
#define ASCEND_IS_AIC (cm384::read_csr<CM384_CSR_CORE_KIND>() == 1)
#define ASCEND_IS_AIV (cm384::read_csr<CM384_CSR_CORE_KIND>() == 0)

namespace AscendC {

// An AIV's number in its group.
CM384_INLINE int64_t GetSubBlockIdx() {
  return static_cast<int64_t>(cm384::read_csr<CM384_CSR_SUB_BLOCK>());
}

// Element type of A and B.
template <typename T>
inline constexpr int kCubeType = -1;
template <>
inline constexpr int kCubeType<int8_t> = CM384_CUBE_S8;
template <>
inline constexpr int kCubeType<half> = CM384_CUBE_F16;
template <>
inline constexpr int kCubeType<bfloat16_t> = CM384_CUBE_BF16;
template <>
inline constexpr int kCubeType<float> = CM384_CUBE_F32;

// Rows of `bytes` in GM, `pitch` bytes apart, to NZ in L1 whose columns of blocks are `column_bytes` apart.
CM384_INLINE void CopyNd2Nz(uint32_t l1, uint64_t gm, uint64_t rows, uint64_t bytes, uint64_t pitch,
                            uint64_t column_bytes) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(pitch, column_bytes);
  cm384::pipe_instruction<CM384_CLASS_MTE, CM384_MTE_GM_TO_L1_ND2NZ>(l1, gm, bytes | rows << 32);
}
// `count` bursts as they are.
CM384_INLINE void CopyToL1(uint32_t l1, uint64_t gm, uint64_t bytes, uint64_t count = 1,
                           uint64_t gm_stride = 0, uint64_t l1_stride = 0) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(gm_stride, l1_stride);
  cm384::pipe_instruction<CM384_CLASS_MTE, CM384_MTE_GM_TO_L1>(l1, gm, bytes | count << 32);
}

// Fractals of NZ in L1 to L0A or L0B: `rows` x `columns` blocks.
template <int Operation, typename T>
CM384_INLINE void LoadFractals(uint32_t l0, uint32_t l1, uint64_t column_bytes, uint32_t rows,
                               uint32_t columns) {
  static_assert(kCubeType<T> >= 0);
  cm384::pipe_instruction<CM384_CLASS_CUBE, Operation, kCubeType<T>>(l0 | static_cast<uint64_t>(l1) << 32,
                                                                     column_bytes, rows | columns << 16);
}
template <typename T>
CM384_INLINE void LoadA(uint32_t l0a, uint32_t l1, uint64_t column_bytes, uint32_t rows, uint32_t columns) {
  LoadFractals<CM384_CUBE_LOAD_A, T>(l0a, l1, column_bytes, rows, columns);
}
template <typename T>
CM384_INLINE void LoadB(uint32_t l0b, uint32_t l1, uint64_t column_bytes, uint32_t rows, uint32_t columns) {
  LoadFractals<CM384_CUBE_LOAD_B, T>(l0b, l1, column_bytes, rows, columns);
}
template <typename T>
CM384_INLINE void LoadBTransposed(uint32_t l0b, uint32_t l1, uint64_t column_bytes, uint32_t rows,
                                  uint32_t columns) {
  LoadFractals<CM384_CUBE_LOAD_B_TRANSPOSED, T>(l0b, l1, column_bytes, rows, columns);
}

struct MmadParams {
  uint16_t m = 0, n = 0, k = 0;
  bool cmatrixInitVal = true;  // C starts from 0; false: adds to C
};
template <typename T>
CM384_INLINE void Mmad(uint32_t l0c, uint32_t l0a, uint32_t l0b, const MmadParams& p) {
  static_assert(kCubeType<T> >= 0);
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_MMAD, kCubeType<T>>(
      l0a | static_cast<uint64_t>(l0b) << 32, l0c | static_cast<uint64_t>(p.cmatrixInitVal ? 0 : 1) << 32,
      p.m | static_cast<uint64_t>(p.n) << 16 | static_cast<uint64_t>(p.k) << 32);
}

// C to rows in GM `pitch` bytes apart.
template <int Operation>
CM384_INLINE void Fixpipe(uint64_t gm, uint32_t l0c, uint32_t m, uint32_t n, uint64_t pitch) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(0, pitch);
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_FIX>(
      gm, l0c, m | static_cast<uint64_t>(n) << 16 | static_cast<uint64_t>(Operation) << 32);
}

}  // namespace AscendC
