// Elements above a threshold, one behind the other, and how many there are: compared to bits, gathered by
// them; cores tell each other how many they have.
#include "kernel_operator.h"
using namespace AscendC;

struct MaskedSelectTiling {
  uint32_t perCore;  // a multiple of 64, at most 4096
  float above;
};

extern "C" __global__ __aicore__ void masked_select(GM_ADDR x, GM_ADDR y, GM_ADDR count, GM_ADDR workspace,
                                                    GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  GET_TILING_DATA_WITH_STRUCT(MaskedSelectTiling, t, tiling);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<> bits, counts;
  pipe.InitBuffer(in, 1, t.perCore * sizeof(float));
  pipe.InitBuffer(out, 1, t.perCore * sizeof(float));
  pipe.InitBuffer(bits, t.perCore / 8 + 256);
  pipe.InitBuffer(counts, 64 * 32);
  GlobalTensor<float> xGm, yGm;
  GlobalTensor<uint32_t> counted;
  xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * t.perCore, t.perCore);
  counted.SetGlobalBuffer((__gm__ uint32_t*)workspace);

  LocalTensor<float> xl = in.AllocTensor<float>(), yl = out.AllocTensor<float>();
  DataCopy(xl, xGm, t.perCore);
  in.EnQue(xl);
  xl = in.DeQue<float>();
  LocalTensor<uint8_t> mask = bits.Get<uint8_t>();
  CompareScalar(mask, xl, t.above, CMPMODE::GT, t.perCore);
  PipeBarrier<PIPE_V>();
  GatherMaskParams params;
  params.src0BlockStride = 1;
  params.repeatTimes = 1;
  params.src0RepeatStride = 8;
  params.src1RepeatStride = 1;
  uint64_t kept = 0;
  GatherMask(yl, xl, mask.ReinterpretCast<uint32_t>(), true, t.perCore, params, kept);
  PipeBarrier<PIPE_V>();
  out.EnQue(yl);
  in.FreeTensor(xl);

  LocalTensor<uint32_t> all = counts.Get<uint32_t>();
  Duplicate(all, static_cast<uint32_t>(kept), 8);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID6);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID6);
  DataCopy(counted[GetBlockIdx() * 8], all, 8);
  SyncAll();
  DataCopy(all, counted, GetBlockNum() * 8);
  SetFlag<HardEvent::MTE2_S>(EVENT_ID6);
  WaitFlag<HardEvent::MTE2_S>(EVENT_ID6);
  uint32_t before = 0;
  for (int64_t core = 0; core < GetBlockIdx(); ++core) before += all.GetValue(core * 8);
  yGm.SetGlobalBuffer((__gm__ float*)y + before);
  yl = out.DeQue<float>();
  if (kept != 0) DataCopyPad(yGm, yl, {1, static_cast<uint32_t>(kept * sizeof(float)), 0, 0, 0});
  out.FreeTensor(yl);
  if (GetBlockIdx() == GetBlockNum() - 1) {
    GlobalTensor<int64_t> result;
    result.SetGlobalBuffer((__gm__ int64_t*)count);
    result.SetValue(0, before + kept);
    DataCacheCleanAndInvalid<int64_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(result);
  }
}
