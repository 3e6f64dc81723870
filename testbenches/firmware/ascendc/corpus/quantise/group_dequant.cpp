// Weights of int8 in groups of rows with a scale and an offset of each column, to half.
#include "kernel_operator.h"
#include "lib/quantization/ascend_antiquant.h"

using AscendC::GetBlockIdx;
using AscendC::GetBlockNum;

struct GroupDequantTiling {
  uint32_t k, n, group;  // n: a multiple of 32
};

extern "C" __global__[aicore] void group_dequant(GM_ADDR w, GM_ADDR scale, GM_ADDR offset, GM_ADDR y,
                                                 GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(GroupDequantTiling, t, tiling);
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::QuePosition::VECIN, 1> inW, inS;
  AscendC::TQue<AscendC::QuePosition::VECOUT, 1> outY;
  AscendC::TBuf<> tmp;
  pipe.InitBuffer(inW, 2, t.group * t.n * sizeof(int8_t));
  pipe.InitBuffer(inS, 2, 2 * t.n * sizeof(half));
  pipe.InitBuffer(outY, 2, t.group * t.n * sizeof(half));
  pipe.InitBuffer(tmp, t.n * 56);
  AscendC::GlobalTensor<int8_t> wGm;
  AscendC::GlobalTensor<half> sGm, oGm, yGm;
  wGm.SetGlobalBuffer((__gm__ int8_t*)w);
  sGm.SetGlobalBuffer((__gm__ half*)scale);
  oGm.SetGlobalBuffer((__gm__ half*)offset);
  yGm.SetGlobalBuffer((__gm__ half*)y);
  for (uint32_t g = GetBlockIdx(); g < t.k / t.group; g += GetBlockNum()) {
    auto wl = inW.AllocTensor<int8_t>();
    auto sl = inS.AllocTensor<half>();
    AscendC::DataCopy(wl, wGm[g * t.group * t.n], t.group * t.n);
    AscendC::DataCopy(sl, sGm[g * t.n], t.n);
    AscendC::DataCopy(sl[t.n], oGm[g * t.n], t.n);
    inW.EnQue(wl);
    inS.EnQue(sl);
    wl = inW.DeQue<int8_t>();
    sl = inS.DeQue<half>();
    auto yl = outY.AllocTensor<half>();
    AscendC::AntiQuantShapeInfo shape = {1, t.n, 1, t.n};
    AscendC::AscendAntiQuant<int8_t, half, false>(yl, wl, sl[t.n], sl, tmp.Get<uint8_t>(), t.group, shape);
    outY.EnQue(yl);
    inW.FreeTensor(wl);
    inS.FreeTensor(sl);
    yl = outY.DeQue<half>();
    AscendC::DataCopy(yGm[g * t.group * t.n], yl, t.group * t.n);
    outY.FreeTensor(yl);
  }
}
