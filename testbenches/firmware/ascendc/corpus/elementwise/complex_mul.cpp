// Products of complex numbers that stand as pairs: real and imaginary parts gathered apart by patterns, and
// back into pairs by offsets; parts of the UBuffer from a pool.
#include "kernel_operator.h"
using namespace AscendC;

struct ComplexTiling {
  uint32_t count;  // of a core, a multiple of 64, at most 64 * 127
};

class ComplexMul {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR y, uint32_t count) {
    n_ = count;
    a_.SetGlobalBuffer((__gm__ float*)a + GetBlockIdx() * 2 * n_, 2 * n_);
    b_.SetGlobalBuffer((__gm__ float*)b + GetBlockIdx() * 2 * n_, 2 * n_);
    y_.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * 2 * n_, 2 * n_);
    pipe_.InitBufPool(pool_, 6 * n_ * sizeof(float));
    pool_.InitBuffer(inA_, 1, 2 * n_ * sizeof(float));
    pool_.InitBuffer(inB_, 1, 2 * n_ * sizeof(float));
    pool_.InitBuffer(out_, 1, 2 * n_ * sizeof(float));
    pipe_.InitBuffer(parts_, 6 * n_ * sizeof(float));
    pipe_.InitBuffer(offset_, 2 * n_ * sizeof(uint32_t));
    // 0, n, 1, n + 1, ..: in bytes.
    LocalTensor<int32_t> offset = offset_.Get<int32_t>();
    CreateVecIndex(offset, 0, 2 * n_);
    PipeBarrier<PIPE_V>();
    ShiftRight(offset, offset, 1, 2 * n_);
    PipeBarrier<PIPE_V>();
    uint64_t odd[] = {0xaaaaaaaaaaaaaaaa, 0};
    Adds(offset, offset, (int32_t)n_, odd, 2 * n_ / 64, {1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    Muls(offset, offset, 4, 2 * n_);
    PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void Process() {
    LocalTensor<float> a = inA_.AllocTensor<float>(), b = inB_.AllocTensor<float>();
    DataCopy(a, a_, 2 * n_);
    DataCopy(b, b_, 2 * n_);
    inA_.EnQue(a);
    inB_.EnQue(b);
    Compute();
    LocalTensor<float> y = out_.DeQue<float>();
    DataCopy(y_, y, 2 * n_);
    out_.FreeTensor(y);
  }

 private:
  __aicore__ inline void Compute() {
    LocalTensor<float> a = inA_.DeQue<float>(), b = inB_.DeQue<float>(), y = out_.AllocTensor<float>();
    LocalTensor<float> ar = parts_.Get<float>(), ai = ar[n_], br = ai[n_], bi = br[n_], yr = bi[n_],
                       yi = yr[n_];
    GatherMaskParams params{1, (uint16_t)(2 * n_ / 64), 8, 0};
    uint64_t kept = 0;
    GatherMask(ar, a, (uint8_t)1, false, (uint32_t)0, params, kept);
    ASSERT(kept == n_);
    GatherMask(ai, a, (uint8_t)2, false, (uint32_t)0, params, kept);
    GatherMask(br, b, (uint8_t)1, false, (uint32_t)0, params, kept);
    GatherMask(bi, b, (uint8_t)2, false, (uint32_t)0, params, kept);
    PipeBarrier<PIPE_V>();
    Mul(yr, ai, bi, n_);
    Mul(yi, ai, br, n_);
    PipeBarrier<PIPE_V>();
    Muls(yr, yr, -1.0f, n_);
    PipeBarrier<PIPE_V>();
    FusedMulAdd(ar, br, yr, n_);  // ar = br * ar + yr
    PipeBarrier<PIPE_V>();
    DataCopy(yr, ar, n_);
    // ar is taken: its values again.
    GatherMask(ar, a, (uint8_t)1, false, (uint32_t)0, params, kept);
    PipeBarrier<PIPE_V>();
    MulAddDst(yi, ar, bi, n_);
    PipeBarrier<PIPE_V>();
    Gather(y, yr, offset_.Get<uint32_t>(), (uint32_t)0, 2 * n_);
    inA_.FreeTensor(a);
    inB_.FreeTensor(b);
    out_.EnQue(y);
    DumpTensor(yr, 5, n_);
    if (GetBlockIdx() == 0)
      PRINTF("block %d of %d: %u numbers\n", (int)GetBlockIdx(), (int)GetBlockNum(), n_);
  }

  uint32_t n_;
  TPipe pipe_;
  TBufPool<TPosition::VECCALC, 8> pool_;
  TQue<TPosition::VECIN, 1> inA_, inB_;
  TQue<TPosition::VECOUT, 1> out_;
  TBuf<> parts_, offset_;
  GlobalTensor<float> a_, b_, y_;
};

extern "C" __global__ __aicore__ void complex_mul(GM_ADDR a, GM_ADDR b, GM_ADDR y, uint32_t count) {
  ComplexMul op;
  op.Init(a, b, y, count);
  op.Process();
}
