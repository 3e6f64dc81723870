// Rotation of neighbours, x[2i] and x[2i + 1], by positions and a table of cos | sin: neighbours change
// places by Gather with offsets made once, signs by a mask of bits.
#include "kernel_operator.h"
using namespace AscendC;

struct InterleavedTiling {
  uint32_t tokens, heads, dim;  // dim: 64
};

class RotaryInterleaved {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR positions, GM_ADDR table, GM_ADDR y,
                              const InterleavedTiling& t) {
    t_ = t;
    row_ = t.heads * t.dim;
    x_.SetGlobalBuffer((__gm__ float*)x);
    y_.SetGlobalBuffer((__gm__ float*)y);
    table_.SetGlobalBuffer((__gm__ float*)table);
    positions_.SetGlobalBuffer((__gm__ int64_t*)positions);
    pipe_.InitBuffer(in_, 2, row_ * sizeof(float));
    pipe_.InitBuffer(out_, 2, row_ * sizeof(float));
    pipe_.InitBuffer(angle_, 2, t.dim * sizeof(float));
    pipe_.InitBuffer(offset_, row_ * sizeof(uint32_t));
    pipe_.InitBuffer(work_, (row_ + 4 * t.dim) * sizeof(float));
    // Byte offsets of neighbours: i xor 1.
    LocalTensor<int32_t> offset = offset_.Get<int32_t>();
    CreateVecIndex(offset, 0, row_);
    PipeBarrier<PIPE_V>();
    uint64_t even[2] = {0x5555555555555555, 0}, odd[2] = {0xaaaaaaaaaaaaaaaa, 0};
    const uint8_t repeats = row_ / 64;
    Adds(offset, offset, 1, even, repeats, {1, 1, 8, 8});
    Adds(offset, offset, -1, odd, repeats, {1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    ShiftLeft(offset.ReinterpretCast<uint32_t>(), offset.ReinterpretCast<uint32_t>(), 2u, row_);
    PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void Process() {
    for (uint32_t token = GetBlockIdx(); token < t_.tokens; token += GetBlockNum()) {
      const int64_t position = positions_.GetValue(token);
      LocalTensor<float> x = in_.AllocTensor<float>(), a = angle_.AllocTensor<float>();
      DataCopy(x, x_[token * row_], row_);
      DataCopy(a, table_[position * t_.dim], t_.dim);
      in_.EnQue(x);
      angle_.EnQue(a);
      Compute();
      LocalTensor<float> y = out_.DeQue<float>();
      DataCopy(y_[token * row_], y, row_);
      out_.FreeTensor(y);
    }
  }

 private:
  __aicore__ inline void Compute() {
    LocalTensor<float> x = in_.DeQue<float>(), a = angle_.DeQue<float>(), y = out_.AllocTensor<float>();
    LocalTensor<float> other = work_.Get<float>(), cos = other[row_], sin = cos[t_.dim], twice = sin[t_.dim];
    const uint32_t d = t_.dim, h = d / 2;
    const uint8_t heads = t_.heads;
    // cos and sin of each pair twice: 0 0 1 1 2 2 ..
    Gather(other, x, offset_.Get<uint32_t>(), 0, row_);
    const uint32_t dst[2] = {h, 2}, src[2] = {h, 1};
    Broadcast<float, 2, 1>(cos, a, dst, src);
    Broadcast<float, 2, 1>(sin, a[h], dst, src);
    uint64_t even[2] = {0x5555555555555555, 0};
    Muls(sin, sin, -1.0f, even, 1, {1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    Mul(y, x, cos, 64, heads, {1, 1, 1, 8, 8, 0});
    Mul(other, other, sin, 64, heads, {1, 1, 1, 8, 8, 0});
    PipeBarrier<PIPE_V>();
    Add(y, y, other, row_);
    in_.FreeTensor(x);
    angle_.FreeTensor(a);
    out_.EnQue(y);
  }

  InterleavedTiling t_;
  uint32_t row_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 2> in_, angle_;
  TQue<TPosition::VECOUT, 2> out_;
  TBuf<> offset_, work_;
  GlobalTensor<float> x_, y_, table_;
  GlobalTensor<int64_t> positions_;
};

extern "C" __global__ __aicore__ void rotary_interleaved(GM_ADDR x, GM_ADDR positions, GM_ADDR table,
                                                         GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(InterleavedTiling, t, tiling);
  RotaryInterleaved op;
  op.Init(x, positions, table, y, t);
  op.Process();
}
