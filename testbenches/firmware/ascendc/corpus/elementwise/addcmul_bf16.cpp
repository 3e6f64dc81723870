// y = x + value * a * b in BF16, computed in FP32: casts around, masks and repeats in place of counts, event
// ids by hand over two buffers.
#include "kernel_operator.h"

using namespace AscendC;

struct AddcmulTiling {
  uint32_t tiles;  // of a core
  uint32_t tile;   // elements, a multiple of 64, at most 64 * 255
  float value;
};

class Addcmul {
 public:
  __aicore__ inline Addcmul(GM_ADDR x, GM_ADDR a, GM_ADDR b, GM_ADDR y, const AddcmulTiling& t) : t_(t) {
    const uint64_t offset = static_cast<uint64_t>(GetBlockIdx()) * t.tiles * t.tile;
    x_.SetGlobalBuffer((__gm__ bfloat16_t*)x + offset);
    a_.SetGlobalBuffer((__gm__ bfloat16_t*)a + offset);
    b_.SetGlobalBuffer((__gm__ bfloat16_t*)b + offset);
    y_.SetGlobalBuffer((__gm__ bfloat16_t*)y + offset);
    pipe_.InitBuffer(buf_, 2 * t.tile * (4 * sizeof(bfloat16_t) + 3 * sizeof(float)));
  }
  __aicore__ inline void Process() {
    LocalTensor<bfloat16_t> in = buf_.Get<bfloat16_t>();
    for (int32_t ping = 0; ping < 2; ++ping) {
      SetFlag<HardEvent::V_MTE2>(ping);
      SetFlag<HardEvent::MTE3_V>(ping);
    }
    const uint8_t repeat = t_.tile / 64;
    const uint64_t mask = 64;
    const UnaryRepeatParams widen{1, 1, 8, 4}, narrow{1, 1, 4, 8}, one{1, 1, 8, 8};
    const BinaryRepeatParams two{1, 1, 1, 8, 8, 8};
    for (uint32_t i = 0; i < t_.tiles; ++i) {
      const int32_t ping = i & 1;
      LocalTensor<bfloat16_t> x = in[ping * t_.tile * 10], a = x[t_.tile], b = a[t_.tile], y = b[t_.tile];
      LocalTensor<float> fx = y[t_.tile].ReinterpretCast<float>(), fa = fx[t_.tile], fb = fa[t_.tile];
      WaitFlag<HardEvent::V_MTE2>(ping);
      DataCopy(x, x_[i * t_.tile], t_.tile);
      DataCopy(a, a_[i * t_.tile], t_.tile);
      DataCopy(b, b_[i * t_.tile], t_.tile);
      SetFlag<HardEvent::MTE2_V>(ping);
      WaitFlag<HardEvent::MTE2_V>(ping);
      Cast(fx, x, RoundMode::CAST_NONE, mask, repeat, widen);
      Cast(fa, a, RoundMode::CAST_NONE, mask, repeat, widen);
      Cast(fb, b, RoundMode::CAST_NONE, mask, repeat, widen);
      SetFlag<HardEvent::V_MTE2>(ping);
      PipeBarrier<PIPE_V>();
      Muls(fa, fa, t_.value, mask, repeat, one);
      PipeBarrier<PIPE_V>();
      MulAddDst(fx, fa, fb, mask, repeat, two);
      PipeBarrier<PIPE_V>();
      WaitFlag<HardEvent::MTE3_V>(ping);
      Cast(y, fx, RoundMode::CAST_RINT, mask, repeat, narrow);
      SetFlag<HardEvent::V_MTE3>(ping);
      WaitFlag<HardEvent::V_MTE3>(ping);
      DataCopy(y_[i * t_.tile], y, t_.tile);
      SetFlag<HardEvent::MTE3_V>(ping);
    }
    for (int32_t ping = 0; ping < 2; ++ping) {
      WaitFlag<HardEvent::V_MTE2>(ping);
      WaitFlag<HardEvent::MTE3_V>(ping);
    }
  }

 private:
  const AddcmulTiling t_;
  TPipe pipe_;
  TBuf<TPosition::VECCALC> buf_;
  GlobalTensor<bfloat16_t> x_, a_, b_, y_;
};

__global__ __aicore__ void addcmul_bf16(GM_ADDR x, GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(AddcmulTiling, t, tiling);
  Addcmul op(x, a, b, y, t);
  op.Process();
}
