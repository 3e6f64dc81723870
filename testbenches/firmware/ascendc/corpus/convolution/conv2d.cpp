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
    LoadData3DParamsV2<half> load;
    load.l1H = t_.height;
    load.l1W = t_.width;
    load.padList[0] = load.padList[1] = load.padList[2] = load.padList[3] = t_.pad;
    load.channelSize = t_.c1 * 16;
    load.kExtension = k_;
    load.mExtension = mAligned_;
    load.kStartPt = 0;
    load.mStartPt = 0;
    load.strideW = t_.stride;
    load.strideH = t_.stride;
    load.filterW = t_.kernel;
    load.filterH = t_.kernel;
    load.dilationFilterW = t_.dilation;
    load.dilationFilterH = t_.dilation;
    load.enTranspose = false;
    load.enSmallK = false;
    load.padValue = half(0.0f);
    static constexpr IsResetLoad3dConfig LOAD3D_CONFIG = {false, false};
    LoadData<half, LOAD3D_CONFIG>(a2, a1, load);
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
