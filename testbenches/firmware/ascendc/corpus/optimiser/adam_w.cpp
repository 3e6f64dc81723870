// AdamW in place: parameters of BF16 with moments of float, as one launch over a list of tensors.
#include "kernel_operator.h"
#include "kernel_operator_list_tensor_intf.h"

using namespace AscendC;

struct AdamWTiling {
  float lr, beta1, beta2, eps, decay;
  float correction1, correction2;  // 1 - beta^step
  uint32_t tensors;
  uint32_t tile;
};

class AdamW {
 public:
  __aicore__ inline AdamW(const AdamWTiling& t, TPipe& pipe) : t_(t) {
    pipe.InitBuffer(inParam_, 2, t.tile * sizeof(bfloat16_t));
    pipe.InitBuffer(inGrad_, 2, t.tile * sizeof(bfloat16_t));
    pipe.InitBuffer(inMoments_, 2, 2 * t.tile * sizeof(float));
    pipe.InitBuffer(outParam_, 2, t.tile * sizeof(bfloat16_t));
    pipe.InitBuffer(outMoments_, 2, 2 * t.tile * sizeof(float));
    pipe.InitBuffer(calc_, 3 * t.tile * sizeof(float));
  }
  // All tiles of all tensors go round.
  __aicore__ inline void Process(GM_ADDR params, GM_ADDR grads, GM_ADDR m, GM_ADDR v) {
    ListTensorDesc paramList(reinterpret_cast<__gm__ void*>(params)),
        gradList(reinterpret_cast<__gm__ void*>(grads)), mList(reinterpret_cast<__gm__ void*>(m)),
        vList(reinterpret_cast<__gm__ void*>(v));
    ASSERT(paramList.GetSize() == t_.tensors);
    uint32_t turn = 0;
    for (uint32_t i = 0; i < t_.tensors; ++i) {
      uint64_t shape[8] = {};
      TensorDesc<bfloat16_t> desc;
      desc.SetShapeAddr(shape);
      paramList.GetDesc(desc, i);
      uint64_t count = 1;
      for (uint32_t k = 0; k < desc.GetDim(); ++k) count *= desc.GetShape(k);
      param_.SetGlobalBuffer(paramList.GetDataPtr<bfloat16_t>(i), count);
      grad_.SetGlobalBuffer(gradList.GetDataPtr<bfloat16_t>(i), count);
      m_.SetGlobalBuffer(mList.GetDataPtr<float>(i), count);
      v_.SetGlobalBuffer(vList.GetDataPtr<float>(i), count);
      for (uint64_t at = 0; at < count; at += t_.tile, ++turn) {
        if (turn % GetBlockNum() == GetBlockIdx()) Tile(at, count - at < t_.tile ? count - at : t_.tile);
      }
    }
  }

 private:
  __aicore__ inline void Tile(uint64_t at, uint32_t n) {
    const DataCopyExtParams narrow{1, (uint32_t)(n * sizeof(bfloat16_t)), 0, 0, 0},
        wide{1, (uint32_t)(n * sizeof(float)), 0, 0, 0};
    LocalTensor<bfloat16_t> p = inParam_.AllocTensor<bfloat16_t>(), g = inGrad_.AllocTensor<bfloat16_t>();
    LocalTensor<float> moments = inMoments_.AllocTensor<float>();
    DataCopyPad(p, param_[at], narrow, {false, 0, 0, bfloat16_t(0)});
    DataCopyPad(g, grad_[at], narrow, {false, 0, 0, bfloat16_t(0)});
    DataCopyPad(moments, m_[at], wide, {false, 0, 0, 0.0f});
    DataCopyPad(moments[t_.tile], v_[at], wide, {false, 0, 0, 0.0f});
    inParam_.EnQue(p);
    inGrad_.EnQue(g);
    inMoments_.EnQue(moments);
    p = inParam_.DeQue<bfloat16_t>();
    g = inGrad_.DeQue<bfloat16_t>();
    moments = inMoments_.DeQue<float>();
    LocalTensor<float> next = outMoments_.AllocTensor<float>(), fp = calc_.Get<float>(), fg = fp[t_.tile],
                       step = fg[t_.tile];
    LocalTensor<float> m = next, v = next[t_.tile];
    Cast(fp, p, RoundMode::CAST_NONE, n);
    Cast(fg, g, RoundMode::CAST_NONE, n);
    inParam_.FreeTensor(p);
    inGrad_.FreeTensor(g);
    PipeBarrier<PIPE_V>();
    Muls(m, moments, t_.beta1, n);
    Muls(v, moments[t_.tile], t_.beta2, n);
    PipeBarrier<PIPE_V>();
    Axpy(m, fg, 1 - t_.beta1, n);
    Mul(fg, fg, fg, n);
    PipeBarrier<PIPE_V>();
    Axpy(v, fg, 1 - t_.beta2, n);
    inMoments_.FreeTensor(moments);
    Muls(fp, fp, 1 - t_.lr * t_.decay, n);
    PipeBarrier<PIPE_V>();
    Muls(step, v, 1 / t_.correction2, n);
    PipeBarrier<PIPE_V>();
    Sqrt(step, step, n);
    PipeBarrier<PIPE_V>();
    Adds(step, step, t_.eps, n);
    PipeBarrier<PIPE_V>();
    Div(step, m, step, n);
    PipeBarrier<PIPE_V>();
    Axpy(fp, step, -t_.lr / t_.correction1, n);
    PipeBarrier<PIPE_V>();
    LocalTensor<bfloat16_t> out = outParam_.AllocTensor<bfloat16_t>();
    Cast(out, fp, RoundMode::CAST_RINT, n);
    outParam_.EnQue(out);
    outMoments_.EnQue(next);
    out = outParam_.DeQue<bfloat16_t>();
    next = outMoments_.DeQue<float>();
    DataCopyPad(param_[at], out, narrow);
    DataCopyPad(m_[at], next, wide);
    DataCopyPad(v_[at], next[t_.tile], wide);
    outParam_.FreeTensor(out);
    outMoments_.FreeTensor(next);
  }

  const AdamWTiling t_;
  TQue<QuePosition::VECIN, 2> inParam_, inGrad_, inMoments_;
  TQue<QuePosition::VECOUT, 2> outParam_, outMoments_;
  TBuf<QuePosition::VECCALC> calc_;
  GlobalTensor<bfloat16_t> param_, grad_;
  GlobalTensor<float> m_, v_;
};

extern "C" __global__ __aicore__ void adam_w(GM_ADDR params, GM_ADDR grads, GM_ADDR m, GM_ADDR v,
                                             GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(AdamWTiling, t, tiling);
  TPipe pipe;
  AdamW op(t, pipe);
  op.Process(params, grads, m, v);
}
