// -log softmax(x)[target] of each row, and the mean of those whose target counts; rows in pieces, each core's
// sum added up in a fixed order.
#include "kernel_operator.h"
using namespace AscendC;

struct CrossEntropyTiling {
  uint32_t rows, classes;
  uint32_t piece;  // a multiple of 64
  int32_t ignore;
};

class CrossEntropy {
 public:
  __aicore__ inline CrossEntropy(const CrossEntropyTiling& t, TPipe* pipe) : t_(t) {
    pipe->InitBuffer(in_, 2, t.piece * sizeof(float));
    pipe->InitBuffer(work_, t.piece * sizeof(float));
    pipe->InitBuffer(small_, 96 * sizeof(float));
    pipe->InitBuffer(sync_, GetBlockNum() * 32 + 64);
  }
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR target, GM_ADDR loss, GM_ADDR mean, GM_ADDR workspace) {
    x_.SetGlobalBuffer((__gm__ float*)x);
    target_.SetGlobalBuffer((__gm__ int64_t*)target);
    loss_.SetGlobalBuffer((__gm__ float*)loss);
    mean_.SetGlobalBuffer((__gm__ float*)mean);
    order_.SetGlobalBuffer((__gm__ int32_t*)workspace);
    sums_.SetGlobalBuffer((__gm__ float*)workspace + GetBlockNum() * 8);
  }
  __aicore__ inline void Process() {
    LocalTensor<float> small = small_.Get<float>(), result = small[64], all = small[72];
    LocalTensor<int32_t> sync = sync_.Get<int32_t>();
    InitDetermineComputeWorkspace(order_, sync);
    float sum = 0, counted = 0;
    for (uint32_t row = GetBlockIdx(); row < t_.rows; row += GetBlockNum()) {
      const int64_t target = target_.GetValue(row);
      float loss = 0;
      if (target != t_.ignore) {
        loss = LogSumExp(row) - x_.GetValue(row * t_.classes + target);
        sum += loss;
        counted += 1;
      }
      result.SetValue(0, loss);
      SetFlag<HardEvent::S_MTE3>(EVENT_ID3);
      WaitFlag<HardEvent::S_MTE3>(EVENT_ID3);
      DataCopyPad(loss_[row], result, {1, 4, 0, 0, 0});
      SetFlag<HardEvent::MTE3_S>(EVENT_ID3);
      WaitFlag<HardEvent::MTE3_S>(EVENT_ID3);
    }
    // One core after the other adds to the two sums.
    WaitPreBlock(order_, sync);
    DataCopyPad(all, sums_, {1, 8, 0, 0, 0}, {false, 0, 0, 0});
    SetFlag<HardEvent::MTE2_S>(EVENT_ID3);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID3);
    sum += all.GetValue(0);
    counted += all.GetValue(1);
    all.SetValue(0, sum);
    all.SetValue(1, counted);
    result.SetValue(0, counted == 0 ? 0.0f : sum / counted);
    SetFlag<HardEvent::S_MTE3>(EVENT_ID3);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID3);
    DataCopyPad(sums_, all, {1, 8, 0, 0, 0});
    if (GetBlockIdx() == GetBlockNum() - 1) DataCopyPad(mean_, result, {1, 4, 0, 0, 0});
    NotifyNextBlock(order_, sync);
  }

 private:
  __aicore__ inline float Read(const LocalTensor<float>& t) {
    SetFlag<HardEvent::V_S>(EVENT_ID2);
    WaitFlag<HardEvent::V_S>(EVENT_ID2);
    return t.GetValue(0);
  }
  __aicore__ inline float LogSumExp(uint32_t row) {
    LocalTensor<float> work = work_.Get<float>(), one = small_.Get<float>();
    float most = -3.4e38f, sum = 0;
    for (uint32_t c = 0; c < t_.classes; c += t_.piece) {
      const uint32_t n = t_.classes - c < t_.piece ? t_.classes - c : t_.piece;
      LocalTensor<float> x = in_.AllocTensor<float>();
      DataCopyPad(x, x_[row * t_.classes + c], {1, (uint32_t)(n * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0});
      in_.EnQue(x);
      x = in_.DeQue<float>();
      ReduceMax(one, x, work, (int32_t)n);
      const float now = Read(one), next = now > most ? now : most;
      Adds(x, x, -next, n);
      Duplicate(one, most - next, 8);
      PipeBarrier<PIPE_V>();
      Exp(x, x, n);
      Exp(one, one, 8);
      PipeBarrier<PIPE_V>();
      const float factor = Read(one);
      ReduceSum(one, x, work, (int32_t)n);
      sum = sum * factor + Read(one);
      most = next;
      in_.FreeTensor(x);
    }
    one.SetValue(0, sum);
    SetFlag<HardEvent::S_V>(EVENT_ID2);
    WaitFlag<HardEvent::S_V>(EVENT_ID2);
    Ln(one, one, 1);
    return most + Read(one);
  }

  const CrossEntropyTiling t_;
  TQue<TPosition::VECIN, 2> in_;
  TBuf<> work_, small_, sync_;
  GlobalTensor<float> x_, loss_, mean_, sums_;
  GlobalTensor<int64_t> target_;
  GlobalTensor<int32_t> order_;
};

extern "C" __global__ __aicore__ void cross_entropy(GM_ADDR x, GM_ADDR target, GM_ADDR loss, GM_ADDR mean,
                                                    GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  GET_TILING_DATA_WITH_STRUCT(CrossEntropyTiling, t, tiling);
  TPipe pipe;
  CrossEntropy op(t, &pipe);
  op.Init(x, target, loss, mean, GetUserWorkspace(workspace));
  op.Process();
}
