// The cube core's part of Matmul<>: tiles of C, a piece of k after the other, through L1 and L0 in two turns
// each.
#pragma once

#include "cm384/cube.h"
#include "cm384/matmul_types.h"
#include "cm384/pipe.h"

namespace cm384 {

template <typename T, typename C, class CallBack>
class MatmulCube {
 public:
  inline void Run(AscendC::TPipe& pipe, const MatmulJob& job, const MatmulMore& more) {
    more_ = &more;
    Place(pipe, job);
    const uint32_t base_m = BaseM(job);
    for (uint32_t row = 0; row < job.m; row += base_m) {
      for (uint32_t column = 0; column < job.n; column += job.base_n)
        Tile(job, row, column, Least(base_m, job.m - row), Least(job.base_n, job.n - column));
    }
  }
  // Its buffers have been taken back.
  CM384_INLINE void Forget() { placed_ = false; }

 private:
  using Sum = std::conditional_t<AscendC::is_same_v<T, int8_t>, int32_t, float>;
  static constexpr uint32_t kSize = sizeof(T), kC0 = 32 / kSize;
  // Rows of a matrix that is turned on its way to L0: squares are whole.
  static constexpr uint32_t kSquare = kSize == 1 ? 32 : 16;

  static CM384_INLINE uint32_t BaseM(const MatmulJob& job) { return job.base_m & ((1u << kObjectShift) - 1); }
  static CM384_INLINE uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }
  static CM384_INLINE uint32_t Up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

  inline void Place(AscendC::TPipe& pipe, const MatmulJob& job) {
    if (placed_) return;
    placed_ = true;
    const uint32_t depth = Up(job.base_k, 32) * kSize;
    const uint32_t a = Up(BaseM(job), 32) * depth, b = Up(job.base_n, 32) * depth;
    const auto turns = [](uint32_t bytes) { return static_cast<uint8_t>(2 * bytes <= 64 * 1024 ? 2 : 1); };
    pipe.InitBuffer(a1_, 2, a);
    pipe.InitBuffer(b1_, 2, b);
    pipe.InitBuffer(a2_, turns(a), a);
    pipe.InitBuffer(b2_, turns(b), b);
    pipe.InitBuffer(co1_, 1, Up(BaseM(job), 16) * Up(job.base_n, 16) * 4);
    if constexpr (AscendC::is_same_v<T, int8_t> && !AscendC::is_same_v<C, int32_t>)
      pipe.InitBuffer(q1_, 1, Up(job.base_n, 16) * 8);
    if (job.bias == 0) return;
    pipe.InitBuffer(c1_, 1, 1024);
    pipe.InitBuffer(c2_, 1, 1024);
  }

  inline void Tile(const MatmulJob& job, uint32_t row, uint32_t column, uint32_t m, uint32_t n) {
    AscendC::LocalTensor<Sum> sums = co1_.template AllocTensor<Sum>(), bias;
    if (job.bias != 0) bias = Bias(job, column, n);
    for (uint32_t k = 0; k < job.k; k += job.base_k) {
      const uint32_t depth = Least(job.base_k, job.k - k);
      CopyIn(job, row, column, k, m, n, depth);
      LoadA((job.flags & kTransposedA) != 0, m, depth);
      LoadB((job.flags & kTransposedB) != 0, n, depth);
      AscendC::LocalTensor<T> a = a2_.template DeQue<T>(), b = b2_.template DeQue<T>();
      const uint64_t start = k != 0 ? 1 : job.bias != 0 ? 2 | bias.GetPhyAddr() << 8 : 0;
      AscendC::Multiply<T>(Offset(sums), Offset(a), Offset(b),
                           AscendC::MmadParams(static_cast<uint16_t>(m), static_cast<uint16_t>(n),
                                               static_cast<uint16_t>(depth)),
                           start);
      a2_.FreeTensor(a);
      b2_.FreeTensor(b);
    }
    if (job.bias != 0) c2_.FreeTensor(bias);
    co1_.EnQue(sums);
    CopyOut(job, row, column, m, n);
  }

  template <typename Element>
  static CM384_INLINE uint32_t Offset(const AscendC::LocalTensor<Element>& tensor) {
    return static_cast<uint32_t>(tensor.GetPhyAddr());
  }

  inline AscendC::LocalTensor<Sum> Bias(const MatmulJob& job, uint32_t column, uint32_t n) {
    AscendC::LocalTensor<Sum> l1 = c1_.template AllocTensor<Sum>(), table = c2_.template AllocTensor<Sum>();
    AscendC::CopyToL1(Offset(l1), job.bias + column * sizeof(Sum), n * sizeof(Sum));
    c1_.EnQue(l1);
    l1 = c1_.template DeQue<Sum>();
    pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_LOAD_BIAS>(
        Offset(table) | static_cast<uint64_t>(Offset(l1)) << 32, 0,
        Up(n * static_cast<uint32_t>(sizeof(Sum)), 32));
    c1_.FreeTensor(l1);
    c2_.EnQue(table);
    return c2_.template DeQue<Sum>();
  }

