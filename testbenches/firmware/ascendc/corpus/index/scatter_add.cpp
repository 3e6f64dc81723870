// y[index[i]] += x[i], rows of BF16 or float added in memory by many cores at once.
#include "kernel_operator.h"
using namespace AscendC;

struct ScatterAddTiling {
  uint32_t rows, width, total;  // width: a multiple of 16; total: rows of y
};

template <typename T>
__aicore__ inline void ScatterAdd(GM_ADDR x, GM_ADDR index, GM_ADDR y, const ScatterAddTiling& t) {
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> rows;
  GlobalTensor<T> xGm, yGm;
  GlobalTensor<int32_t> indexGm;
  xGm.SetGlobalBuffer((__gm__ T*)x, t.rows * t.width);
  yGm.SetGlobalBuffer((__gm__ T*)y, t.total * t.width);
  indexGm.SetGlobalBuffer((__gm__ int32_t*)index, t.rows);
  // The output begins at 0: each core clears its rows.
  const uint32_t own = (t.total + GetBlockNum() - 1) / GetBlockNum(), first = GetBlockIdx() * own;
  if (first < t.total) {
    GlobalTensor<T> part = yGm[first * t.width];
    InitOutput<T>(part, (t.total - first < own ? t.total - first : own) * t.width, static_cast<T>(0.0f));
  }
  SyncAll();
  pipe.InitBuffer(rows, 2, t.width * sizeof(T));
  SetAtomicAdd<T>();
  for (uint32_t i = GetBlockIdx(); i < t.rows; i += GetBlockNum()) {
    LocalTensor<T> row = rows.AllocTensor<T>();
    DataCopy(row, xGm[i * t.width], t.width);
    rows.EnQue(row);
    row = rows.DeQue<T>();
    DataCopy(yGm[indexGm.GetValue(i) * t.width], row, t.width);
    rows.FreeTensor(row);
  }
  SetAtomicNone();
}

extern "C" __global__ __aicore__ void scatter_add(GM_ADDR x, GM_ADDR index, GM_ADDR y, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  GET_TILING_DATA_WITH_STRUCT(ScatterAddTiling, t, tiling);
  if (TILING_KEY_IS(0)) {
    ScatterAdd<float>(x, index, y, t);
  } else if (TILING_KEY_IS(1)) {
    ScatterAdd<bfloat16_t>(x, index, y, t);
  }
}
