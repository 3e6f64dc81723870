// Cube cores as Ascend C has them: loads of L0, matrix multiplication, fixpipe, and copies that lay a matrix
// out. What they say of positions holds in images of cube cores (tensor.h).
#pragma once

#include "cm384/cube_core.h"
#include "cm384/data_copy.h"

namespace cm384 {

inline constexpr uint32_t kFractalBytes = 512;
inline constexpr uint32_t kAccumulatorBytes = 1024;  // of a fractal of L0C

// Elements that are only moved.
template <typename T>
inline constexpr int kMovedType = sizeof(T) == 1   ? CM384_CUBE_S8
                                  : sizeof(T) == 2 ? CM384_CUBE_F16
                                  : sizeof(T) == 4 ? CM384_CUBE_F32
                                                   : -1;

}  // namespace cm384

namespace AscendC {

// An AIV's number in its group.
CM384_INLINE int64_t GetSubBlockIdx() {
  return static_cast<int64_t>(cm384::read_csr<CM384_CSR_SUB_BLOCK>());
}

// Says in the image that it has calls of cube cores.
CM384_INLINE void UsesCube() {
  asm volatile(".set cm384_uses_cube, 1");
}

// A matrix of nValue rows of dValue elements, `srcDValue` elements apart, to NZ in L1; ndNum of them.
// Not of four values in braces, which mean DataCopyParams.
struct Nd2NzParams {
  CM384_INLINE constexpr Nd2NzParams() {}
  CM384_INLINE constexpr Nd2NzParams(uint16_t matrices, uint16_t rows, uint16_t columns,
                                     uint16_t matrixStride, uint16_t pitch, uint16_t dstColumn,
                                     uint16_t dstRow, uint16_t dstMatrix)
      : ndNum(matrices),
        nValue(rows),
        dValue(columns),
        srcNdMatrixStride(matrixStride),
        srcDValue(pitch),
        dstNzC0Stride(dstColumn),
        dstNzNStride(dstRow),
        dstNzMatrixStride(dstMatrix) {}
  uint16_t ndNum = 1;
  uint16_t nValue = 0;
  uint16_t dValue = 0;
  uint16_t srcNdMatrixStride = 0;  // elements
  uint16_t srcDValue = 0;          // elements
  uint16_t dstNzC0Stride = 0;      // 32 B, from one column of blocks to the next
  uint16_t dstNzNStride = 1;       // 32 B, from row to row
  uint16_t dstNzMatrixStride = 0;  // elements
};
template <typename T>
CM384_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p) {
  UsesCube();
  if (p.nValue == 0 || p.dValue == 0) return;
  const uint64_t bytes = BytesOf<T>(p.dValue), pitch = BytesOf<T>(p.srcDValue),
                 column = p.dstNzC0Stride * 32u;
  if (!src.allocate()) cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_L2_ALLOCATE>(0);
  for (uint32_t n = 0; n < p.ndNum; ++n) {
    const uint32_t to = static_cast<uint32_t>(dst.GetPhyAddr() + BytesOf<T>(n * p.dstNzMatrixStride));
    const uint64_t from = src.address() + BytesOf<T>(n * p.srcNdMatrixStride);
    if (p.dstNzNStride == 1) {
      CopyNd2Nz(to, from, p.nValue, bytes, pitch, column);
      continue;
    }
    for (uint32_t row = 0; row < p.nValue; ++row)
      CopyNd2Nz(to + row * p.dstNzNStride * 32u, from + row * pitch, 1, bytes, pitch, column);
  }
  if (!src.allocate()) cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_L2_ALLOCATE>(1);
}

