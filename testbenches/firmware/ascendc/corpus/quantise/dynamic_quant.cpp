// Rows to int8 with a scale of their own, smoothed by a scale of each column where there is one.
#include "kernel_operator.h"
using namespace AscendC;

struct DynamicQuantTilingData {
  uint32_t coreNum;
  uint32_t rowLen;
  uint32_t headCoreNum;  // cores with a row more
  uint32_t rowPerHeadCore;
  uint32_t rowPerTailCore;
  uint32_t hasSmooth;
};

template <typename xDtype, typename yDtype>
class DynamicQuant {
 public:
  __aicore__ inline DynamicQuant(TPipe* pipe) { pPipe = pipe; }
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR smooth, GM_ADDR y, GM_ADDR scale,
                              const DynamicQuantTilingData* __restrict t) {
    tilingData_ = *t;
    blockIdx = GetBlockIdx();
    const bool head = blockIdx < t->headCoreNum;
    rowPerCore = head ? t->rowPerHeadCore : t->rowPerTailCore;
    const uint64_t firstRow =
        head ? blockIdx * t->rowPerHeadCore
             : t->headCoreNum * t->rowPerHeadCore + (blockIdx - t->headCoreNum) * t->rowPerTailCore;
    lenAligned = (t->rowLen + 31) / 32 * 32;
    inGm.SetGlobalBuffer((__gm__ xDtype*)x + firstRow * t->rowLen);
    outGm.SetGlobalBuffer((__gm__ yDtype*)y + firstRow * t->rowLen);
    scaleGm.SetGlobalBuffer((__gm__ float*)scale + firstRow);
    pPipe->InitBuffer(inQueue, 1, lenAligned * sizeof(xDtype));
    pPipe->InitBuffer(outQueue, 1, lenAligned * sizeof(yDtype));
    pPipe->InitBuffer(scaleQueue, 1, 32 * 8);
    pPipe->InitBuffer(fp32_buf_, lenAligned * sizeof(float));
    pPipe->InitBuffer(tempCast, lenAligned * sizeof(float));
    if (t->hasSmooth) {
      smoothGm.SetGlobalBuffer((__gm__ xDtype*)smooth, t->rowLen);
      pPipe->InitBuffer(smoothQueue, 1, lenAligned * sizeof(xDtype));
      pPipe->InitBuffer(smoothBuf, lenAligned * sizeof(float));
    }
  }
  __aicore__ inline void Process() {
    const uint32_t n = tilingData_.rowLen;
    const DataCopyExtParams in = {1, static_cast<uint32_t>(n * sizeof(xDtype)), 0, 0, 0};
    const DataCopyPadExtParams<xDtype> pad = {false, 0, 0, 0};
    if (tilingData_.hasSmooth) {
      LocalTensor<xDtype> s = smoothQueue.AllocTensor<xDtype>();
      DataCopyPad(s, smoothGm, in, pad);
      smoothQueue.EnQue(s);
      s = smoothQueue.DeQue<xDtype>();
      Cast(smoothBuf.Get<float>(), s, RoundMode::CAST_NONE, n);
      smoothQueue.FreeTensor(s);
    }
    LocalTensor<float> scales = scaleQueue.AllocTensor<float>();
    for (uint32_t i = 0; i < rowPerCore; i++) {
      LocalTensor<xDtype> inLocal = inQueue.AllocTensor<xDtype>();
      DataCopyPad(inLocal, inGm[i * n], in, pad);
      inQueue.EnQue(inLocal);
      Compute(scales, i);
      LocalTensor<yDtype> outLocal = outQueue.DeQue<yDtype>();
      DataCopyPad(outGm[i * n], outLocal, {1, static_cast<uint32_t>(n * sizeof(yDtype)), 0, 0, 0});
      outQueue.FreeTensor(outLocal);
    }
    scaleQueue.EnQue(scales);
    scales = scaleQueue.DeQue<float>();
    DataCopyPad(scaleGm, scales, {1, static_cast<uint32_t>(rowPerCore * sizeof(float)), 0, 0, 0});
    scaleQueue.FreeTensor(scales);
  }

 private:
  __aicore__ inline void Compute(const LocalTensor<float>& scales, uint32_t i) {
    const uint32_t n = tilingData_.rowLen;
    auto inLocal = inQueue.DeQue<xDtype>();
    auto outLocal = outQueue.AllocTensor<yDtype>();
    auto tempFp32 = fp32_buf_.Get<float>();
    auto temp = tempCast.Get<float>();
    auto tempInt32 = tempCast.Get<int32_t>();
    auto tempHalf = tempFp32.template ReinterpretCast<half>();
    Cast(tempFp32, inLocal, RoundMode::CAST_NONE, n);
    pipe_barrier(PIPE_V);
    if (tilingData_.hasSmooth) {
      Mul(tempFp32, tempFp32, smoothBuf.Get<float>(), n);
      pipe_barrier(PIPE_V);
    }
    Abs(temp, tempFp32, n);
    pipe_barrier(PIPE_V);
    ReduceMax(temp, temp, temp, n, false);
    set_flag(PIPE_V, PIPE_S, EVENT_ID1);
    wait_flag(PIPE_V, PIPE_S, EVENT_ID1);
    const float maxValue = temp.GetValue(0);
    const float scale = maxValue / 127.0f, backScale = maxValue == 0.0f ? 1.0f : 127.0f / maxValue;
    scales.SetValue(i, scale);
    Muls(tempFp32, tempFp32, backScale, n);
    pipe_barrier(PIPE_V);
    Cast(tempInt32, tempFp32, RoundMode::CAST_RINT, n);
    pipe_barrier(PIPE_V);
    SetDeqScale((half)1.0);
    Cast(tempHalf, tempInt32, RoundMode::CAST_NONE, n);
    pipe_barrier(PIPE_V);
    Cast(outLocal, tempHalf, RoundMode::CAST_TRUNC, n);
    outQueue.EnQue<yDtype>(outLocal);
    inQueue.FreeTensor(inLocal);
  }

  TPipe* pPipe = nullptr;
  TQue<QuePosition::VECIN, 1> inQueue, smoothQueue;
  TQue<QuePosition::VECOUT, 1> outQueue, scaleQueue;
  TBuf<TPosition::VECCALC> fp32_buf_, tempCast, smoothBuf;
  GlobalTensor<xDtype> inGm, smoothGm;
  GlobalTensor<yDtype> outGm;
  GlobalTensor<float> scaleGm;
  DynamicQuantTilingData tilingData_;
  uint32_t blockIdx, rowPerCore, lenAligned;
};

extern "C" __global__ __aicore__ void dynamic_quant(GM_ADDR x, GM_ADDR smooth_scales, GM_ADDR y,
                                                    GM_ADDR scale, GM_ADDR workSpace, GM_ADDR tiling) {
  if (x == nullptr || y == nullptr || scale == nullptr) return;
  GET_TILING_DATA_WITH_STRUCT(DynamicQuantTilingData, tilingData, tiling);
  if (GetBlockIdx() >= tilingData.coreNum) return;
  TPipe pipe;
  if (TILING_KEY_IS(0)) {
    DynamicQuant<half, int8_t> op(&pipe);
    op.Init(x, smooth_scales, y, scale, &tilingData);
    op.Process();
  } else if (TILING_KEY_IS(1)) {
    DynamicQuant<bfloat16_t, int8_t> op(&pipe);
    op.Init(x, smooth_scales, y, scale, &tilingData);
    op.Process();
  }
}
