// gelu(A[b] B[b]) in half by groups, without Matmul<>: the cube core writes tiles of float to the workspace,
// two places in turn, each vector core takes half of a tile's rows.
#include "kernel_operator.h"
#include "lib/activation/gelu.h"
using namespace AscendC;

struct BatchMatmulTiling {
  uint32_t batch, m, n, k;  // m: 64 at most and a multiple of 32; n, k: multiples of 16, 128 at most
};

namespace {
constexpr uint16_t SYNC_AIC_AIV_FLAG = 3, SYNC_AIV_AIC_FLAG = 5;

class CubePart {
 public:
  __aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GlobalTensor<float> workspace,
                             const BatchMatmulTiling& t) {
    GlobalTensor<half> aGm, bGm;
    aGm.SetGlobalBuffer((__gm__ half*)a);
    bGm.SetGlobalBuffer((__gm__ half*)b);
    // Buffers by hand: offsets in L1, L0A, L0B and L0C.
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    pipe.InitBuffer(l1, 256 * 1024);
    pipe.InitBuffer(l0a, 64 * 1024);
    pipe.InitBuffer(l0b, 64 * 1024);
    pipe.InitBuffer(l0c, 128 * 1024);
    LocalTensor<half> a1 = l1.Get<half>(), b1 = a1[t.m * t.k], a2 = l0a.Get<half>(), b2 = l0b.Get<half>();
    LocalTensor<float> c = l0c.Get<float>();
    SetFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
    SetFlag<HardEvent::FIX_M>(EVENT_ID0);
    uint32_t turn = 0;
    for (uint32_t batch = GetBlockIdx(); batch < t.batch; batch += GetBlockNum(), ++turn) {
      WaitFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
      DataCopy(a1, aGm[batch * t.m * t.k],
               {1, (uint16_t)t.m, (uint16_t)t.k, 0, (uint16_t)t.k, (uint16_t)t.m, 1, 0});
      DataCopy(b1, bGm[batch * t.k * t.n],
               {1, (uint16_t)t.k, (uint16_t)t.n, 0, (uint16_t)t.n, (uint16_t)t.k, 1, 0});
      SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
      WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
      for (uint32_t i = 0; i < t.m / 16; ++i)
        LoadData(a2[i * 16 * t.k], a1[i * 256],
                 LoadData2DParams{0, (uint8_t)(t.k / 16), (uint16_t)(t.m / 16), 0, 0, false, inc});
      for (uint32_t i = 0; i < t.k / 16; ++i)
        LoadData(b2[i * 16 * t.n], b1[i * 256],
                 LoadData2DParams{0, (uint8_t)(t.n / 16), (uint16_t)(t.k / 16), 0, 0, true, inc});
      SetFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
      SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
      WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
      WaitFlag<HardEvent::FIX_M>(EVENT_ID0);
      Mmad(c, a2, b2, MmadParams((uint16_t)t.m, (uint16_t)t.n, (uint16_t)t.k, 0, false, true));
      SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
      SetFlag<HardEvent::M_FIX>(EVENT_ID0);
      WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
      if (turn >= 2) CrossCoreWaitFlag(SYNC_AIV_AIC_FLAG);
      FixpipeParamsV220 fixpipeParams;
      fixpipeParams.nSize = t.n;
      fixpipeParams.mSize = t.m;
      fixpipeParams.srcStride = t.m;
      fixpipeParams.dstStride = t.n;
      fixpipeParams.ndNum = 1;
      Fixpipe<float, float, CFG_ROW_MAJOR>(workspace[turn % 2 * t.m * t.n], c, fixpipeParams);
      SetFlag<HardEvent::FIX_M>(EVENT_ID0);
      CrossCoreSetFlag<0x2, PIPE_FIX>(SYNC_AIC_AIV_FLAG);
    }
    for (uint32_t i = 0; i < 2 && i < turn; ++i) CrossCoreWaitFlag(SYNC_AIV_AIC_FLAG);
    WaitFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
    WaitFlag<HardEvent::FIX_M>(EVENT_ID0);
  }

 private:
  static constexpr uint8_t inc = 0;
};

class VectorPart {
 public:
  __aicore__ inline void Run(GM_ADDR c, GlobalTensor<float> workspace, const BatchMatmulTiling& t) {
    const uint32_t rows = t.m / 2, all = rows * t.n;
    GlobalTensor<half> cGm;
    cGm.SetGlobalBuffer((__gm__ half*)c);
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> out;
    TBuf<> wide;
    pipe.InitBuffer(in, 2, all * sizeof(float));
    pipe.InitBuffer(out, 2, all * sizeof(half));
    pipe.InitBuffer(wide, all * sizeof(float));
    uint32_t turn = 0;
    for (uint32_t batch = GetBlockIdx() / GetTaskRation(); batch < t.batch; batch += GetBlockNum(), ++turn) {
      CrossCoreWaitFlag<0x2>(SYNC_AIC_AIV_FLAG);
      LocalTensor<float> x = in.AllocTensor<float>();
      DataCopy(x, workspace[turn % 2 * t.m * t.n + GetSubBlockIdx() * all], all);
      in.EnQue(x);
      CrossCoreSetFlag<0x2, PIPE_MTE2>(SYNC_AIV_AIC_FLAG);
      x = in.DeQue<float>();
      LocalTensor<float> y = wide.Get<float>();
      LocalTensor<half> h = out.AllocTensor<half>();
      Gelu<float, true, false>(y, x, all);
      PipeBarrier<PIPE_V>();
      Cast(h, y, RoundMode::CAST_RINT, all);
      in.FreeTensor(x);
      out.EnQue(h);
      h = out.DeQue<half>();
      DataCopy(cGm[batch * t.m * t.n + GetSubBlockIdx() * all], h, all);
      out.FreeTensor(h);
    }
  }
};
}  // namespace

extern "C" __global__ __aicore__ void batch_matmul_gelu(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace,
                                                        GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GET_TILING_DATA_WITH_STRUCT(BatchMatmulTiling, t, tiling);
  GlobalTensor<float> places;
  places.SetGlobalBuffer((__gm__ float*)GetUserWorkspace(workspace) + get_block_idx() * 2 * t.m * t.n);
  if ASCEND_IS_AIC {
    CubePart part;
    part.Run(a, b, places, t);
  }
  if ASCEND_IS_AIV {
    VectorPart part;
    part.Run(c, places, t);
  }
}
