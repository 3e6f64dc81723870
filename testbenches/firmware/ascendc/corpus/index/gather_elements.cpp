// y[i][j] = x[i][index[i][j]] within rows that fit the UBuffer, of 2 or 4 bytes: offsets in bytes for Gather.
#include "kernel_operator.h"

template <typename T>
class GatherElements {
 public:
  __aicore__ inline GatherElements() {}
  __aicore__ inline void Process(GM_ADDR x, GM_ADDR index, GM_ADDR y, uint32_t rows, uint32_t width,
                                 uint32_t chosen) {
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> xQue, iQue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> yQue;
    pipe.InitBuffer(xQue, 2, AscendC::AlignUp(width * sizeof(T), 32));
    pipe.InitBuffer(iQue, 2, AscendC::AlignUp(chosen * sizeof(int32_t), 32));
    pipe.InitBuffer(yQue, 2, AscendC::AlignUp(chosen * sizeof(T), 32));
    AscendC::GlobalTensor<T> xGm, yGm;
    AscendC::GlobalTensor<int32_t> iGm;
    xGm.SetGlobalBuffer((__gm__ T*)x);
    yGm.SetGlobalBuffer((__gm__ T*)y);
    iGm.SetGlobalBuffer((__gm__ int32_t*)index);
    for (uint32_t row = AscendC::GetBlockIdx(); row < rows; row += AscendC::GetBlockNum()) {
      auto xl = xQue.AllocTensor<T>();
      auto il = iQue.AllocTensor<int32_t>();
      AscendC::DataCopyPad(xl, xGm[row * width], {1, static_cast<uint32_t>(width * sizeof(T)), 0, 0, 0},
                           {false, 0, 0, 0});
      AscendC::DataCopyPad(il, iGm[row * chosen],
                           {1, static_cast<uint32_t>(chosen * sizeof(int32_t)), 0, 0, 0}, {false, 0, 0, 0});
      xQue.EnQue(xl);
      iQue.EnQue(il);
      xl = xQue.DeQue<T>();
      il = iQue.DeQue<int32_t>();
      auto yl = yQue.AllocTensor<T>();
      AscendC::Muls(il, il, static_cast<int32_t>(sizeof(T)), chosen);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::LocalTensor<uint32_t> offset = il.template ReinterpretCast<uint32_t>();
      AscendC::Gather(yl, xl, offset, static_cast<uint32_t>(0), chosen);
      yQue.EnQue(yl);
      xQue.FreeTensor(xl);
      iQue.FreeTensor(il);
      yl = yQue.DeQue<T>();
      AscendC::DataCopyPad(yGm[row * chosen], yl, {1, static_cast<uint32_t>(chosen * sizeof(T)), 0, 0, 0});
      yQue.FreeTensor(yl);
    }
  }
};

struct GatherElementsTiling {
  uint32_t rows, width, chosen;
};

extern "C" __global__ __aicore__ void gather_elements(GM_ADDR x, GM_ADDR index, GM_ADDR y, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(GatherElementsTiling, t, tiling);
  GatherElements<DTYPE_X> op;
  op.Process(x, index, y, t.rows, t.width, t.chosen);
}