// Fractals of 512 B. Order and types assumed.
struct LoadData2DParams {
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0;  // from the head of one to the head of the next
  uint8_t sid = 0;
  uint16_t dstGap = 0;       // from the end of one to the head of the next
  bool ifTranspose = false;  // elements of 2 B, L1 to L0
  uint8_t addrMode = 0;      // 1: the source goes down
};
// Squares of 16 x 16, of elements of 1 B 32 x 32: of a fractal of 2 B, two of the others. Gaps of the target
// count fractals from the end of the first one of a square. Units assumed.
struct LoadData2dTransposeParams {
  uint16_t startIndex = 0;  // squares
  uint8_t repeatTimes = 0;  // squares
  uint16_t srcStride = 0;   // squares, from head to head
  uint16_t dstGap = 0;      // to the next square
  uint16_t dstFracGap = 0;  // to the second fractal of the square
  uint8_t addrMode = 0;     // the source's squares follow each other upwards
};
template <int Operation, typename T>
CM384_INLINE void LoadSteps(uint64_t l0, uint64_t l1, uint32_t steps, bool transpose, int32_t l1_step,
                            uint64_t l0_step, uint64_t second = 0) {
  cm384::pipe_instruction<CM384_CLASS_CUBE, Operation, cm384::kMovedType<T>>(
      l0 | l1 << 32, static_cast<uint32_t>(l1_step) | l0_step << 32,
      steps | static_cast<uint64_t>(transpose) << 16 | second << 32);
}
template <typename T>
CM384_INLINE void LoadStepsTo(const LocalTensor<T>& dst, uint64_t l1, uint32_t steps, bool transpose,
                              int32_t l1_step, uint64_t l0_step, uint64_t second = 0) {
  if (dst.GetPosition() == TPosition::A2) {
    LoadSteps<CM384_CUBE_LOAD_2D_A, T>(dst.GetPhyAddr(), l1, steps, transpose, l1_step, l0_step, second);
  } else if (dst.GetPosition() == TPosition::B2) {
    LoadSteps<CM384_CUBE_LOAD_2D_B, T>(dst.GetPhyAddr(), l1, steps, transpose, l1_step, l0_step, second);
  } else {
    Abort("LoadData: from A1, B1 to A2, B2 alone, on cube cores: docs/ascend-c.md");
  }
}
template <typename T>
CM384_INLINE void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& p) {
  static_assert(cm384::kMovedType<T> >= 0, "LoadData: elements of 1, 2 or 4 B: docs/ascend-c.md");
  if (p.repeatTimes == 0) return;
  if (p.ifTranspose && sizeof(T) != 2)
    Abort("LoadData: ifTranspose is of elements of 2 B; LoadDataWithTranspose takes others");
  const int32_t step = static_cast<int32_t>(p.srcStride * cm384::kFractalBytes);
  LoadStepsTo(dst, src.GetPhyAddr() + p.startIndex * cm384::kFractalBytes, p.repeatTimes, p.ifTranspose,
              p.addrMode == 0 ? step : -step, (p.dstGap + 1u) * cm384::kFractalBytes);
}
template <typename T>
CM384_INLINE void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const LoadData2DParams& p) {
  if (p.repeatTimes == 0) return;
  if (p.ifTranspose || dst.GetPosition() == TPosition::A2 || dst.GetPosition() == TPosition::B2)
    Abort("LoadData: from memory to A1, B1 alone, as it is: docs/ascend-c.md");
  const int64_t step = static_cast<int64_t>(p.srcStride * cm384::kFractalBytes);
  CopyBursts<CM384_MTE_GM_TO_L1>(dst.GetPhyAddr(), src.address() + p.startIndex * cm384::kFractalBytes,
                                 cm384::kFractalBytes, p.repeatTimes,
                                 static_cast<uint64_t>(p.addrMode == 0 ? step : -step),
                                 (p.dstGap + 1u) * cm384::kFractalBytes, src.allocate());
}
template <typename T>
CM384_INLINE void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                        const LoadData2dTransposeParams& p) {
  static_assert(cm384::kMovedType<T> >= 0 && kPacked<T> == 1,
                "LoadDataWithTranspose: elements of 1, 2 or 4 B: docs/ascend-c.md");
  if (p.repeatTimes == 0) return;
  constexpr uint32_t square = sizeof(T) == 2 ? cm384::kFractalBytes : 2 * cm384::kFractalBytes;
  LoadStepsTo(dst, src.GetPhyAddr() + p.startIndex * square, p.repeatTimes, true,
              static_cast<int32_t>(p.srcStride * square), (p.dstGap + 1u) * cm384::kFractalBytes,
              (p.dstFracGap + 1u) * cm384::kFractalBytes);
}

