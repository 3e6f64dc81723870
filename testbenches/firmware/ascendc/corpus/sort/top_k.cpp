// The k smallest or largest of rows by the library's call; a row that has finished gives none.
#include "kernel_operator.h"
#include "lib/sort/topk.h"

struct TopKTilingOfThis {
  int32_t rows, n, inner, k, kAligned;
  int32_t isLargest;
  TopkTiling topk;
};

extern "C" __global__ __aicore__ void top_k(GM_ADDR x, GM_ADDR finished, GM_ADDR values, GM_ADDR indices,
                                            GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(TopKTilingOfThis, t, tiling);
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> inX, inFinish;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> outValue, outIndex;
  AscendC::TBuf<AscendC::TPosition::VECCALC> tmp;
  pipe.InitBuffer(inX, 1, t.rows * t.inner * sizeof(float));
  pipe.InitBuffer(inFinish, 1, (t.rows + 31) / 32 * 32);
  pipe.InitBuffer(outValue, 1, t.rows * t.kAligned * sizeof(float));
  pipe.InitBuffer(outIndex, 1, t.rows * t.kAligned * sizeof(int32_t));
  pipe.InitBuffer(tmp, t.inner * 32);
  AscendC::GlobalTensor<float> xGm, vGm;
  AscendC::GlobalTensor<int32_t> iGm;
  AscendC::GlobalTensor<bool> fGm;
  xGm.SetGlobalBuffer((__gm__ float*)x);
  vGm.SetGlobalBuffer((__gm__ float*)values);
  iGm.SetGlobalBuffer((__gm__ int32_t*)indices);
  fGm.SetGlobalBuffer((__gm__ bool*)finished);
  AscendC::LocalTensor<float> xl = inX.AllocTensor<float>();
  AscendC::LocalTensor<bool> fl = inFinish.AllocTensor<bool>();
  AscendC::DataCopyPad(
      xl, xGm,
      AscendC::DataCopyExtParams{(uint16_t)t.rows, (uint32_t)(t.n * 4), 0,
                                 (uint32_t)((t.inner * 4 - (t.n * 4 + 31) / 32 * 32) / 32), 0},
      AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
  AscendC::DataCopyPad(fl, fGm, AscendC::DataCopyExtParams{1, (uint32_t)t.rows, 0, 0, 0},
                       AscendC::DataCopyPadExtParams<bool>{false, 0, 0, false});
  inX.EnQue(xl);
  inFinish.EnQue(fl);
  xl = inX.DeQue<float>();
  fl = inFinish.DeQue<bool>();
  AscendC::LocalTensor<float> vl = outValue.AllocTensor<float>();
  AscendC::LocalTensor<int32_t> il = outIndex.AllocTensor<int32_t>(), none;
  AscendC::LocalTensor<uint8_t> room = tmp.Get<uint8_t>();
  AscendC::TopKInfo info;
  info.outter = t.rows;
  info.inner = t.inner;
  info.n = t.n;
  AscendC::TopK<float, false, true, false, AscendC::TopKMode::TOPK_NORMAL>(vl, il, xl, none, fl, room, t.k,
                                                                           t.topk, info, t.isLargest != 0);
  outValue.EnQue(vl);
  outIndex.EnQue(il);
  vl = outValue.DeQue<float>();
  il = outIndex.DeQue<int32_t>();
  AscendC::DataCopyExtParams rows{(uint16_t)t.rows, (uint32_t)(t.k * 4), 0, 0, 0};
  AscendC::DataCopyPad(vGm, vl, rows);
  AscendC::DataCopyPad(iGm, il, rows);
  outValue.FreeTensor(vl);
  outIndex.FreeTensor(il);
  inX.FreeTensor(xl);
  inFinish.FreeTensor(fl);
}
