// Rows with a margin on either side of one value, by copies that fill it in.
#include "kernel_operator.h"
using namespace AscendC;

struct PadRowsTiling {
  uint32_t rows, width, left, right;  // less than a block on either side; left, width and right: whole blocks
  float value;
};

extern "C" __global__ __aicore__ void pad_rows(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(PadRowsTiling);
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  GlobalTensor<half> from, to;
  from.SetGlobalBuffer((__gm__ half*)x, t.rows * t.width);
  const uint32_t all = t.left + t.width + t.right;
  to.SetGlobalBuffer((__gm__ half*)y, t.rows * all);
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> queue;
  pipe.InitBuffer(queue, 2, AlignUp(all, 16u) * sizeof(half));
  const DataCopyExtParams copy(1, t.width * sizeof(half), 0, 0, 0);
  SetPadValue<half, TPosition::MAX>(static_cast<half>(t.value));
  DataCopyPadExtParams<half> pad;
  pad.leftPadding = t.left;
  pad.rightPadding = t.right;
  for (uint32_t row = GetBlockIdx(); row < t.rows; row += GetBlockNum()) {
    LocalTensor<half> in = queue.AllocTensor<half>();
    DataCopyPad(in, from[row * t.width], copy, pad);
    queue.EnQue(in);
    LocalTensor<half> out = queue.DeQue<half>();
    DataCopy(to[row * all], out, all);
    queue.FreeTensor(out);
  }
}
