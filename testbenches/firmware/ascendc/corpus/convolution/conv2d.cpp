// Convolution of NC1HWC0 with a filter of any size on cube cores: the picture of a block of output rows in
// L1, three-dimensional loads to L0A, the filter as fractals, row by row of the output to memory.
#include "kernel_operator.h"
using namespace AscendC;

struct Conv2dTiling {
  uint32_t c1;  // channels / 16
  uint32_t height, width;
  uint32_t outHeight, outWidth;
  uint32_t cout;  // a multiple of 16
  uint32_t kernel, stride, pad, dilation;
};

class Conv2d {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR y, const Conv2dTiling& t) {
    t_ = t;
    k_ = t.c1 * t.kernel * t.kernel * 16;
    m_ = t.outHeight * t.outWidth;
    mAligned_ = AlignUp(m_, 16u);
    x_.SetGlobalBuffer((__gm__ half*)x);
    w_.SetGlobalBuffer((__gm__ half*)w);
    y_.SetGlobalBuffer((__gm__ float*)y);
    pipe_.InitBuffer(a1_, 1, t.c1 * t.height * t.width * 16 * sizeof(half));
    pipe_.InitBuffer(b1_, 1, k_ * t.cout * sizeof(half));
    pipe_.InitBuffer(a2_, 1, mAligned_ * k_ * sizeof(half));
    pipe_.InitBuffer(b2_, 1, k_ * t.cout * sizeof(half));
    pipe_.InitBuffer(co1_, 1, mAligned_ * t.cout * sizeof(float));
  }
  // A picture a block.
  __aicore__ inline void Process() {
    CopyIn();
    Load();
    Compute();
    CopyOut();
  }

 private:
  __aicore__ inline void CopyIn() {
    LocalTensor<half> a1 = a1_.AllocTensor<half>(), b1 = b1_.AllocTensor<half>();
    const uint32_t picture = t_.c1 * t_.height * t_.width * 16;
    DataCopy(a1, x_[GetBlockIdx() * picture], picture);
    // The filter stands as fractals of [k / 16, cout / 16, 16 columns, 16 of k].
    DataCopy(b1, w_, k_ * t_.cout);
    a1_.EnQue(a1);
    b1_.EnQue(b1);
  }
  __aicore__ inline void Load() {
    LocalTensor<half> a1 = a1_.DeQue<half>(), b1 = b1_.DeQue<half>(), a2 = a2_.AllocTensor<half>(),
                      b2 = b2_.AllocTensor<half>();
    const uint8_t padList[4] = {(uint8_t)t_.pad, (uint8_t)t_.pad, (uint8_t)t_.pad, (uint8_t)t_.pad};
    SetFmatrix(t_.height, t_.width, padList, FmatrixMode::FMATRIX_LEFT);
    SetLoadDataPaddingValue<half>(half(0.0f));
    static constexpr IsResetLoad3dConfig LOAD3D_CONFIG = {false, false};
    LoadData<half, LOAD3D_CONFIG>(
        a2, a1,
        {padList, t_.height, t_.width, (uint16_t)(t_.c1 * 16), k_, mAligned_, 0, 0, t_.stride, t_.stride,
         t_.kernel, t_.kernel, t_.dilation, t_.dilation, false, false, half(0.0f)});
    LoadData2DParams filter;
    filter.repeatTimes = k_ / 16 * (t_.cout / 16);
    filter.srcStride = 1;
    LoadData(b2, b1, filter);
    a2_.EnQue(a2);
    b2_.EnQue(b2);
    a1_.FreeTensor(a1);
    b1_.FreeTensor(b1);
  }
  __aicore__ inline void Compute() {
    LocalTensor<half> a2 = a2_.DeQue<half>(), b2 = b2_.DeQue<half>();
    LocalTensor<float> co1 = co1_.AllocTensor<float>();
    MmadParams mmad;
    mmad.m = mAligned_;
    mmad.n = t_.cout;
    mmad.k = k_;
    Mmad(co1, a2, b2, mmad);
    co1_.EnQue(co1);
    a2_.FreeTensor(a2);
    b2_.FreeTensor(b2);
  }
  __aicore__ inline void CopyOut() {
    LocalTensor<float> co1 = co1_.DeQue<float>();
    FixpipeParamsV220 fixpipe;
    fixpipe.nSize = t_.cout;
    fixpipe.mSize = m_;
    fixpipe.srcStride = mAligned_;
    fixpipe.dstStride = t_.cout;
    Fixpipe(y_[GetBlockIdx() * m_ * t_.cout], co1, fixpipe);
    co1_.FreeTensor(co1);
  }

  Conv2dTiling t_;
  uint32_t k_, m_, mAligned_;
  TPipe pipe_;
  TQue<TPosition::A1, 1> a1_;
  TQue<TPosition::B1, 1> b1_;
  TQue<TPosition::A2, 1> a2_;
  TQue<TPosition::B2, 1> b2_;
  TQue<TPosition::CO1, 1> co1_;
  GlobalTensor<half> x_, w_;
  GlobalTensor<float> y_;
};

extern "C" __global__ __aicore__ void conv2d(GM_ADDR x, GM_ADDR w, GM_ADDR y, GM_ADDR workspace,
                                             GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GET_TILING_DATA_WITH_STRUCT(Conv2dTiling, t, tiling);
  Conv2d op;
  op.Init(x, w, y, t);
  op.Process();
}
