// Older and rarer forms of calls of cube cores, each in terms of cube.h.
#pragma once

#include "cm384/cube.h"

namespace AscendC {

using LoadData2dParams = LoadData2DParams;

// What Fixpipe took before FixpipeParamsV220. Columns count 16, lengths 32 B; srcStride other than 0 is not
// there. Order and units assumed.
struct Nz2NdParams {
  bool nz2ndEn = false;
  uint16_t ndNum = 1;
  uint16_t srcNdStride = 0;
  uint16_t dstNdStride = 0;
  uint16_t originalNSize = 0;
};
struct QuantParams {
  QuantMode_t quantPre = NoQuant;
  uint64_t deqScalar = 0;
};
template <typename S>
struct FixpipeParams {
  CM384_INLINE FixpipeParams() {}
  CM384_INLINE FixpipeParams(uint16_t count, uint16_t length, uint16_t src, uint32_t dst)
      : cburstNum(count), burstLen(length), srcStride(src), dstStride(dst) {}
  uint16_t cburstNum = 0;
  uint16_t burstLen = 1;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  QuantParams quantParams;
  bool reluEn = false;
  Nz2NdParams nz2ndParams;
  uint8_t unitFlag = 0;
};
template <typename D, typename S>
CM384_INLINE void Fixpipe(const GlobalTensor<D>& dst, const LocalTensor<S>& src, const FixpipeParams<S>& p) {
  if (p.srcStride != 0) Abort("Fixpipe: FixpipeParams with a srcStride: docs/ascend-c.md");
  FixpipeParamsV220 made;
  made.mSize = static_cast<uint16_t>(p.burstLen * ONE_BLK_SIZE / (16 * sizeof(S)));
  made.nSize = p.nz2ndParams.nz2ndEn && p.nz2ndParams.originalNSize != 0
                   ? p.nz2ndParams.originalNSize
                   : static_cast<uint16_t>(p.cburstNum * 16);
  made.srcStride = static_cast<uint16_t>((made.mSize + 15) / 16 * 16);
  made.dstStride = p.dstStride;
  made.quantPre = p.quantParams.quantPre;
  made.deqScalar = p.quantParams.deqScalar;
  made.reluEn = p.reluEn;
  made.unitFlag = p.unitFlag;
  if (!p.nz2ndParams.nz2ndEn) return Fixpipe<D, S, CFG_NZ>(dst, src, made);
  made.ndNum = p.nz2ndParams.ndNum;
  made.srcNdStride = p.nz2ndParams.srcNdStride;
  made.dstNdStride = p.nz2ndParams.dstNdStride;
  Fixpipe<D, S, CFG_ROW_MAJOR>(dst, src, made);
}

// The copy out of L0C whose matrices and scale are a state of the core.
struct DataCopyCO12DstParams {
  uint8_t sid = 0;
  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint32_t dstStride = 0;
  uint16_t srcStride = 0;
  uint8_t unitFlag = 0;
  uint8_t clipReluPre = 0;  // not there
  uint8_t eltWiseOp = 0;    // not there
  QuantMode_t quantPre = NoQuant;
  uint8_t reluPre = 0;  // 1: negative values become 0
  bool channelSplit = false;
  bool nz2ndEn = false;
};
static FixpipeParamsV220 cm384_fixpipe_state{};
CM384_INLINE void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint16_t dstNdStride) {
  cm384_fixpipe_state.ndNum = ndNum;
  cm384_fixpipe_state.srcNdStride = srcNdStride;
  cm384_fixpipe_state.dstNdStride = dstNdStride;
}
CM384_INLINE void SetFixpipePreQuantFlag(uint64_t config) {
  cm384_fixpipe_state.deqScalar = config;
}
// Scales of the columns, from the start of the pipe's buffer, for modes that have one a column.
static bool cm384_fixpipe_scales = false;
template <typename T, bool setRelu = false>
CM384_INLINE void SetFixPipeConfig(const LocalTensor<T>& scales, bool = false) {
  static_assert(!setRelu, "SetFixPipeConfig: of quantPre alone: docs/ascend-c.md");
  if (scales.GetPosition() != TPosition::C2PIPE2GM || scales.GetPhyAddr() != 0)
    Abort("SetFixPipeConfig: scales stand at the start of C2PIPE2GM: docs/ascend-c.md");
  cm384_fixpipe_scales = true;
}
CM384_INLINE FixpipeParamsV220 Cm384FixpipeOf(const DataCopyCO12DstParams& p) {
  if (p.clipReluPre != 0 || p.eltWiseOp != 0 || p.reluPre > 1)
    Abort("DataCopy: clipReluPre, eltWiseOp and other activations are not there: docs/ascend-c.md");
  FixpipeParamsV220 made = cm384_fixpipe_state;
  made.nSize = p.nSize;
  made.mSize = p.mSize;
  made.srcStride = p.srcStride;
  made.dstStride = p.dstStride;
  made.quantPre = p.quantPre;
  made.reluEn = p.reluPre == 1;
  made.unitFlag = p.unitFlag;
  made.isChannelSplit = p.channelSplit;
  return made;
}
template <typename D, typename S, typename Params>
requires(is_same_v<Params, DataCopyCO12DstParams>) CM384_INLINE
    void DataCopy(const GlobalTensor<D>& dst, const LocalTensor<S>& src, const Params& p) {
  const FixpipeParamsV220 made = Cm384FixpipeOf(p);
  if (p.quantPre == VDEQF16 || p.quantPre == VREQ8 || p.quantPre == VQF322B8_PRE) {
    if (!cm384_fixpipe_scales) Abort("DataCopy: a mode with scales of columns, without SetFixPipeConfig");
    if (p.nz2ndEn) return FixpipeMatrices<D, S, false>(dst, src, made, true);
    return FixpipeMatrices<D, S, true>(dst, src, made, true);
  }
  if (p.nz2ndEn) {
    Fixpipe<D, S, CFG_ROW_MAJOR>(dst, src, made);
  } else {
    Fixpipe<D, S, CFG_NZ>(dst, src, made);
  }
}

