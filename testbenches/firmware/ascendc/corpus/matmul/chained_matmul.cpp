// Y = (A B) C on a cube core, the product of A and B in half in L1 alone: rows that A does not have are
// zeros.
#include "kernel_operator.h"
using namespace AscendC;

struct ChainedTiling {
  uint32_t m, k, n, p;  // m: any, at most 64; the others multiples of 16, at most 128
};

class ChainedMatmul {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR y, const ChainedTiling& t) {
    t_ = t;
    m16_ = CeilAlign(t.m, (uint32_t)BLOCK_CUBE);
    const uint32_t batch = GetBlockIdx();
    a_.SetGlobalBuffer((__gm__ half*)a + batch * t.m * t.k);
    b_.SetGlobalBuffer((__gm__ half*)b);
    c_.SetGlobalBuffer((__gm__ half*)c);
    y_.SetGlobalBuffer((__gm__ float*)y + batch * t.m * t.p);
    pipe_.InitBuffer(a1_, m16_ * t.k * sizeof(half));
    pipe_.InitBuffer(b1_, t.k * t.n * sizeof(half));
    pipe_.InitBuffer(c1_, t.n * t.p * sizeof(half));
    pipe_.InitBuffer(mid1_, m16_ * t.n * sizeof(half));
    pipe_.InitBuffer(a2_, 32 * 1024);
    pipe_.InitBuffer(b2_, 64 * 1024);
    pipe_.InitBuffer(co1_, 64 * 1024);
  }
  __aicore__ inline void Process() {
    LocalTensor<half> a1 = a1_.Get<half>(), b1 = b1_.Get<half>(), c1 = c1_.Get<half>(),
                      mid1 = mid1_.Get<half>();
    LocalTensor<float> co1 = co1_.Get<float>();
    InitConstValueParams<half> zeros;
    zeros.repeatTimes = 1;
    zeros.blockNum = m16_ * t_.k * sizeof(half) / 32;
    zeros.dstGap = 0;
    zeros.initValue = 0;
    InitConstValue(a1, zeros);
    PipeBarrier<PIPE_MTE2>();
    DataCopy(a1, a_, Nd2NzParams(1, t_.m, t_.k, 0, t_.k, m16_, 1, 0));
    DataCopy(b1, b_, Nd2NzParams(1, t_.k, t_.n, 0, t_.n, t_.k, 1, 0));
    DataCopy(c1, c_, Nd2NzParams(1, t_.n, t_.p, 0, t_.p, t_.n, 1, 0));
    SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
    Multiply(co1, a1, b1, t_.k, t_.n);

    FixpipeParamsV220 toL1;
    toL1.mSize = m16_;
    toL1.nSize = t_.n;
    toL1.srcStride = m16_;
    toL1.dstStride = m16_;
    toL1.quantPre = QuantMode_t::F322F16;
    Fixpipe<half, float, CFG_NZ>(mid1, co1, toL1);
    SetFlag<HardEvent::FIX_MTE1>(EVENT_ID0);
    WaitFlag<HardEvent::FIX_MTE1>(EVENT_ID0);
    SetFlag<HardEvent::FIX_M>(EVENT_ID0);
    WaitFlag<HardEvent::FIX_M>(EVENT_ID0);
    SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
    WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
    Multiply(co1, mid1, c1, t_.n, t_.p);

    FixpipeParamsV220 toGm;
    toGm.mSize = t_.m;
    toGm.nSize = t_.p;
    toGm.srcStride = m16_;
    toGm.dstStride = t_.p;
    Fixpipe(y_, co1, toGm);
  }

 private:
  // co1 = x1 y1, both NZ: m16 x depth, depth x width.
  __aicore__ inline void Multiply(const LocalTensor<float>& co1, const LocalTensor<half>& x1,
                                  const LocalTensor<half>& y1, uint32_t depth, uint32_t width) {
    LocalTensor<half> a2 = a2_.Get<half>(), b2 = b2_.Get<half>();
    LoadData2DParams load;
    load.repeatTimes = depth / 16;
    load.srcStride = m16_ / 16;
    for (uint32_t i = 0; i < m16_ / 16; ++i) LoadData(a2[i * 16 * depth], x1[i * CUBE_MAX_SIZE], load);
    load.repeatTimes = width / 16;
    load.srcStride = depth / 16;
    load.ifTranspose = true;
    for (uint32_t i = 0; i < depth / 16; ++i) LoadData(b2[i * 16 * width], y1[i * CUBE_MAX_SIZE], load);
    SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
    WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
    MmadParams mmad;
    mmad.m = m16_;
    mmad.n = width;
    mmad.k = depth;
    Mmad(co1, a2, b2, mmad);
    SetFlag<HardEvent::M_FIX>(EVENT_ID0);
    WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
  }

  ChainedTiling t_;
  uint32_t m16_;
  TPipe pipe_;
  TBuf<TPosition::A1> a1_, mid1_;
  TBuf<TPosition::B1> b1_, c1_;
  TBuf<TPosition::A2> a2_;
  TBuf<TPosition::B2> b2_;
  TBuf<TPosition::CO1> co1_;
  GlobalTensor<half> a_, b_, c_;
  GlobalTensor<float> y_;
};

extern "C" __global__ __cube__ void chained_matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR y,
                                                   GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(ChainedTiling, t, tiling);
  ChainedMatmul op;
  op.Init(a, b, c, y, t);
  op.Process();
}