// C = A * B, or C += A * B: fractals of A row after row, those of B row after row of k.
template <typename C, typename A, typename B>
CM384_INLINE void CheckMmad(const MmadParams& p) {
  UsesCube();
  static_assert(
      is_same_v<A, B> && kCubeType<A> >= 0 && (sizeof(A) == 1 ? is_same_v<C, int32_t> : is_same_v<C, float>),
      "Mmad: int8_t gives int32_t, as int4b_t does; half, bfloat16_t and float give float: "
      "docs/ascend-c.md");
  if (p.enSsparse || p.enWinogradA || p.enWinogradB)
    Abort("Mmad: sparse and Winograd forms are not there: docs/ascend-c.md");
}
template <typename C, typename A, typename B>
CM384_INLINE void Mmad(const LocalTensor<C>& dst, const LocalTensor<A>& fm, const LocalTensor<B>& filter,
                       const MmadParams& p) {
  CheckMmad<C, A, B>(p);
  if (p.m == 0 || p.n == 0 || p.k == 0) return;
  const uint64_t start = p.isBias || (!p.cmatrixInitVal && !p.cmatrixSource) ? 1 : p.cmatrixInitVal ? 0 : 2;
  Multiply<A>(static_cast<uint32_t>(dst.GetPhyAddr()), static_cast<uint32_t>(fm.GetPhyAddr()),
              static_cast<uint32_t>(filter.GetPhyAddr()), p, start);
}
// A bias in C2, a value for each column.
template <typename C, typename A, typename B>
CM384_INLINE void Mmad(const LocalTensor<C>& dst, const LocalTensor<A>& fm, const LocalTensor<B>& filter,
                       const LocalTensor<C>& bias, const MmadParams& p) {
  CheckMmad<C, A, B>(p);
  if (bias.GetPosition() != TPosition::C2) Abort("Mmad: a bias stands in C2: docs/ascend-c.md");
  if (p.m == 0 || p.n == 0 || p.k == 0) return;
  Multiply<A>(static_cast<uint32_t>(dst.GetPhyAddr()), static_cast<uint32_t>(fm.GetPhyAddr()),
              static_cast<uint32_t>(filter.GetPhyAddr()), p, 2 | bias.GetPhyAddr() << 8);
}

enum class CO2Layout : uint8_t { NZ = 0, ROW_MAJOR, COLUMN_MAJOR };
struct FixpipeConfig {
  CO2Layout format;
};
inline constexpr FixpipeConfig CFG_NZ{CO2Layout::NZ}, CFG_ROW_MAJOR{CO2Layout::ROW_MAJOR};
// What is there of the modes; the first one's name is assumed.
enum QuantMode_t {
  NoQuant = 0,
  F322F16 = 1,
  VREQ8 = 8,
  REQ8 = 9,
  VDEQF16 = 10,
  DEQF16 = 11,
  F322BF16 = 16,
  VQF322B8_PRE = 23,
  QF322B8_PRE = 24
};
struct FixpipeParamsV220 {
  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint16_t srcStride = 0;  // from one column of fractals to the next, in rows of 16 elements
  uint32_t dstStride = 0;  // rows: elements from row to row; NZ: 32 B from column to column
  QuantMode_t quantPre = NoQuant;
  uint64_t deqScalar = 0;  // bits of a float
  uint16_t ndNum = 1;
  uint16_t srcNdStride = 0;  // fractals
  uint16_t dstNdStride = 0;  // elements
  bool reluEn = false;
  uint8_t unitFlag = 0;
  bool isChannelSplit = false;  // NZ of float: 8 elements to a row, not 16
};

