// y = x / sqrt(mean(x^2) + epsilon) * gamma, and 1 / sqrt(..) of each row.
#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t BUFFER_NUM = 2;
constexpr uint32_t NUM_PER_REP_FP32 = 64;
constexpr uint32_t NUM_PER_BLK_FP32 = 8;

template <typename T>
class KernelRmsNorm {
 public:
  __aicore__ inline KernelRmsNorm(TPipe* pipe) { Ppipe = pipe; }
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR rstd,
                              const RmsNormCustomTilingData* tiling) {
    this->numCol = tiling->numCol;
    this->rowFactor = tiling->rowFactor;
    this->epsilon = tiling->epsilon;
    this->avgFactor = tiling->avgFactor;
    const uint64_t firstRow = static_cast<uint64_t>(GetBlockIdx()) * tiling->blockFactor;
    this->rowWork =
        tiling->numRow - firstRow < tiling->blockFactor ? tiling->numRow - firstRow : tiling->blockFactor;
    xGm.SetGlobalBuffer((__gm__ T*)x + firstRow * numCol, rowWork * numCol);
    yGm.SetGlobalBuffer((__gm__ T*)y + firstRow * numCol, rowWork * numCol);
    gammaGm.SetGlobalBuffer((__gm__ T*)gamma, numCol);
    rstdGm.SetGlobalBuffer((__gm__ float*)rstd + firstRow, rowWork);
    Ppipe->InitBuffer(inQueueX, BUFFER_NUM, rowFactor * numCol * sizeof(T));
    Ppipe->InitBuffer(outQueueY, BUFFER_NUM, rowFactor * numCol * sizeof(T));
    Ppipe->InitBuffer(inQueueGamma, 1, numCol * sizeof(T));
    Ppipe->InitBuffer(outQueueRstd, 1, (rowFactor + 7) / 8 * 32);
    Ppipe->InitBuffer(gammaFp32Buf, numCol * sizeof(float));
    Ppipe->InitBuffer(xFp32Buf, rowFactor * numCol * sizeof(float));
    Ppipe->InitBuffer(sqxBuf, numCol * sizeof(float));
    Ppipe->InitBuffer(reduceFp32Buf, NUM_PER_REP_FP32 * sizeof(float));
  }
  __aicore__ inline void Process() {
    CopyInGamma();
    for (uint32_t row = 0; row < rowWork; row += rowFactor) {
      const uint32_t now = rowWork - row < rowFactor ? rowWork - row : rowFactor;
      SubProcess(row, now);
    }
  }

 private:
  __aicore__ inline void CopyInGamma() {
    LocalTensor<T> gammaLocal = inQueueGamma.AllocTensor<T>();
    DataCopy(gammaLocal, gammaGm, numCol);
    inQueueGamma.EnQue(gammaLocal);
    gammaLocal = inQueueGamma.DeQue<T>();
    ToFp32(gammaFp32Buf.Get<float>(), gammaLocal, numCol);
    inQueueGamma.FreeTensor(gammaLocal);
  }
  __aicore__ inline void ToFp32(const LocalTensor<float>& to, const LocalTensor<T>& from, uint32_t n) {
    if constexpr (IsSameType<T, float>::value) {
      DataCopy(to, from, n);
    } else {
      Cast(to, from, RoundMode::CAST_NONE, n);
    }
    PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void SubProcess(uint32_t row, uint32_t rows) {
    LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
    DataCopy(xLocal, xGm[row * numCol], rows * numCol);
    inQueueX.EnQue(xLocal);
    xLocal = inQueueX.DeQue<T>();
    LocalTensor<float> xFp32 = xFp32Buf.Get<float>();
    ToFp32(xFp32, xLocal, rows * numCol);
    inQueueX.FreeTensor(xLocal);
    LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
    LocalTensor<float> rstdLocal = outQueueRstd.AllocTensor<float>();
    LocalTensor<float> sqx = sqxBuf.Get<float>();
    LocalTensor<float> reduceLocal = reduceFp32Buf.Get<float>();
    for (uint32_t i = 0; i < rows; i++) {
      LocalTensor<float> x = xFp32[i * numCol];
      Mul(sqx, x, x, numCol);
      PipeBarrier<PIPE_V>();
      Muls(sqx, sqx, avgFactor, numCol);
      PipeBarrier<PIPE_V>();
      ReduceSumCustom(reduceLocal, sqx, numCol);
      Adds(reduceLocal, reduceLocal, epsilon, 1);
      PipeBarrier<PIPE_V>();
      Sqrt(reduceLocal, reduceLocal, 1);
      Duplicate(sqx, 1.0f, 1);
      PipeBarrier<PIPE_V>();
      Div(reduceLocal, sqx, reduceLocal, 1);
      PipeBarrier<PIPE_V>();
      event_t eventVS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
      SetFlag<HardEvent::V_S>(eventVS);
      WaitFlag<HardEvent::V_S>(eventVS);
      const float rstdValue = reduceLocal.GetValue(0);
      rstdLocal.SetValue(i, rstdValue);
      Muls(x, x, rstdValue, numCol);
      PipeBarrier<PIPE_V>();
      Mul(x, x, gammaFp32Buf.Get<float>(), numCol);
      PipeBarrier<PIPE_V>();
      if constexpr (IsSameType<T, float>::value) {
        DataCopy(yLocal[i * numCol], x, numCol);
      } else {
        Cast(yLocal[i * numCol], x, RoundMode::CAST_RINT, numCol);
      }
      PipeBarrier<PIPE_V>();
    }
    outQueueY.EnQue(yLocal);
    outQueueRstd.EnQue(rstdLocal);
    yLocal = outQueueY.DeQue<T>();
    rstdLocal = outQueueRstd.DeQue<float>();
    DataCopy(yGm[row * numCol], yLocal, rows * numCol);
    DataCopyParams copyParams;
    copyParams.blockCount = 1;
    copyParams.blockLen = rows * sizeof(float);
    DataCopyPad(rstdGm[row], rstdLocal, copyParams);
    outQueueY.FreeTensor(yLocal);
    outQueueRstd.FreeTensor(rstdLocal);
  }
  // Repeats onto each other, then one.
  __aicore__ inline void ReduceSumCustom(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                         uint32_t n) {
    const uint64_t mask = NUM_PER_REP_FP32;
    const uint8_t repeat = n / NUM_PER_REP_FP32;
    const uint32_t tail = n % NUM_PER_REP_FP32;
    BinaryRepeatParams onto;
    onto.src0RepStride = 8;
    onto.src1RepStride = 0;
    onto.dstRepStride = 0;
    onto.src0BlkStride = 1;
    onto.src1BlkStride = 1;
    onto.dstBlkStride = 1;
    Duplicate(dst, 0.0f, NUM_PER_REP_FP32);
    PipeBarrier<PIPE_V>();
    if (repeat > 0) Add(dst, src, dst, mask, repeat, onto);
    PipeBarrier<PIPE_V>();
    if (tail != 0) Add(dst, src[repeat * NUM_PER_REP_FP32], dst, tail, 1, onto);
    PipeBarrier<PIPE_V>();
    WholeReduceSum<float, false>(dst, dst, MASK_PLACEHOLDER, 1, 1, 1, 8);
    PipeBarrier<PIPE_V>();
  }

  TPipe* Ppipe = nullptr;
  TQue<QuePosition::VECIN, BUFFER_NUM> inQueueX;
  TQue<QuePosition::VECIN, 1> inQueueGamma;
  TQue<QuePosition::VECOUT, BUFFER_NUM> outQueueY;
  TQue<QuePosition::VECOUT, 1> outQueueRstd;
  TBuf<TPosition::VECCALC> gammaFp32Buf, xFp32Buf, sqxBuf, reduceFp32Buf;
  GlobalTensor<T> xGm, gammaGm, yGm;
  GlobalTensor<float> rstdGm;
  uint64_t numCol, rowWork;
  uint32_t rowFactor;
  float epsilon, avgFactor;
};

extern "C" __global__ __aicore__ void rms_norm_custom(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR rstd,
                                                      GM_ADDR workspace, GM_ADDR tiling) {
  TPipe pipe;
  GET_TILING_DATA(tilingData, tiling);
  if (TILING_KEY_IS(1)) {
    KernelRmsNorm<float> op(&pipe);
    op.Init(x, gamma, y, rstd, &tilingData);
    op.Process();
  } else if (TILING_KEY_IS(2)) {
    KernelRmsNorm<half> op(&pipe);
    op.Init(x, gamma, y, rstd, &tilingData);
    op.Process();
  } else if (TILING_KEY_IS(3)) {
    KernelRmsNorm<bfloat16_t> op(&pipe);
    op.Init(x, gamma, y, rstd, &tilingData);
    op.Process();
  }
}
