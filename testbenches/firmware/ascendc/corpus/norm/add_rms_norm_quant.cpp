// x = a + b; y = RmsNorm(x) * gamma quantised to int8 with a scale of its own for each row.
#include "kernel_operator.h"
#include "lib/normalization/rmsnorm.h"

using namespace AscendC;

#pragma pack(push, 8)
struct AddRmsNormQuantTiling {
  uint32_t rows;
  uint32_t hidden;
  uint32_t perCore;
  float eps;
  RmsNormTiling norm;
};
#pragma pack(pop)

template <typename T>
class AddRmsNormQuant {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR gamma, GM_ADDR q, GM_ADDR sum, GM_ADDR scale,
                              AddRmsNormQuantTiling* t, TPipe* pipe) {
    t_ = t;
    aGm_.SetGlobalBuffer((__gm__ T*)a);
    bGm_.SetGlobalBuffer((__gm__ T*)b);
    gammaGm_.SetGlobalBuffer((__gm__ T*)gamma);
    qGm_.SetGlobalBuffer((__gm__ int8_t*)q);
    sumGm_.SetGlobalBuffer((__gm__ T*)sum);
    scaleGm_.SetGlobalBuffer((__gm__ float*)scale);
    pipe->InitBuffer(inA_, 2, t->hidden * sizeof(T));
    pipe->InitBuffer(inB_, 2, t->hidden * sizeof(T));
    pipe->InitBuffer(outSum_, 2, t->hidden * sizeof(T));
    pipe->InitBuffer(outQ_, 2, t->hidden * sizeof(int8_t));
    pipe->InitBuffer(gamma_, t->hidden * sizeof(float));
    pipe->InitBuffer(x_, t->hidden * sizeof(float));
    pipe->InitBuffer(y_, t->hidden * sizeof(float));
    pipe->InitBuffer(h_, t->hidden * sizeof(half));
    pipe->InitBuffer(scale_, 32);
    pipe->InitBuffer(tmp_, 24 * 1024);
  }
  __aicore__ inline void Process() {
    const int32_t n = t_->hidden;
    LocalTensor<float> gamma = gamma_.Get<float>();
    LocalTensor<T> g = inA_.AllocTensor<T>();
    DataCopy(g, gammaGm_, n);
    inA_.EnQue(g);
    g = inA_.DeQue<T>();
    Cast(gamma, g, RoundMode::CAST_NONE, n);
    inA_.FreeTensor(g);
    const uint32_t first = GetBlockIdx() * t_->perCore;
    for (uint32_t row = first; row < first + t_->perCore && row < t_->rows; ++row) {
      LocalTensor<T> a = inA_.AllocTensor<T>(), b = inB_.AllocTensor<T>();
      DataCopy(a, aGm_[row * n], n);
      DataCopy(b, bGm_[row * n], n);
      inA_.EnQue(a);
      inB_.EnQue(b);
      a = inA_.DeQue<T>();
      b = inB_.DeQue<T>();
      LocalTensor<float> x = x_.Get<float>(), y = y_.Get<float>();
      LocalTensor<half> h = h_.Get<half>();
      LocalTensor<T> sum = outSum_.AllocTensor<T>();
      Cast(x, a, RoundMode::CAST_NONE, n);
      Cast(y, b, RoundMode::CAST_NONE, n);
      PipeBarrier<PIPE_V>();
      Add(x, x, y, n);
      PipeBarrier<PIPE_V>();
      Cast(sum, x, RoundMode::CAST_RINT, n);
      PipeBarrier<PIPE_V>();
      Cast(x, sum, RoundMode::CAST_NONE, n);
      inA_.FreeTensor(a);
      inB_.FreeTensor(b);
      outSum_.EnQue(sum);
      PipeBarrier<PIPE_V>();
      LocalTensor<uint8_t> tmp = tmp_.Get<uint8_t>();
      RmsNorm<float, false>(y, x, gamma, tmp, t_->eps, t_->norm);
      PipeBarrier<PIPE_V>();

      Abs(x, y, n);
      PipeBarrier<PIPE_V>();
      ReduceMax(x, x, x, n, false);
      event_t e = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
      SetFlag<HardEvent::V_S>(e);
      WaitFlag<HardEvent::V_S>(e);
      const float scale = 127.0f / x.GetValue(0);
      LocalTensor<float> scaleLocal = scale_.Get<float>();
      PipeBarrier<PIPE_MTE3>();
      event_t f = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE3_S));
      SetFlag<HardEvent::MTE3_S>(f);
      WaitFlag<HardEvent::MTE3_S>(f);
      scaleLocal.SetValue(0, 1.0f / scale);
      event_t s = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_MTE3));
      SetFlag<HardEvent::S_MTE3>(s);
      WaitFlag<HardEvent::S_MTE3>(s);
      DataCopyPad(scaleGm_[row], scaleLocal, DataCopyExtParams(1, sizeof(float), 0, 0, 0));

      Muls(y, y, scale, n);
      PipeBarrier<PIPE_V>();
      LocalTensor<int32_t> whole = x.template ReinterpretCast<int32_t>();
      Cast(whole, y, RoundMode::CAST_RINT, n);
      PipeBarrier<PIPE_V>();
      SetDeqScale(static_cast<half>(1.000000e+00f));
      Cast(h, whole, RoundMode::CAST_ROUND, n);
      PipeBarrier<PIPE_V>();
      LocalTensor<int8_t> q = outQ_.AllocTensor<int8_t>();
      Cast(q, h, RoundMode::CAST_TRUNC, n);
      outQ_.EnQue(q);
      q = outQ_.DeQue<int8_t>();
      sum = outSum_.DeQue<T>();
      DataCopy(qGm_[row * n], q, n);
      DataCopy(sumGm_[row * n], sum, n);
      outQ_.FreeTensor(q);
      outSum_.FreeTensor(sum);
    }
  }

 private:
  AddRmsNormQuantTiling* t_;
  TQue<TPosition::VECIN, 2> inA_, inB_;
  TQue<TPosition::VECOUT, 2> outSum_, outQ_;
  TBuf<> gamma_, x_, y_, h_, scale_, tmp_;
  GlobalTensor<T> aGm_, bGm_, gammaGm_, sumGm_;
  GlobalTensor<int8_t> qGm_;
  GlobalTensor<float> scaleGm_;
};

extern "C" __global__ __aicore__ void add_rms_norm_quant(GM_ADDR a, GM_ADDR b, GM_ADDR gamma, GM_ADDR q,
                                                         GM_ADDR sum, GM_ADDR scale, GM_ADDR workspace,
                                                         GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(AddRmsNormQuantTiling);
  GET_TILING_DATA_WITH_STRUCT(AddRmsNormQuantTiling, t, tiling);
  TPipe pipe;
  AddRmsNormQuant<bfloat16_t> op;
  op.Init(a, b, gamma, q, sum, scale, &t, &pipe);
  op.Process();
}
