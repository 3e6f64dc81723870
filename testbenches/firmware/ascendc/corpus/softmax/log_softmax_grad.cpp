// The gradient of log softmax: grad - exp(y) * sum(grad), rows as long as the UBuffer takes at once or in
// pieces.
#include "kernel_operator.h"

namespace NsLogSoftmaxGrad {
using namespace AscendC;

struct TilingData {
  int64_t rows;
  int64_t columns;
  int32_t piece;  // a multiple of 64
  int32_t reserved;
};

class Kernel {
 public:
  __aicore__ inline Kernel(TPipe* pipe, const TilingData* td) : td_(td) {
    pipe->InitBuffer(gradQue_, 2, td->piece * sizeof(float));
    pipe->InitBuffer(yQue_, 2, td->piece * sizeof(float));
    pipe->InitBuffer(dxQue_, 2, td->piece * sizeof(float));
    pipe->InitBuffer(sumBuf_, 256);
  }
  __aicore__ inline void Init(GM_ADDR grad, GM_ADDR y, GM_ADDR dx) {
    grad_.SetGlobalBuffer((__gm__ float*)grad, td_->rows * td_->columns);
    y_.SetGlobalBuffer((__gm__ float*)y, td_->rows * td_->columns);
    dx_.SetGlobalBuffer((__gm__ float*)dx, td_->rows * td_->columns);
    grad_.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  }
  __aicore__ inline void Process() {
    for (int64_t row = GetBlockIdx(); row < td_->rows; row += GetBlockNum()) {
      const int64_t at = row * td_->columns;
      const float sum = SumOf(at);
      for (int64_t c = 0; c < td_->columns; c += td_->piece) Piece(at + c, Count(c), sum);
    }
  }

 private:
  __aicore__ inline uint32_t Count(int64_t c) const {
    return static_cast<uint32_t>(min(static_cast<int64_t>(td_->piece), td_->columns - c));
  }
  __aicore__ inline void In(TQue<QuePosition::VECIN, 1>& que, const GlobalTensor<float>& from, uint32_t n) {
    LocalTensor<float> in = que.AllocTensor<float>();
    DataCopyPad(in, from, {1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0});
    que.EnQue(in);
  }
  __aicore__ inline float SumOf(int64_t at) {
    LocalTensor<float> sum = sumBuf_.Get<float>();
    float all = 0;
    for (int64_t c = 0; c < td_->columns; c += td_->piece) {
      In(gradQue_, grad_[at + c], Count(c));
      LocalTensor<float> g = gradQue_.DeQue<float>();
      const SumParams params{1, AlignUp(Count(c), 8u), Count(c)};
      Sum(sum, g, params);
      const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
      SetFlag<HardEvent::V_S>(id);
      WaitFlag<HardEvent::V_S>(id);
      all += sum.GetValue(0);
      gradQue_.FreeTensor(g);
    }
    return all;
  }
  __aicore__ inline void Piece(int64_t at, uint32_t n, float sum) {
    In(gradQue_, grad_[at], n);
    In(yQue_, y_[at], n);
    LocalTensor<float> g = gradQue_.DeQue<float>(), y = yQue_.DeQue<float>(),
                       dx = dxQue_.AllocTensor<float>();
    Exp(dx, y, n);
    PipeBarrier<PIPE_V>();
    Muls(dx, dx, -sum, n);
    PipeBarrier<PIPE_V>();
    dx = dx + g;
    gradQue_.FreeTensor(g);
    yQue_.FreeTensor(y);
    dxQue_.EnQue(dx);
    dx = dxQue_.DeQue<float>();
    DataCopyPad(dx_[at], dx, {1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0});
    dxQue_.FreeTensor(dx);
  }

  const TilingData* td_;
  TQue<QuePosition::VECIN, 1> gradQue_, yQue_;
  TQue<QuePosition::VECOUT, 1> dxQue_;
  TBuf<QuePosition::VECCALC> sumBuf_;
  GlobalTensor<float> grad_, y_, dx_;
};
}  // namespace NsLogSoftmaxGrad

extern "C" __global__ __aicore__ void log_softmax_grad(GM_ADDR grad, GM_ADDR y, GM_ADDR dx, GM_ADDR workspace,
                                                       GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(NsLogSoftmaxGrad::TilingData, td, tiling);
  AscendC::TPipe pipe;
  NsLogSoftmaxGrad::Kernel op(&pipe, &td);
  op.Init(grad, y, dx);
  op.Process();
}
