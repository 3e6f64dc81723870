// y = mask ? value : x, mask of bytes: a byte becomes half, a comparison makes it a bit, a selection uses it.
#include "kernel_operator.h"

using AscendC::CMPMODE;
using AscendC::GlobalTensor;
using AscendC::LocalTensor;
using AscendC::RoundMode;
using AscendC::SELMODE;
using AscendC::TBuf;
using AscendC::TPipe;
using AscendC::TPosition;
using AscendC::TQue;

struct MaskedFillTiling {
  int64_t total;
  int64_t perCore;
  int32_t tile;  // a multiple of 256
  float value;
};

namespace {
constexpr int32_t kBuffers = 2;

template <typename T>
class MaskedFill {
 public:
  __aicore__ inline MaskedFill(TPipe* p) : pipe_(p) {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR mask, GM_ADDR y, const MaskedFillTiling* tiling) {
    tiling_ = tiling;
    first_ = AscendC::GetBlockIdx() * tiling->perCore;
    x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x));
    mask_.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(mask));
    y_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y));
    pipe_->InitBuffer(inX_, kBuffers, tiling->tile * sizeof(T));
    pipe_->InitBuffer(inMask_, kBuffers, tiling->tile * sizeof(uint8_t));
    pipe_->InitBuffer(out_, kBuffers, tiling->tile * sizeof(T));
    pipe_->InitBuffer(asHalf_, tiling->tile * sizeof(half));
    pipe_->InitBuffer(bits_, tiling->tile / 8);
    pipe_->InitBuffer(fill_, tiling->tile * sizeof(T));
    AscendC::Duplicate(fill_.Get<T>(), static_cast<T>(tiling->value), tiling->tile);
  }
  __aicore__ inline void Process() {
    const int64_t last = AscendC::Std::min(first_ + tiling_->perCore, tiling_->total);
    for (int64_t at = first_; at < last; at += tiling_->tile) {
      const uint32_t count = static_cast<uint32_t>(last - at < tiling_->tile ? last - at : tiling_->tile);
      CopyIn(at, count);
      Compute(count);
      CopyOut(at, count);
    }
  }

 private:
  __aicore__ inline void CopyIn(int64_t at, uint32_t count) {
    auto x = inX_.template AllocTensor<T>();
    auto mask = inMask_.template AllocTensor<uint8_t>();
    AscendC::DataCopyPad(x, x_[at], {1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0}, {false, 0, 0, 0});
    AscendC::DataCopyPad(mask, mask_[at], {1, count, 0, 0, 0}, {true, 0, 0, 0});
    inX_.EnQue(x);
    inMask_.EnQue(mask);
  }
  __aicore__ inline void Compute(uint32_t count) {
    auto x = inX_.template DeQue<T>();
    auto mask = inMask_.template DeQue<uint8_t>();
    auto y = out_.template AllocTensor<T>();
    auto h = asHalf_.Get<half>();
    auto bits = bits_.Get<uint8_t>();
    AscendC::Cast(h, mask, RoundMode::CAST_NONE, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::CompareScalar(bits, h, static_cast<half>(0.0f), CMPMODE::EQ, (count + 127) / 128 * 128);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Select(y, bits, x, fill_.Get<T>(), SELMODE::VSEL_TENSOR_TENSOR_MODE, count);
    out_.EnQue(y);
    inX_.FreeTensor(x);
    inMask_.FreeTensor(mask);
  }
  __aicore__ inline void CopyOut(int64_t at, uint32_t count) {
    auto y = out_.template DeQue<T>();
    AscendC::DataCopyPad(y_[at], y, {1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0});
    out_.FreeTensor(y);
  }

  TPipe* pipe_;
  const MaskedFillTiling* tiling_;
  int64_t first_;
  GlobalTensor<T> x_, y_;
  GlobalTensor<uint8_t> mask_;
  TQue<TPosition::VECIN, kBuffers> inX_, inMask_;
  TQue<TPosition::VECOUT, kBuffers> out_;
  TBuf<TPosition::VECCALC> asHalf_, bits_, fill_;
};
}  // namespace

extern "C" __global__ __aicore__ void masked_fill(GM_ADDR x, GM_ADDR mask, GM_ADDR y, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(MaskedFillTiling, data, tiling);
  TPipe pipe;
  MaskedFill<DTYPE_X> op(&pipe);
  op.Init(x, mask, y, &data);
  op.Process();
}
