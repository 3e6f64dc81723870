// [m, n] to [n, m] in squares of 16 x 16, of half by Transpose, of float by TransDataTo5HD.
#include "kernel_operator.h"
using namespace AscendC;

struct TransposeTiling {
  uint32_t m, n;  // multiples of 16
};

template <typename T>
class Transpose2d {
 public:
  __aicore__ inline Transpose2d(TPipe* pipe) {
    pipe->InitBuffer(in_, 2, 256 * sizeof(T));
    pipe->InitBuffer(out_, 2, 256 * sizeof(T));
  }
  __aicore__ inline void Process(GM_ADDR x, GM_ADDR y, const TransposeTiling& t) {
    GlobalTensor<T> from, to;
    from.SetGlobalBuffer((__gm__ T*)x);
    to.SetGlobalBuffer((__gm__ T*)y);
    const uint32_t across = t.n / 16, squares = t.m / 16 * across;
    constexpr uint16_t kLength = 16 * sizeof(T) / 32;
    for (uint32_t i = GetBlockIdx(); i < squares; i += GetBlockNum()) {
      const uint32_t row = i / across * 16, column = i % across * 16;
      LocalTensor<T> a = in_.template AllocTensor<T>(), b = out_.template AllocTensor<T>();
      DataCopy(a, from[row * t.n + column], {16, kLength, (uint16_t)(t.n * sizeof(T) / 32 - kLength), 0});
      in_.EnQue(a);
      a = in_.template DeQue<T>();
      if constexpr (sizeof(T) == 2) {
        Transpose(b, a);
      } else {
        // Blocks of 8: the left and the right half of the square one after the other.
        for (uint32_t side = 0; side < 2; ++side) {
          LocalTensor<T> src[16], dst[16];
          for (uint32_t k = 0; k < 16; ++k) src[k] = a[k * 16 + side * 8];
          for (uint32_t k = 0; k < 8; ++k) {
            dst[2 * k] = b[(side * 8 + k) * 16];
            dst[2 * k + 1] = b[(side * 8 + k) * 16 + 8];
          }
          TransDataTo5HDParams params;
          params.dstHighHalf = false;
          params.srcHighHalf = false;
          params.repeatTimes = 1;
          params.dstRepStride = 0;
          params.srcRepStride = 0;
          TransDataTo5HD<T>(dst, src, params);
        }
      }
      out_.EnQue(b);
      in_.FreeTensor(a);
      b = out_.template DeQue<T>();
      DataCopy(to[column * t.m + row], b, {16, kLength, 0, (uint16_t)(t.m * sizeof(T) / 32 - kLength)});
      out_.FreeTensor(b);
    }
  }

 private:
  TQue<TPosition::VECIN, 2> in_;
  TQue<TPosition::VECOUT, 2> out_;
};

extern "C" __global__ __aicore__ void transpose_2d(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(TransposeTiling, t, tiling);
  TPipe pipe;
  if (TILING_KEY_IS(0)) {
    Transpose2d<half> op(&pipe);
    op.Process(x, y, t);
  } else {
    Transpose2d<float> op(&pipe);
    op.Process(x, y, t);
  }
}
