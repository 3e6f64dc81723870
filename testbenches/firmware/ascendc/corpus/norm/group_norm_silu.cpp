// silu(GroupNorm(x)) of [n, c, hw]: a group of channels at a time, sums by pieces, scale and shift of each
// channel by the scalar unit.
#include "kernel_operator.h"
#include "lib/activation/silu.h"
using namespace AscendC;

struct GroupNormTiling {
  uint32_t n, c, hw, groups;  // hw: a multiple of 8
  float eps;
};

class GroupNormSilu {
 public:
  __aicore__ inline GroupNormSilu(const GroupNormTiling& t, TPipe* pipe) : t_(t), per_(t.c / t.groups) {
    pipe->InitBuffer(in_, 1, per_ * t.hw * sizeof(float));
    pipe->InitBuffer(out_, 1, per_ * t.hw * sizeof(float));
    pipe->InitBuffer(work_, per_ * t.hw * sizeof(float));
    pipe->InitBuffer(sums_, 64 * sizeof(float));
    pipe->InitBuffer(tmp_, 16 * 1024);
  }
  __aicore__ inline void Process(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y) {
    x_.SetGlobalBuffer((__gm__ float*)x);
    y_.SetGlobalBuffer((__gm__ float*)y);
    gamma_.SetGlobalBuffer((__gm__ float*)gamma, t_.c);
    beta_.SetGlobalBuffer((__gm__ float*)beta, t_.c);
    for (uint32_t i = GetBlockIdx(); i < t_.n * t_.groups; i += GetBlockNum()) Group(i);
  }

 private:
  __aicore__ inline void Group(uint32_t i) {
    const uint32_t all = per_ * t_.hw;
    LocalTensor<float> x = in_.AllocTensor<float>(), y = out_.AllocTensor<float>();
    DataCopy(x, x_[i * all], all);
    in_.EnQue(x);
    x = in_.DeQue<float>();
    LocalTensor<float> work = work_.Get<float>(), sums = sums_.Get<float>();
    const float mean = Sum(sums, x, work, all) / all;
    Adds(x, x, -mean, all);
    PipeBarrier<PIPE_V>();
    Mul(work, x, x, all);
    PipeBarrier<PIPE_V>();
    const float rstd = 1.0f / sqrt(Sum(sums, work, work, all) / all + t_.eps);
    for (uint32_t c = 0; c < per_; ++c) {
      const uint32_t channel = i % t_.groups * per_ + c;
      Muls(x[c * t_.hw], x[c * t_.hw], rstd * gamma_.GetValue(channel), t_.hw);
      PipeBarrier<PIPE_V>();
      Adds(x[c * t_.hw], x[c * t_.hw], beta_.GetValue(channel), t_.hw);
      PipeBarrier<PIPE_V>();
    }
    Silu<float>(y, x, all);
    out_.EnQue(y);
    in_.FreeTensor(x);
    y = out_.DeQue<float>();
    DataCopy(y_[i * all], y, all);
    out_.FreeTensor(y);
  }
  __aicore__ inline float Sum(const LocalTensor<float>& one, const LocalTensor<float>& x,
                              const LocalTensor<float>& work, uint32_t n) {
    ReduceSum(one, x, work, static_cast<int32_t>(n));
    TEventID id = GetTPipePtr()->AllocEventID<HardEvent::V_S>();
    SetFlag<HardEvent::V_S>(id);
    WaitFlag<HardEvent::V_S>(id);
    GetTPipePtr()->ReleaseEventID<HardEvent::V_S>(id);
    return one.GetValue(0);
  }

  const GroupNormTiling t_;
  const uint32_t per_;
  TQue<QuePosition::VECIN, 1> in_;
  TQue<QuePosition::VECOUT, 1> out_;
  TBuf<> work_, sums_, tmp_;
  GlobalTensor<float> x_, y_, gamma_, beta_;
};

extern "C" __global__ __aicore__ void group_norm_silu(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y,
                                                      GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(GroupNormTiling, t, tiling);
  TPipe pipe;
  GroupNormSilu op(t, &pipe);
  op.Process(x, gamma, beta, y);
}
