// Products, largest and smallest along the middle axis of [a, r, c]: the lower half onto the upper one, until
// one is left.
#include "kernel_operator.h"

namespace ReduceAxis {
using namespace AscendC;

struct Tiling {
  int64_t a, r, c;  // c a multiple of 8
};
enum class Kind { Prod, Max, Min };

template <Kind kind>
__aicore__ inline void Join(const LocalTensor<float>& to, const LocalTensor<float>& with, int32_t n) {
  if constexpr (kind == Kind::Prod) {
    Mul(to, to, with, n);
  } else if constexpr (kind == Kind::Max) {
    Max(to, to, with, n);
  } else {
    Min(to, to, with, n);
  }
  PipeBarrier<PIPE_V>();
}

template <Kind kind>
__aicore__ inline void Run(GM_ADDR x, GM_ADDR y, const Tiling& t) {
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> que;
  pipe.InitBuffer(que, 2, t.r * t.c * sizeof(float));
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, t.a * t.r * t.c);
  to.SetGlobalBuffer((__gm__ float*)y, t.a * t.c);
  for (int64_t a = GetBlockIdx(); a < t.a; a += GetBlockNum()) {
    LocalTensor<float> f = que.AllocTensor<float>();
    DataCopy(f, from[a * t.r * t.c], t.r * t.c);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID2);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID2);
    for (int64_t rows = t.r; rows > 1;) {
      const int64_t half_rows = (rows + 1) / 2;
      Join<kind>(f, f[half_rows * t.c], (rows - half_rows) * t.c);
      rows = half_rows;
    }
    SetFlag<HardEvent::V_MTE3>(EVENT_ID2);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID2);
    que.EnQue(f);
    f = que.DeQue<float>();
    DataCopy(to[a * t.c], f, t.c);
    que.FreeTensor(f);
  }
}
}  // namespace ReduceAxis

extern "C" __global__ __aicore__ void prod_of_axis(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(ReduceAxis::Tiling, t, tiling);
  if (TILING_KEY_IS(0)) {
    ReduceAxis::Run<ReduceAxis::Kind::Prod>(x, y, t);
  } else if (TILING_KEY_IS(1)) {
    ReduceAxis::Run<ReduceAxis::Kind::Max>(x, y, t);
  } else if (TILING_KEY_IS(2)) {
    ReduceAxis::Run<ReduceAxis::Kind::Min>(x, y, t);
  }
}
