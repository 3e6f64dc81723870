// [n, c, h, w] to [n, c / 16, h, w, 16] of half: 16 channels of 16 places each a repeat, addresses of 16
// blocks, the last channels filled up with zeros.
#include "kernel_operator.h"
using namespace AscendC;

struct ToFiveTiling {
  uint32_t n, c, hw;  // hw: a multiple of 16
};

extern "C" __global__ __aicore__ void nchw_to_nc1hwc0(GM_ADDR x, GM_ADDR y, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(ToFiveTiling, t, tiling);
  constexpr uint32_t C0 = 16;
  const uint32_t c1 = CeilDivision(t.c, C0);
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 2, C0 * t.hw * sizeof(half));
  pipe.InitBuffer(out, 2, C0 * t.hw * sizeof(half));
  GlobalTensor<half> from, to;
  from.SetGlobalBuffer((__gm__ half*)x);
  to.SetGlobalBuffer((__gm__ half*)y);
  for (uint32_t i = GetBlockIdx(); i < t.n * c1; i += GetBlockNum()) {
    const uint32_t n = i / c1, first = i % c1 * C0, channels = t.c - first < C0 ? t.c - first : C0;
    LocalTensor<half> a = in.AllocTensor<half>(), b = out.AllocTensor<half>();
    if (channels < C0) {
      Duplicate(a[channels * t.hw], half(0), (C0 - channels) * t.hw);
      SetFlag<HardEvent::V_MTE2>(EVENT_ID3);
      WaitFlag<HardEvent::V_MTE2>(EVENT_ID3);
    }
    DataCopy(a, from[(n * t.c + first) * t.hw], channels * t.hw);
    in.EnQue(a);
    a = in.DeQue<half>();
    uint64_t src[16], dst[16];
    for (uint32_t k = 0; k < 16; ++k) {
      src[k] = (uint64_t)(a[k * t.hw].GetPhyAddr());
      dst[k] = (uint64_t)(b[k * C0].GetPhyAddr());
    }
    const uint8_t repeats = t.hw / 16;
    TransDataTo5HDParams params(false, false, repeats, repeats == 1 ? 0 : 16, repeats == 1 ? 0 : 1);
    TransDataTo5HD<half>(dst, src, params);
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<half>();
    DataCopy(to[i * t.hw * C0], b, t.hw * C0);
    out.FreeTensor(b);
  }
}
