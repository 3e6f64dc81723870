// LayerNorm of rows in half: eight rows at a time, whose means and deviations are broadcast by Brcb and used
// with a stride of no blocks.
#include "kernel_operator.h"
using namespace AscendC;

struct LayerNormTilingData {
  uint32_t rows;     // a multiple of 8
  uint32_t columns;  // a multiple of 64, at most 64 * 255
  float epsilon;
};

class KernelLayerNorm {
 public:
  __aicore__ inline KernelLayerNorm(TPipe& p, const LayerNormTilingData& t)
      : pipe(p), n(t.columns), tiling(t) {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y) {
    xGm.SetGlobalBuffer((__gm__ half*)x);
    yGm.SetGlobalBuffer((__gm__ half*)y);
    gammaGm.SetGlobalBuffer((__gm__ float*)gamma);
    betaGm.SetGlobalBuffer((__gm__ float*)beta);
    pipe.InitBuffer(inQue, 1, ROWS * n * sizeof(half));
    pipe.InitBuffer(outQue, 1, ROWS * n * sizeof(half));
    pipe.InitBuffer(paramQue, 1, 2 * n * sizeof(float));
    pipe.InitBuffer(fBuf, ROWS * n * sizeof(float));
    pipe.InitBuffer(sqBuf, ROWS * n * sizeof(float));
    pipe.InitBuffer(oneBuf, 128 * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<float> gammaBeta = paramQue.AllocTensor<float>();
    DataCopy(gammaBeta, gammaGm, n);
    DataCopy(gammaBeta[n], betaGm, n);
    paramQue.EnQue(gammaBeta);
    gammaBeta = paramQue.DeQue<float>();
    for (uint32_t row = GetBlockIdx() * ROWS; row < tiling.rows; row += GetBlockNum() * ROWS)
      Group(row, gammaBeta, gammaBeta[n]);
    paramQue.FreeTensor(gammaBeta);
  }

 private:
  static constexpr uint32_t ROWS = 8;

  __aicore__ inline void Group(uint32_t row, const LocalTensor<float>& gamma,
                               const LocalTensor<float>& beta) {
    LocalTensor<half> x = inQue.AllocTensor<half>();
    DataCopy(x, xGm[row * n], ROWS * n);
    inQue.EnQue(x);
    x = inQue.DeQue<half>();
    LocalTensor<float> f = fBuf.Get<float>(), sq = sqBuf.Get<float>(), mean = oneBuf.Get<float>(),
                       blocks = mean[64];
    Cast(f, x, RoundMode::CAST_NONE, ROWS * n);
    inQue.FreeTensor(x);
    PipeBarrier<PIPE_V>();

    RowSums(mean, f, sq);
    Muls(mean, mean, 1.0f / n, ROWS);
    PipeBarrier<PIPE_V>();
    Brcb(blocks, mean, 1, {1, 8});
    PipeBarrier<PIPE_V>();
    OfRows(
        [&](const LocalTensor<float>& part, uint8_t blkStride) {
          Sub(part, part, blocks, 64, ROWS, {1, 1, blkStride, Stride(), Stride(), 1});
        },
        f);
    Mul(sq, f, f, ROWS * n);
    PipeBarrier<PIPE_V>();
    RowSums(mean, sq, sq);
    Muls(mean, mean, 1.0f / n, ROWS);
    PipeBarrier<PIPE_V>();
    Adds(mean, mean, tiling.epsilon, ROWS);
    PipeBarrier<PIPE_V>();
    Sqrt(mean, mean, ROWS);
    PipeBarrier<PIPE_V>();
    Brcb(blocks, mean, 1, {1, 8});
    PipeBarrier<PIPE_V>();
    OfRows(
        [&](const LocalTensor<float>& part, uint8_t blkStride) {
          Div(part, part, blocks, 64, ROWS, {1, 1, blkStride, Stride(), Stride(), 1});
        },
        f);
    // gamma and beta are the same for every row.
    for (uint32_t c = 0; c < n; c += 64) {
      Mul(f[c], f[c], gamma[c], 64, ROWS, {1, 1, 1, Stride(), Stride(), 0});
      PipeBarrier<PIPE_V>();
      Add(f[c], f[c], beta[c], 64, ROWS, {1, 1, 1, Stride(), Stride(), 0});
    }
    PipeBarrier<PIPE_V>();
    LocalTensor<half> y = outQue.AllocTensor<half>();
    Cast(y, f, RoundMode::CAST_NONE, ROWS * n);
    outQue.EnQue(y);
    y = outQue.DeQue<half>();
    DataCopy(yGm[row * n], y, ROWS * n);
    outQue.FreeTensor(y);
  }
  __aicore__ inline uint8_t Stride() const { return n / 8; }
  template <typename F>
  __aicore__ inline void OfRows(F&& call, const LocalTensor<float>& f) {
    for (uint32_t c = 0; c < n; c += 64) call(f[c], 0);
    PipeBarrier<PIPE_V>();
  }
  // `sum[i]` of row i; `work` may be the rows.
  __aicore__ inline void RowSums(const LocalTensor<float>& sum, const LocalTensor<float>& rows,
                                 const LocalTensor<float>& work) {
    if (work.GetPhyAddr() != rows.GetPhyAddr()) {
      DataCopy(work, rows, ROWS * n);
      PipeBarrier<PIPE_V>();
    }
    for (uint32_t c = 64; c < n; c += 64) {
      Add(work, work, work[c], 64, ROWS, {1, 1, 1, Stride(), Stride(), Stride()});
      PipeBarrier<PIPE_V>();
    }
    WholeReduceSum(sum, work, 64, ROWS, 1, 1, Stride());
    PipeBarrier<PIPE_V>();
  }

  TPipe& pipe;
  const uint32_t n;
  const LayerNormTilingData tiling;
  TQue<TPosition::VECIN, 1> inQue, paramQue;
  TQue<TPosition::VECOUT, 1> outQue;
  TBuf<TPosition::VECCALC> fBuf, sqBuf, oneBuf;
  GlobalTensor<half> xGm, yGm;
  GlobalTensor<float> gammaGm, betaGm;
};

extern "C" __global__ __aicore__ void layer_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y,
                                                 GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GET_TILING_DATA_WITH_STRUCT(LayerNormTilingData, data, tiling);
  TPipe pipe;
  KernelLayerNorm op(pipe, data);
  op.Init(x, gamma, beta, y);
  op.Process();
}