// To A1 and B1, as NZ.
template <typename D, typename S, typename Params>
requires(is_same_v<Params, DataCopyCO12DstParams>) CM384_INLINE
    void DataCopy(const LocalTensor<D>& dst, const LocalTensor<S>& src, const Params& p) {
  if (p.nz2ndEn) Abort("DataCopy: CO1 to L1 as NZ alone: docs/ascend-c.md");
  FixpipeToL1(dst, src, Cm384FixpipeOf(p), cm384_fixpipe_scales && p.quantPre != NoQuant);
}

// What acts on CO1 to CO2 alone: with any other copy it is the plain one.
enum class BlockMode : uint8_t {
  BLOCK_MODE_NORMAL,
  BLOCK_MODE_MATRIX,
  BLOCK_MODE_VECTOR,
  BLOCK_MODE_SMALL_CHANNEL,
  BLOCK_MODE_DEPTHWISE
};
enum class DeqScale : uint8_t { DEQ_NONE, DEQ, VDEQ, DEQ8, VDEQ8, DEQ16, VDEQ16 };
enum class pad_t : uint8_t {
  PAD_NONE,
  PAD_MODE1,
  PAD_MODE2,
  PAD_MODE3,
  PAD_MODE4,
  PAD_MODE5,
  PAD_MODE6,
  PAD_MODE7,
  PAD_MODE8
};
struct DataCopyEnhancedParams {
  BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
  DeqScale deqScale = DeqScale::DEQ_NONE;
  uint64_t deqValue = 0;
  uint8_t sidStoreMode = 0;
  bool isRelu = false;
  pad_t padMode = pad_t::PAD_NONE;
  uint64_t padValue = 0;
  uint64_t deqTensorAddr = 0;
};
template <typename To, typename From>
CM384_INLINE void DataCopy(const To& dst, const From& src, const DataCopyParams& p,
                           const DataCopyEnhancedParams& more) {
  if (more.blockMode != BlockMode::BLOCK_MODE_NORMAL || more.deqScale != DeqScale::DEQ_NONE || more.isRelu ||
      more.padMode != pad_t::PAD_NONE)
    Abort(
        "DataCopy: DataCopyEnhancedParams other than the defaults act on CO2, which is not there: "
        "docs/ascend-c.md");
  DataCopy(dst, src, p);
}