// The machine's operation; -1: no such conversion between these types.
template <typename D, typename S>
CM384_INLINE constexpr int FixpipeOperation(QuantMode_t mode) {
  constexpr bool kFloat = is_same_v<S, float>, kInteger = is_same_v<S, int32_t>;
  switch (mode) {
    case NoQuant:
      return is_same_v<D, S> && (kFloat || kInteger) ? CM384_FIX_KEEP : -1;
    case F322F16:
      return kFloat && is_same_v<D, half> ? CM384_FIX_F32_TO_F16 : -1;
    case F322BF16:
      return kFloat && is_same_v<D, bfloat16_t> ? CM384_FIX_F32_TO_BF16 : -1;
    case DEQF16:
      return kInteger && is_same_v<D, half> ? CM384_FIX_S32_TO_F16 : -1;
    case VDEQF16:
      return kInteger && is_same_v<D, half> ? CM384_FIX_S32_TO_F16_VECTOR : -1;
    case QF322B8_PRE:
      return kFloat && is_same_v<D, int8_t> ? CM384_FIX_F32_TO_S8 : -1;
    case VQF322B8_PRE:
      return kFloat && is_same_v<D, int8_t> ? CM384_FIX_F32_TO_S8_VECTOR : -1;
    case REQ8:
      return kInteger && is_same_v<D, int8_t> ? CM384_FIX_S32_TO_S8 : -1;
    case VREQ8:
      return kInteger && is_same_v<D, int8_t> ? CM384_FIX_S32_TO_S8_VECTOR : -1;
  }
  return -1;
}
// Without flags of the kernel's: pipe FIX follows what M has multiplied, and M what FIX has read (assumed).
template <HardEvent E>
CM384_INLINE void FixpipeFollows(const FixpipeParamsV220& p) {
  if (p.unitFlag == 0) return;
  SetFlag<E>(EVENT_ID7);
  WaitFlag<E>(EVENT_ID7);
}
// rs3 of the machine's fixpipe.
CM384_INLINE uint64_t FixpipeHow(const FixpipeParamsV220& p, int operation, bool nz, bool wide, bool scales) {
  return p.mSize | static_cast<uint64_t>(p.nSize) << 16 | static_cast<uint64_t>(operation) << 32 |
         static_cast<uint64_t>(p.reluEn) << 40 | static_cast<uint64_t>(nz) << 41 |
         static_cast<uint64_t>(wide) << 42 | static_cast<uint64_t>(scales) << 43;
}
template <typename D, typename S, bool kNz>
CM384_INLINE void FixpipeMatrices(const GlobalTensor<D>& dst, const LocalTensor<S>& src,
                                  const FixpipeParamsV220& p, bool scales) {
  const int operation = FixpipeOperation<D, S>(p.quantPre);
  if (operation < 0) Abort("Fixpipe: no such quantPre between these element types: docs/ascend-c.md");
  if (p.nSize == 0 || p.mSize == 0) return;
  FixpipeFollows<HardEvent::M_FIX>(p);
  const bool wide = kNz && sizeof(D) == 4 && !p.isChannelSplit;
  const uint64_t how = FixpipeHow(p, operation, kNz, wide, scales);
  if (!dst.allocate()) cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_L2_ALLOCATE>(0);
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(
      p.srcStride * 64u, kNz ? p.dstStride * 32ull : p.dstStride * static_cast<uint64_t>(sizeof(D)));
  for (uint32_t n = 0; n < (kNz ? 1u : p.ndNum); ++n) {
    const uint64_t l0c = src.GetPhyAddr() + n * p.srcNdStride * cm384::kAccumulatorBytes;
    cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_FIX>(dst.address() + n * p.dstNdStride * sizeof(D),
                                                              l0c | p.deqScalar << 32, how);
  }
  FixpipeFollows<HardEvent::FIX_M>(p);
  if (!dst.allocate()) cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_L2_ALLOCATE>(1);
}
// C to memory.
template <typename D, typename S, const FixpipeConfig& config = CFG_ROW_MAJOR>
CM384_INLINE void Fixpipe(const GlobalTensor<D>& dst, const LocalTensor<S>& src, const FixpipeParamsV220& p) {
  static_assert(config.format != CO2Layout::COLUMN_MAJOR, "Fixpipe: rows or NZ: docs/ascend-c.md");
  FixpipeMatrices<D, S, config.format == CO2Layout::NZ>(dst, src, p, false);
}
// With a scale for each column: 8 B in L1, a float in the low half. Pipe FIX takes them to its own buffer,
// between what MTE1 has before and after.
CM384_INLINE void LoadScales(const LocalTensor<uint64_t>& quant, uint32_t columns) {
  SetFlag<HardEvent::MTE1_FIX>(EVENT_ID7);
  WaitFlag<HardEvent::MTE1_FIX>(EVENT_ID7);
  PipeBarrier<PIPE_FIX>();
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_LOAD_FIXPIPE>(quant.GetPhyAddr() << 32, 0,
                                                                     PaddedBurst(columns * sizeof(uint64_t)));
  PipeBarrier<PIPE_FIX>();
  SetFlag<HardEvent::FIX_MTE1>(EVENT_ID7);
  WaitFlag<HardEvent::FIX_MTE1>(EVENT_ID7);
}
template <typename D, typename S, const FixpipeConfig& config = CFG_ROW_MAJOR>
CM384_INLINE void Fixpipe(const GlobalTensor<D>& dst, const LocalTensor<S>& src,
                          const LocalTensor<uint64_t>& quant, const FixpipeParamsV220& p) {
  static_assert(config.format != CO2Layout::COLUMN_MAJOR, "Fixpipe: rows or NZ: docs/ascend-c.md");
  LoadScales(quant, p.nSize);
  FixpipeMatrices<D, S, config.format == CO2Layout::NZ>(dst, src, p, true);
}
// C to A1 or B1, as columns of blocks of 32 B; dstStride counts 32 B.
template <typename D, typename S>
CM384_INLINE void FixpipeToL1(const LocalTensor<D>& dst, const LocalTensor<S>& src,
                              const FixpipeParamsV220& p, bool scales) {
  UsesCube();
  const int operation = FixpipeOperation<D, S>(p.quantPre);
  const bool of_columns = p.quantPre == VDEQF16 || p.quantPre == VREQ8 || p.quantPre == VQF322B8_PRE;
  if (operation < 0 || of_columns != scales)
    Abort("Fixpipe: no such quantPre between these element types to L1: docs/ascend-c.md");
  if (dst.GetPosition() != TPosition::A1 && dst.GetPosition() != TPosition::B1)
    Abort("Fixpipe: to memory, A1 and B1: docs/ascend-c.md");
  if (p.nSize == 0 || p.mSize == 0) return;
  FixpipeFollows<HardEvent::M_FIX>(p);
  const bool wide = sizeof(D) == 4 && !p.isChannelSplit;
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(p.srcStride * 64u, p.dstStride * 32ull);
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_FIX_TO_L1>(
      dst.GetPhyAddr(), src.GetPhyAddr() | p.deqScalar << 32, FixpipeHow(p, operation, true, wide, scales));
  FixpipeFollows<HardEvent::FIX_M>(p);
}
template <typename D, typename S, const FixpipeConfig& config = CFG_ROW_MAJOR>
CM384_INLINE void Fixpipe(const LocalTensor<D>& dst, const LocalTensor<S>& src, const FixpipeParamsV220& p) {
  static_assert(config.format == CO2Layout::NZ, "Fixpipe: to L1 as NZ alone: docs/ascend-c.md");
  FixpipeToL1(dst, src, p, false);
}
template <typename D, typename S, const FixpipeConfig& config = CFG_ROW_MAJOR>
CM384_INLINE void Fixpipe(const LocalTensor<D>& dst, const LocalTensor<S>& src,
                          const LocalTensor<uint64_t>& quant, const FixpipeParamsV220& p) {
  static_assert(config.format == CO2Layout::NZ, "Fixpipe: to L1 as NZ alone: docs/ascend-c.md");
  LoadScales(quant, p.nSize);
  FixpipeToL1(dst, src, p, true);
}

}  // namespace AscendC
