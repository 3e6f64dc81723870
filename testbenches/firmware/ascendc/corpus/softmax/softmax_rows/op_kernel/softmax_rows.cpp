// Softmax of the last axis by the library's call, rows padded to whole blocks on their way.
#include "kernel_operator.h"

namespace {
template <typename T>
class KernelSoftmax {
 public:
  __aicore__ inline KernelSoftmax() {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const SoftmaxRowsTilingData& tiling,
                              AscendC::TPipe* pipe) {
    tiling_ = tiling;
    const uint32_t first = AscendC::GetBlockIdx() * tiling.rowsOfCore;
    rows_ = tiling.totalRows - first < tiling.rowsOfCore ? tiling.totalRows - first : tiling.rowsOfCore;
    srcGlobal.SetGlobalBuffer((__gm__ T*)x + first * tiling.columns);
    dstGlobal.SetGlobalBuffer((__gm__ T*)y + first * tiling.columns);
    const uint32_t bytes = tiling.rowsAtOnce * tiling.columnsAligned * sizeof(T);
    pipe->InitBuffer(inQueueSrc, 1, bytes);
    pipe->InitBuffer(outQueueDst, 1, bytes);
    pipe->InitBuffer(maxBuf, tiling.rowsAtOnce * 32);
    pipe->InitBuffer(sumBuf, tiling.rowsAtOnce * 32);
    pipe->InitBuffer(tmpBuf, tiling.tmpBytes);
  }
  __aicore__ inline void Process() {
    for (uint32_t row = 0; row < rows_; row += tiling_.rowsAtOnce) {
      const uint32_t now = rows_ - row < tiling_.rowsAtOnce ? rows_ - row : tiling_.rowsAtOnce;
      CopyIn(row, now);
      Compute(now);
      CopyOut(row, now);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t row, uint32_t now) {
    AscendC::LocalTensor<T> srcLocal = inQueueSrc.template AllocTensor<T>();
    AscendC::DataCopyExtParams copyParams{static_cast<uint16_t>(now),
                                          static_cast<uint32_t>(tiling_.columns * sizeof(T)), 0, 0, 0};
    AscendC::DataCopyPadExtParams<T> padParams{
        true, 0, static_cast<uint8_t>(tiling_.columnsAligned - tiling_.columns), static_cast<T>(0)};
    AscendC::DataCopyPad(srcLocal, srcGlobal[row * tiling_.columns], copyParams, padParams);
    inQueueSrc.EnQue(srcLocal);
  }
  __aicore__ inline void Compute(uint32_t now) {
    AscendC::LocalTensor<T> srcLocal = inQueueSrc.template DeQue<T>();
    AscendC::LocalTensor<T> dstLocal = outQueueDst.template AllocTensor<T>();
    AscendC::LocalTensor<T> maxTensor = maxBuf.Get<T>();
    AscendC::LocalTensor<T> sumTensor = sumBuf.Get<T>();
    AscendC::LocalTensor<uint8_t> sharedTmp = tmpBuf.Get<uint8_t>();
    AscendC::SoftMaxShapeInfo srcShape = {now, tiling_.columnsAligned, now, tiling_.columns};
    AscendC::SoftMax<T, false, false, false>(dstLocal, sumTensor, maxTensor, srcLocal, sharedTmp,
                                             tiling_.softmaxTilingData, srcShape);
    outQueueDst.template EnQue<T>(dstLocal);
    inQueueSrc.FreeTensor(srcLocal);
  }
  __aicore__ inline void CopyOut(uint32_t row, uint32_t now) {
    AscendC::LocalTensor<T> dstLocal = outQueueDst.template DeQue<T>();
    AscendC::DataCopyExtParams copyParams{static_cast<uint16_t>(now),
                                          static_cast<uint32_t>(tiling_.columns * sizeof(T)), 0, 0, 0};
    AscendC::DataCopyPad(dstGlobal[row * tiling_.columns], dstLocal, copyParams);
    outQueueDst.FreeTensor(dstLocal);
  }

  SoftmaxRowsTilingData tiling_;
  uint32_t rows_;
  AscendC::GlobalTensor<T> srcGlobal, dstGlobal;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> inQueueSrc;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueueDst;
  AscendC::TBuf<AscendC::TPosition::VECCALC> maxBuf, sumBuf, tmpBuf;
};
}  // namespace

extern "C" __global__ __aicore__ void softmax_rows(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(tilingData, tiling);
  AscendC::TPipe pipe;
  if (TILING_KEY_IS(1)) {
    KernelSoftmax<DTYPE_X> op;
    op.Init(x, y, tilingData, &pipe);
    op.Process();
  }
}
