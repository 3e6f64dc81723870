// Instructions of cube cores as the machine has them: copies to L1, loads to L0, MMAD, fixpipe. Offsets are
// bytes in the buffer named. cube.h has Ascend C's forms of them.
#pragma once

#include "cm384/sync.h"

namespace AscendC {

// Element type of A and B.
template <typename T>
inline constexpr int kCubeType = -1;
template <>
inline constexpr int kCubeType<int8_t> = CM384_CUBE_S8;
template <>
inline constexpr int kCubeType<int4b_t> = CM384_CUBE_S8;
template <>
inline constexpr int kCubeType<half> = CM384_CUBE_F16;
template <>
inline constexpr int kCubeType<bfloat16_t> = CM384_CUBE_BF16;
template <>
inline constexpr int kCubeType<float> = CM384_CUBE_F32;

// Sizes in elements. C starts from 0 where cmatrixInitVal is set and isBias is not; otherwise from what
// stands in L0C, or with cmatrixSource in the bias table. Order and defaults are assumed.
struct MmadParams {
  uint16_t m = 0, n = 0, k = 0;
  bool isBias = false;  // adds to C
  int32_t fmOffset = 0;
  bool enSsparse = false, enWinogradA = false, enWinogradB = false;  // not there
  uint8_t unitFlag = 0;                                              // of Fixpipe
  bool kDirectionAlign = false;                                      // without effect
  bool cmatrixSource = false;
  bool cmatrixInitVal = true;

  CM384_INLINE MmadParams() {}
  CM384_INLINE MmadParams(uint16_t rows, uint16_t columns, uint16_t depth) : m(rows), n(columns), k(depth) {}
  CM384_INLINE MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, bool adds, int32_t offset,
                          bool sparse, bool winogradA, bool winogradB)
      : m(rows),
        n(columns),
        k(depth),
        isBias(adds),
        fmOffset(offset),
        enSsparse(sparse),
        enWinogradA(winogradA),
        enWinogradB(winogradB) {}
  CM384_INLINE MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, uint8_t flag, bool from_bias,
                          bool from_zero)
      : m(rows), n(columns), k(depth), unitFlag(flag), cmatrixSource(from_bias), cmatrixInitVal(from_zero) {}
};

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

// `start`: 0 C from 0, 1 adds to C, 2 from the bias table, where it stands in bits 31:8.
template <typename T>
CM384_INLINE void Multiply(uint32_t l0c, uint32_t l0a, uint32_t l0b, const MmadParams& p, uint64_t start) {
  static_assert(kCubeType<T> >= 0);
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_MMAD, kCubeType<T>>(
      l0a | static_cast<uint64_t>(l0b) << 32, l0c | start << 32,
      p.m | static_cast<uint64_t>(p.n) << 16 | static_cast<uint64_t>(p.k) << 32 |
          static_cast<uint64_t>(kPacked<T> - 1) << 48);
}
template <typename T>
CM384_INLINE void Mmad(uint32_t l0c, uint32_t l0a, uint32_t l0b, const MmadParams& p) {
  Multiply<T>(l0c, l0a, l0b, p, p.cmatrixInitVal ? 0 : 1);
}

// C to rows in GM `pitch` bytes apart.
template <int Operation>
CM384_INLINE void Fixpipe(uint64_t gm, uint32_t l0c, uint32_t m, uint32_t n, uint64_t pitch) {
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(0, pitch);
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_FIX>(
      gm, l0c, m | static_cast<uint64_t>(n) << 16 | static_cast<uint64_t>(Operation) << 32);
}

}  // namespace AscendC