  // A (m x depth) and B (depth x n) to NZ in L1, as they stand in memory.
  inline void CopyIn(const MatmulJob& job, uint32_t row, uint32_t column, uint32_t k, uint32_t m, uint32_t n,
                     uint32_t depth) {
    const auto copy = [](bool nz, uint32_t l1, uint64_t gm, uint64_t first, uint64_t second, uint32_t pitch,
                         uint32_t rows, uint32_t columns, uint32_t height) {
      // Columns of blocks as they stand in memory.
      if (nz)
        return AscendC::CopyToL1(l1, gm + (second / kC0 * pitch + first) * 32, rows * 32,
                                 Up(columns, kC0) / kC0, pitch * 32ull, height * 32);
      AscendC::CopyNd2Nz(l1, gm + (first * pitch + second) * kSize, rows, columns * kSize,
                         static_cast<uint64_t>(pitch) * kSize, height * 32);
    };
    AscendC::LocalTensor<T> a = a1_.template AllocTensor<T>(), b = b1_.template AllocTensor<T>();
    using Bytes = int8_t;
    if constexpr (CallBack::kOwnA) {
      CallBack::template CopyIn<true>(a.template ReinterpretCast<Bytes>(), job.a, {row, k, m, depth},
                                      more_->tiling, more_->data);
    } else if ((job.flags & kTransposedA) != 0) {
      copy((job.flags & kNzA) != 0, Offset(a), job.a, k, row, job.a_pitch, depth, m, Up(depth, kSquare));
    } else {
      copy((job.flags & kNzA) != 0, Offset(a), job.a, row, k, job.a_pitch, m, depth, Up(m, 16));
    }
    if constexpr (CallBack::kOwnB) {
      CallBack::template CopyIn<false>(b.template ReinterpretCast<Bytes>(), job.b, {k, column, depth, n},
                                       more_->tiling, more_->data);
    } else if ((job.flags & kTransposedB) != 0) {
      copy((job.flags & kNzB) != 0, Offset(b), job.b, column, k, job.b_pitch, n, depth, Up(n, 16));
    } else {
      copy((job.flags & kNzB) != 0, Offset(b), job.b, k, column, job.b_pitch, depth, n, Up(depth, kSquare));
    }
    a1_.EnQue(a);
    b1_.EnQue(b);
  }

  inline void LoadA(bool transposed, uint32_t m, uint32_t depth) {
    AscendC::LocalTensor<T> from = a1_.template DeQue<T>(), to = a2_.template AllocTensor<T>();
    const uint32_t rows = Up(m, 16) / 16, columns = Up(depth, kC0) / kC0, height = Up(depth, kSquare) * 32;
    if (!transposed) {
      AscendC::LoadA<T>(Offset(to), Offset(from), rows * 512, rows, columns);
    } else if constexpr (kSize < 4) {
      for (uint32_t i = 0; i * kSquare < m; ++i)
        AscendC::LoadSteps<CM384_CUBE_LOAD_2D_A, T>(Offset(to) + i * kSquare / 16 * columns * 512,
                                                    Offset(from) + i * height, columns, true, kSquare * 32,
                                                    512, columns * 512);
    } else {
      AscendC::Abort("Matmul: A of float is not transposed: docs/ascend-c.md");
    }
    a1_.FreeTensor(from);
    a2_.EnQue(to);
  }
  inline void LoadB(bool transposed, uint32_t n, uint32_t depth) {
    AscendC::LocalTensor<T> from = b1_.template DeQue<T>(), to = b2_.template AllocTensor<T>();
    const uint32_t rows = Up(n, 16) / 16, columns = Up(depth, kC0) / kC0, height = Up(depth, kSquare) * 32;
    if (transposed) {
      AscendC::LoadB<T>(Offset(to), Offset(from), rows * 512, rows, columns);
    } else if constexpr (kSize == 2) {
      AscendC::LoadBTransposed<T>(Offset(to), Offset(from), height, rows, columns);
    } else if constexpr (kSize == 1) {
      // Where n has an odd number of fractals the last one's neighbour goes where the next k's first one
      // will.
      for (uint32_t j = 0; j < columns; ++j)
        AscendC::LoadSteps<CM384_CUBE_LOAD_2D_B, T>(Offset(to) + j * rows * 512, Offset(from) + j * 1024,
                                                    (n + 31) / 32, true, static_cast<int32_t>(height), 1024,
                                                    512);
    } else {
      AscendC::Abort("Matmul: B of float is transposed: docs/ascend-c.md");
    }
    b1_.FreeTensor(from);
    b2_.EnQue(to);
  }

