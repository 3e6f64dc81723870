// The gradient before a softmax of rows in half, and the sums that it takes off, by the library's calls; the
// angle's tangent on the way, as an activation of the last gradient.
#include "kernel_operator.h"
#include "lib/activation/softmaxgrad.h"
#include "lib/math/tan.h"
using namespace AscendC;

struct SoftmaxGradTiling {
  uint32_t rows, columns, atOnce;  // columns: a multiple of 16
  SoftMaxTiling softmax;
};

class SoftmaxGradKernel {
 public:
  __aicore__ inline SoftmaxGradKernel(GM_ADDR y, GM_ADDR grad, GM_ADDR dx, GM_ADDR sums,
                                      const SoftmaxGradTiling* t, TPipe* pipe)
      : t_(t) {
    y_.SetGlobalBuffer((__gm__ half*)y);
    grad_.SetGlobalBuffer((__gm__ half*)grad);
    dx_.SetGlobalBuffer((__gm__ half*)dx);
    sums_.SetGlobalBuffer((__gm__ half*)sums);
    const uint32_t bytes = t->atOnce * t->columns * sizeof(half);
    pipe->InitBuffer(yQue_, 1, bytes);
    pipe->InitBuffer(gradQue_, 1, bytes);
    pipe->InitBuffer(dxQue_, 1, bytes);
    pipe->InitBuffer(sumQue_, 1, t->atOnce * ONE_BLK_SIZE);
    pipe->InitBuffer(tmp_, 16 * 1024);
  }
  __aicore__ inline void Process() {
    const uint32_t step = t_->atOnce * GetBlockNum();
    for (uint32_t row = GetBlockIdx() * t_->atOnce; row < t_->rows; row += step)
      Rows(row, t_->rows - row < t_->atOnce ? t_->rows - row : t_->atOnce);
  }

 private:
  __aicore__ inline void Rows(uint32_t row, uint32_t rows) {
    const uint32_t n = t_->columns;
    LocalTensor<half> y = yQue_.AllocTensor<half>(), grad = gradQue_.AllocTensor<half>();
    DataCopy(y, y_[row * n], rows * n);
    DataCopy(grad, grad_[row * n], rows * n);
    yQue_.EnQue(y);
    gradQue_.EnQue(grad);
    y = yQue_.DeQue<half>();
    grad = gradQue_.DeQue<half>();
    LocalTensor<half> dx = dxQue_.AllocTensor<half>(), sum = sumQue_.AllocTensor<half>();
    LocalTensor<uint8_t> tmp = tmp_.Get<uint8_t>();
    const SoftMaxShapeInfo shape = {rows, n, rows, n};
    SoftmaxGradFront<half>(sum, grad, y, tmp, t_->softmax, shape);
    SoftmaxGrad<half>(dx, grad, y, tmp, t_->softmax, false, shape);
    Tan(dx, dx, tmp, rows * n);
    dxQue_.EnQue(dx);
    sumQue_.EnQue(sum);
    yQue_.FreeTensor(y);
    gradQue_.FreeTensor(grad);
    dx = dxQue_.DeQue<half>();
    sum = sumQue_.DeQue<half>();
    DataCopy(dx_[row * n], dx, rows * n);
    DataCopy(sums_[row * 16], sum, rows * 16);
    dxQue_.FreeTensor(dx);
    sumQue_.FreeTensor(sum);
  }

  const SoftmaxGradTiling* t_;
  TQue<QuePosition::VECIN, 1> yQue_, gradQue_;
  TQue<QuePosition::VECOUT, 1> dxQue_, sumQue_;
  TBuf<> tmp_;
  GlobalTensor<half> y_, grad_, dx_, sums_;
};

extern "C" __global__ __aicore__ void softmax_grad(GM_ADDR y, GM_ADDR grad, GM_ADDR dx, GM_ADDR sums,
                                                   GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(SoftmaxGradTiling, t, tiling);
  TPipe pipe;
  SoftmaxGradKernel op(y, grad, dx, sums, &t, &pipe);
  op.Process();
}