// Three-dimensional loads: of an image, to A2. Places of padding have the padding value, rows behind the last
// output place are 0 (assumed).
struct IsResetLoad3dConfig {
  bool isSetFMatrix = true;
  bool isSetPadding = true;
};
inline constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG{};
enum class FmatrixMode : uint8_t { FMATRIX_LEFT, FMATRIX_RIGHT };
template <typename T>
struct LoadData3DParamsV2 {
  LoadData3DParamsV2() = default;
  CM384_INLINE LoadData3DParamsV2(const uint8_t padding[4], uint16_t height, uint16_t width,
                                  uint16_t channels, uint16_t columns, uint16_t rows, uint16_t firstColumn,
                                  uint16_t firstRow, uint8_t stepW, uint8_t stepH, uint8_t ofW, uint8_t ofH,
                                  uint8_t apartW, uint8_t apartH, bool transposed, bool smallK, T value,
                                  bool wide = false, bool high = false, bool control = false)
      : l1H(height),
        l1W(width),
        channelSize(channels),
        kExtension(columns),
        mExtension(rows),
        kStartPt(firstColumn),
        mStartPt(firstRow),
        strideW(stepW),
        strideH(stepH),
        filterW(ofW),
        filterH(ofH),
        dilationFilterW(apartW),
        dilationFilterH(apartH),
        enTranspose(transposed),
        enSmallK(smallK),
        padValue(value),
        filterSizeW(wide),
        filterSizeH(high),
        fMatrixCtrl(control) {
    for (int n = 0; n < 4; ++n) padList[n] = padding[n];
  }
  uint8_t padList[4] = {};
  uint16_t l1H = 0;
  uint16_t l1W = 0;
  uint16_t channelSize = 0;
  uint16_t kExtension = 0;
  uint16_t mExtension = 0;
  uint16_t kStartPt = 0;
  uint16_t mStartPt = 0;
  uint8_t strideW = 1;
  uint8_t strideH = 1;
  uint8_t filterW = 1;
  uint8_t filterH = 1;
  uint8_t dilationFilterW = 1;
  uint8_t dilationFilterH = 1;
  bool enTranspose = false;
  bool enSmallK = false;
  T padValue{};
  bool filterSizeW = false;
  bool filterSizeH = false;
  bool fMatrixCtrl = false;
};
// What the machine's load takes as its source stride (firmware/abi/isa.h).
CM384_INLINE uint64_t Cm384Image(uint64_t height, uint64_t width, const uint8_t* padding) {
  return height | width << 16 | static_cast<uint64_t>(padding[0]) << 32 |
         static_cast<uint64_t>(padding[1]) << 40 | static_cast<uint64_t>(padding[2]) << 48 |
         static_cast<uint64_t>(padding[3]) << 56;
}
static uint64_t cm384_fmatrix = 0;
CM384_INLINE void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[4],
                             const FmatrixMode& = FmatrixMode::FMATRIX_LEFT) {
  cm384_fmatrix = Cm384Image(l1H, l1W, padList);
}
// State of loads of other versions: as it is by default alone.
struct LoadDataRepeatParam {
  uint16_t repeatStride = 0;
  uint8_t repeatTime = 1;
  uint8_t repeatMode = 0;
};
CM384_INLINE void SetLoadDataRepeat(const LoadDataRepeatParam& p) {
  if (p.repeatTime > 1) Abort("SetLoadDataRepeat: repeats are not there: docs/ascend-c.md");
}
CM384_INLINE void SetLoadDataBoundary(uint32_t boundary) {
  if (boundary != 0) Abort("SetLoadDataBoundary: 0 alone: docs/ascend-c.md");
}
// Of padded elements, for loads that do not bring their own.
static uint32_t cm384_padding_value = 0;
template <typename T>
CM384_INLINE void SetLoadDataPaddingValue(const T value) {
  __builtin_memcpy(&cm384_padding_value, &value, sizeof(T));
}
template <typename T, const IsResetLoad3dConfig& config = IS_RESER_LOAD3D_DEFAULT_CONFIG, typename U = T>
CM384_INLINE void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                           const LoadData3DParamsV2<U>& p) {
  UsesCube();
  static_assert(cm384::kMovedType<T> >= 0, "LoadData: elements of 1, 2 or 4 B: docs/ascend-c.md");
  if (p.enTranspose || dst.GetPosition() != TPosition::A2)
    Abort("LoadData: three-dimensional loads are there to A2, not transposed: docs/ascend-c.md");
  constexpr uint64_t kColumns = ONE_BLK_SIZE / sizeof(T) * kPacked<T>;
  const uint64_t image = config.isSetFMatrix ? Cm384Image(p.l1H, p.l1W, p.padList) : cm384_fmatrix;
  const uint64_t filter =
      p.filterW + (p.filterSizeW ? 256ull : 0) | (p.filterH + (p.filterSizeH ? 256ull : 0)) << 9;
  uint32_t padded = cm384_padding_value;
  if (config.isSetPadding) __builtin_memcpy(&padded, &p.padValue, sizeof(T));
  cm384::pipe_instruction<CM384_CLASS_SYNC, CM384_SET_STRIDE>(
      image, p.strideW | static_cast<uint64_t>(p.strideH) << 8 | filter << 16 |
                 static_cast<uint64_t>(p.dilationFilterW) << 34 |
                 static_cast<uint64_t>(p.dilationFilterH) << 42);
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_LOAD_3D_A, cm384::kMovedType<T>>(
      dst.GetPhyAddr() | src.GetPhyAddr() << 32,
      p.mStartPt | static_cast<uint64_t>(p.mExtension) << 16 | p.kStartPt / kColumns << 32 |
          (p.kExtension + kColumns - 1) / kColumns << 48,
      padded);
}

