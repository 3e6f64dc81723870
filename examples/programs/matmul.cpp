// C = A * B on cube cores: A (m x k) and B (k x n) stand row by row, C is float. Each block takes tiles of C
// in turn; a tile's A and B come in pieces of k through L1 and L0 while the piece before is multiplied.
#include "kernel_operator.h"

using namespace AscendC;

#ifndef DTYPE_A
#define DTYPE_A half
#endif

struct MatmulTiling {
  uint32_t m, n, k;  // multiples of 16
};

template <typename T>
class Matmul16 {
 public:
  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, const MatmulTiling& tiling) {
    tiling_ = tiling;
    a_.SetGlobalBuffer((__gm__ T*)a);
    b_.SetGlobalBuffer((__gm__ T*)b);
    c_.SetGlobalBuffer((__gm__ float*)c);
    pipe_.InitBuffer(a1_, 2, kTile * kPiece * sizeof(T));
    pipe_.InitBuffer(b1_, 2, kPiece * kTile * sizeof(T));
    pipe_.InitBuffer(a2_, 2, kTile * kPiece * sizeof(T));
    pipe_.InitBuffer(b2_, 2, kPiece * kTile * sizeof(T));
    pipe_.InitBuffer(co1_, 1, kTile * kTile * sizeof(float));
  }

  __aicore__ inline void Process() {
    const uint32_t across = (tiling_.n + kTile - 1) / kTile, down = (tiling_.m + kTile - 1) / kTile;
    for (uint32_t tile = GetBlockIdx(); tile < across * down; tile += GetBlockNum())
      Tile(tile / across * kTile, tile % across * kTile);
  }

 private:
  static constexpr uint32_t kTile = 128, kPiece = 64;

  static __aicore__ inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

  __aicore__ inline void Tile(uint32_t row, uint32_t column) {
    const uint32_t m = Least(kTile, tiling_.m - row), n = Least(kTile, tiling_.n - column);
    LocalTensor<float> c = co1_.AllocTensor<float>();
    for (uint32_t k = 0; k < tiling_.k; k += kPiece) {
      const uint32_t depth = Least(kPiece, tiling_.k - k);
      CopyIn(row, column, k, m, n, depth);
      SplitA(m, depth);
      SplitB(n, depth);
      Multiply(c, m, n, depth, k == 0);
    }
    co1_.EnQue(c);
    CopyOut(row, column, m, n);
  }

  // Rows to NZ in L1.
  __aicore__ inline void CopyIn(uint32_t row, uint32_t column, uint32_t k, uint32_t m, uint32_t n,
                                uint32_t depth) {
    LocalTensor<T> a1 = a1_.AllocTensor<T>(), b1 = b1_.AllocTensor<T>();
    Nd2NzParams nd2nz;
    nd2nz.ndNum = 1;
    nd2nz.nValue = m;
    nd2nz.dValue = depth;
    nd2nz.srcDValue = tiling_.k;
    nd2nz.dstNzC0Stride = m;
    nd2nz.dstNzNStride = 1;
    DataCopy(a1, a_[row * tiling_.k + k], nd2nz);
    nd2nz.nValue = depth;
    nd2nz.dValue = n;
    nd2nz.srcDValue = tiling_.n;
    nd2nz.dstNzC0Stride = depth;
    DataCopy(b1, b_[k * tiling_.n + column], nd2nz);
    a1_.EnQue(a1);
    b1_.EnQue(b1);
  }
  // NZ to rows of fractals.
  __aicore__ inline void SplitA(uint32_t m, uint32_t depth) {
    LocalTensor<T> a1 = a1_.template DeQue<T>(), a2 = a2_.AllocTensor<T>();
    LoadData2DParams load;
    load.repeatTimes = depth / 16;
    load.srcStride = m / 16;
    load.ifTranspose = false;
    for (uint32_t i = 0; i < m / 16; ++i) LoadData(a2[i * 16 * depth], a1[i * 256], load);
    a2_.EnQue(a2);
    a1_.FreeTensor(a1);
  }
  // The same of B, whose fractals are turned.
  __aicore__ inline void SplitB(uint32_t n, uint32_t depth) {
    LocalTensor<T> b1 = b1_.template DeQue<T>(), b2 = b2_.AllocTensor<T>();
    LoadData2DParams load;
    load.repeatTimes = n / 16;
    load.srcStride = depth / 16;
    load.ifTranspose = true;
    for (uint32_t i = 0; i < depth / 16; ++i) LoadData(b2[i * 16 * n], b1[i * 256], load);
    b2_.EnQue(b2);
    b1_.FreeTensor(b1);
  }
  __aicore__ inline void Multiply(const LocalTensor<float>& c, uint32_t m, uint32_t n, uint32_t depth,
                                  bool first) {
    LocalTensor<T> a2 = a2_.template DeQue<T>(), b2 = b2_.template DeQue<T>();
    MmadParams mmad;
    mmad.m = m;
    mmad.n = n;
    mmad.k = depth;
    mmad.cmatrixInitVal = first;
    Mmad(c, a2, b2, mmad);
    a2_.FreeTensor(a2);
    b2_.FreeTensor(b2);
  }
  __aicore__ inline void CopyOut(uint32_t row, uint32_t column, uint32_t m, uint32_t n) {
    LocalTensor<float> c = co1_.DeQue<float>();
    FixpipeParamsV220 fixpipe;
    fixpipe.nSize = n;
    fixpipe.mSize = m;
    fixpipe.srcStride = m;
    fixpipe.dstStride = tiling_.n;
    fixpipe.ndNum = 1;
    Fixpipe(c_[row * tiling_.n + column], c, fixpipe);
    co1_.FreeTensor(c);
  }

  MatmulTiling tiling_;
  TPipe pipe_;
  TQue<TPosition::A1, 2> a1_;
  TQue<TPosition::B1, 2> b1_;
  TQue<TPosition::A2, 2> a2_;
  TQue<TPosition::B2, 2> b2_;
  TQue<TPosition::CO1, 1> co1_;
  GlobalTensor<T> a_, b_;
  GlobalTensor<float> c_;
};

extern "C" __global__ __aicore__ void matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  REGISTER_TILING_DEFAULT(MatmulTiling);
  GET_TILING_DATA(data, tiling);
  Matmul16<DTYPE_A> matmul;
  matmul.Init(a, b, c, data);
  matmul.Process();
}