  inline void CopyOut(const MatmulJob& job, uint32_t row, uint32_t column, uint32_t m, uint32_t n) {
    using namespace AscendC;
    LocalTensor<Sum> sums = co1_.template DeQue<Sum>();
    sums_ = sums;
    FixpipeParamsV220 p;
    p.mSize = static_cast<uint16_t>(m);
    p.nSize = static_cast<uint16_t>(n);
    p.srcStride = static_cast<uint16_t>(Up(m, 16));
    p.dstStride = job.c_pitch;
    p.quantPre = is_same_v<T, int8_t>       ? Scaling()
                 : is_same_v<C, half>       ? F322F16
                 : is_same_v<C, bfloat16_t> ? F322BF16
                                            : NoQuant;
    p.deqScalar = more_->scale;
    if constexpr (CallBack::kOwnCopy) {
      const DataCopyOutParams params{static_cast<uint16_t>(Up(n, 16) / 16),
                                     static_cast<uint16_t>(m * 16 * sizeof(Sum) / 32),
                                     static_cast<uint16_t>((Up(m, 16) - m) * 16 * sizeof(Sum) / 32),
                                     job.c_pitch,
                                     static_cast<uint16_t>(n),
                                     false,
                                     more_->scale,
                                     0};
      const uint64_t place = (static_cast<uint64_t>(row) * job.c_pitch + column) * sizeof(C);
      CallBack::Copy(reinterpret_cast<const void*>(job.c + place), sums.template ReinterpretCast<int8_t>(),
                     &params, more_->tiling, more_->data);
      return co1_.FreeTensor(sums);
    }
    if constexpr (is_same_v<T, int8_t> && !is_same_v<C, int32_t>) {
      if (more_->scales == 2) return CopyOutScaled(job, row, column, p);
    }
    if ((job.flags & kAddsToC) != 0) SetAtomicAdd<C>();
    if ((job.flags & kNzC) != 0) {  // blocks of 16 x 16
      p.nSize = static_cast<uint16_t>(Up(n, 16));
      p.dstStride = job.c_pitch * 16 * static_cast<uint32_t>(sizeof(C)) / 32;
      const uint64_t place = (static_cast<uint64_t>(column) / 16 * job.c_pitch + row) * 16;
      Fixpipe<C, Sum, CFG_NZ>(GlobalAt<C>(job.c + place * sizeof(C)), sums, p);
    } else {
      Fixpipe(GlobalAt<C>(job.c + (static_cast<uint64_t>(row) * job.c_pitch + column) * sizeof(C)), sums, p);
    }
    if ((job.flags & kAddsToC) != 0) SetAtomicNone();
    co1_.FreeTensor(sums);
  }

  CM384_INLINE AscendC::QuantMode_t Scaling() const {
    if (AscendC::is_same_v<C, int32_t>) return AscendC::NoQuant;
    if (AscendC::is_same_v<C, half>) return more_->scales == 2 ? AscendC::VDEQF16 : AscendC::DEQF16;
    return more_->scales == 2 ? AscendC::VREQ8 : AscendC::REQ8;
  }
  // A scale for each column, by way of L1.
  inline void CopyOutScaled(const MatmulJob& job, uint32_t row, uint32_t column,
                            const AscendC::FixpipeParamsV220& p) {
    using namespace AscendC;
    LocalTensor<uint64_t> scales = q1_.template AllocTensor<uint64_t>();
    CopyToL1(Offset(scales), more_->scale + column * 8ull, Up(p.nSize * 8u, 32));
    q1_.EnQue(scales);
    scales = q1_.template DeQue<uint64_t>();
    Fixpipe<C, Sum, CFG_ROW_MAJOR>(
        GlobalAt<C>(job.c + (static_cast<uint64_t>(row) * job.c_pitch + column) * sizeof(C)), sums_, scales,
        p);
    q1_.FreeTensor(scales);
    co1_.FreeTensor(sums_);
  }

  const MatmulMore* more_ = nullptr;
  AscendC::LocalTensor<Sum> sums_;
  bool placed_ = false;
  AscendC::TQue<AscendC::TPosition::A1, 2> a1_;
  AscendC::TQue<AscendC::TPosition::B1, 2> b1_;
  AscendC::TQue<AscendC::TPosition::A2, 2> a2_;
  AscendC::TQue<AscendC::TPosition::B2, 2> b2_;
  AscendC::TQue<AscendC::TPosition::CO1, 1> co1_;
  AscendC::TQue<AscendC::TPosition::C1, 1> c1_, q1_;
  AscendC::TQue<AscendC::TPosition::C2, 1> c2_;
};

}  // namespace cm384