// Products of float are of FP32 here, not of the shorter HF32 (assumed).
CM384_INLINE void SetHF32Mode(bool) {}
CM384_INLINE void SetHF32TransMode(bool) {}
// One value all over a buffer: units of 32 B in A1 and B1 (pipe MTE2), of 512 B in A2 and B2 (pipe MTE1).
template <typename T>
struct InitConstValueParams {
  CM384_INLINE InitConstValueParams() {}
  CM384_INLINE InitConstValueParams(uint16_t repeat, uint16_t blocks, uint16_t gap, T value)
      : repeatTimes(repeat), blockNum(blocks), dstGap(gap), initValue(value) {}
  CM384_INLINE InitConstValueParams(uint16_t repeat, T value) : repeatTimes(repeat), initValue(value) {}
  uint16_t repeatTimes = 0;
  uint16_t blockNum = 0;
  uint16_t dstGap = 0;  // units from the end of a turn to the next one
  T initValue{};
};
template <typename T, typename U = T>
CM384_INLINE void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<U>& p) {
  UsesCube();
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "InitConstValue: elements of 2 or 4 B: docs/ascend-c.md");
  const T value = static_cast<T>(p.initValue);
  uint32_t word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  if (sizeof(T) == 2) word |= word << 16;
  const TPosition at = dst.GetPosition();
  const bool l1 = at == TPosition::A1 || at == TPosition::B1 || at == TPosition::C1 || at == TPosition::TSCM;
  if (!l1 && at != TPosition::A2 && at != TPosition::B2)
    Abort("InitConstValue: of A1, B1, A2 and B2, on cube cores: docs/ascend-c.md");
  if (p.repeatTimes == 0 || p.blockNum == 0) return;
  const uint64_t buffer = l1 ? 0 : at == TPosition::A2 ? 1 : 2;
  cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_FILL>(
      dst.GetPhyAddr() | buffer << 32, word,
      p.repeatTimes | static_cast<uint64_t>(p.blockNum) << 16 | static_cast<uint64_t>(p.dstGap) << 32);
}

}  // namespace AscendC

using enum AscendC::QuantMode_t;
using AscendC::QuantMode_t;
