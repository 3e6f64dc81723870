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
template <typename D, typename S, typename Params>
requires(is_same_v<Params, DataCopyCO12DstParams>) CM384_INLINE
    void DataCopy(const GlobalTensor<D>& dst, const LocalTensor<S>& src, const Params& p) {
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

// Three-dimensional loads where they are loads of a matrix: a filter of 1 x 1, a stride of 1, no padding, to
// A2.
struct IsResetLoad3dConfig {
  bool isSetFMatrix = true;
  bool isSetPadding = true;
};
inline constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG{};
enum class FmatrixMode : uint8_t { FMATRIX_LEFT, FMATRIX_RIGHT };
template <typename T>
struct LoadData3DParamsV2 {
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
struct Cm384Fmatrix {
  uint16_t height = 0, width = 0;
  bool padded = false;
};
static Cm384Fmatrix cm384_fmatrix{};
CM384_INLINE void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[4],
                             const FmatrixMode& = FmatrixMode::FMATRIX_LEFT) {
  cm384_fmatrix = {l1H, l1W, (padList[0] | padList[1] | padList[2] | padList[3]) != 0};
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
// Of padded elements, which there are not.
template <typename T>
CM384_INLINE void SetLoadDataPaddingValue(const T) {}
template <typename T, const IsResetLoad3dConfig& config = IS_RESER_LOAD3D_DEFAULT_CONFIG, typename U>
CM384_INLINE void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                           const LoadData3DParamsV2<U>& p) {
  UsesCube();
  Cm384Fmatrix matrix = cm384_fmatrix;
  if (config.isSetFMatrix)
    matrix = {p.l1H, p.l1W, (p.padList[0] | p.padList[1] | p.padList[2] | p.padList[3]) != 0};
  if (p.filterW != 1 || p.filterH != 1 || p.strideW != 1 || p.strideH != 1 || matrix.padded ||
      p.enTranspose || p.filterSizeW || p.filterSizeH || dst.GetPosition() != TPosition::A2)
    Abort(
        "LoadData: three-dimensional loads are there with a filter of 1 x 1, to A2, alone: docs/ascend-c.md");
  constexpr uint32_t kColumns = ONE_BLK_SIZE / sizeof(T);
  const uint32_t column = matrix.height * matrix.width * ONE_BLK_SIZE;
  const uint32_t columns = (p.kExtension + kColumns - 1u) / kColumns, rows = (p.mExtension + 15u) / 16;
  for (uint32_t row = 0; row < rows; ++row) {
    const uint64_t from =
        src.GetPhyAddr() + p.kStartPt / kColumns * column + (p.mStartPt + row * 16u) * ONE_BLK_SIZE;
    LoadStepsTo(dst[row * columns * (cm384::kFractalBytes / sizeof(T))], from, columns, false,
                static_cast<int32_t>(column), cm384::kFractalBytes);
  }
}

}  // namespace AscendC

using enum AscendC::QuantMode_t;
using AscendC::QuantMode_t;
