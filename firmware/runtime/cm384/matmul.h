// Matmul<>: a matrix product of tensors in memory as one object. On a vector core of a group it gives jobs to
// the group's cube core, which serves both vector cores until both have ended; on a cube core without vector
// cores it works itself.
#pragma once

#include "cm384/matmul_cube.h"

namespace AscendC {

// Jobs of a core, of all its objects, have numbers one after another.
inline uint8_t cm384_matmul_sequence = 0;

// What a product is told beside its operands.
class MatmulSettings {
 public:
  // The scale of results that are of int8_t operands and no int32_t: one, its bits in FP32, or of each
  // column.
  CM384_INLINE void SetQuantScalar(const uint64_t scale) {
    more_.scale = scale;
    more_.scales = 1;
  }
  CM384_INLINE void SetQuantVector(const GlobalTensor<uint64_t>& scales) {
    more_.scale = scales.address();
    more_.scales = 2;
  }
  // What the kernel's own copies are given: the place of its tiling data, and of data of its own.
  CM384_INLINE void SetUserDefInfo(uint64_t tiling) { more_.tiling = tiling; }
  CM384_INLINE void SetSelfDefineData(uint64_t data) { more_.data = data; }
  // Room and precisions that this one does not need: products of float are of FP32.
  template <typename... Room>
  CM384_INLINE void SetWorkspace(const Room&...) {}
  template <typename U>
  CM384_INLINE void SetLocalWorkspace(const LocalTensor<U>&) {}
  CM384_INLINE void SetHF32(bool = false, int = 0) {}
  CM384_INLINE void SetSubBlockIdx(uint8_t) {}
  // Every call has its result when it returns.
  CM384_INLINE void WaitIterateAll() {}
  CM384_INLINE void WaitGetTensorC() {}
  CM384_INLINE void WaitIterateBatch() {}

 protected:
  cm384::MatmulMore more_{};
};

template <class A, class B, class C, class Bias = C, const auto& config = CFG_NORM,
          class CallBack = MatmulCallBackFunc<nullptr, nullptr, nullptr>, class Policy = MatmulPolicy>
class Matmul : public MatmulSettings {
  using T = typename A::T;
  using Result = typename C::T;
  template <class Type>
  static constexpr bool kRows = Type::format == CubeFormat::ND || Type::format == CubeFormat::ND_ALIGN ||
                                Type::format == CubeFormat::VECTOR;
  template <class Type>
  static constexpr bool kNz = Type::format == CubeFormat::NZ;
  template <class Type>
  static constexpr bool kPlace = Type::pos == TPosition::GM || Type::pos == TPosition::VECIN ||
                                 Type::pos == TPosition::VECOUT || Type::pos == TPosition::VECCALC;
  static_assert((kRows<A> || kNz<A>)&&(kRows<B> || kNz<B>)&&(kRows<C> || kNz<C>)&&kPlace<A> && kPlace<B>,
                "Matmul: operands in memory or the UBuffer, row by row or NZ: docs/ascend-c.md");
  static_assert(
      is_same_v<T, typename B::T> && kCubeType<T> >= 0 &&
          (is_same_v<T, int8_t>
               ? is_same_v<Result, int32_t> || is_same_v<Result, half> || is_same_v<Result, int8_t>
               : is_same_v<Result, float> || is_same_v<Result, half> || is_same_v<Result, bfloat16_t>),
      "Matmul: int8_t gives int32_t, half or int8_t; half, bfloat16_t and float give float, half or "
      "bfloat16_t: docs/ascend-c.md");

 public:
  Matmul() = default;
  CM384_INLINE ~Matmul() { End(); }

  // The number of this object among those of the kernel.
  CM384_INLINE void Register(uint32_t number, bool several) {
    number_ = number;
    several_ = several;
    registered_ = true;
  }
  inline void Init(const __gm__ TCubeTiling* tiling, TPipe* pipe = nullptr) {
    tiling_ = tiling;
    pipe_ = pipe == nullptr ? TPipe::current : pipe;
    SetOrgShape(tiling->M, tiling->N, tiling->Ka, tiling->Kb);
    SetSingleShape(tiling->singleCoreM, tiling->singleCoreN, tiling->singleCoreK);
  }
  // Of the whole matrices; of this core's part.
  CM384_INLINE void SetOrgShape(int m, int n, int k) { SetOrgShape(m, n, k, k); }
  CM384_INLINE void SetOrgShape(int m, int n, int ka, int kb) { SetOrgShape(m, n, ka, kb, n); }
  // `kc`: how far rows of C are apart.
  CM384_INLINE void SetOrgShape(int m, int n, int ka, int kb, int kc) {
    whole_m_ = m;
    whole_n_ = n;
    whole_ka_ = ka;
    whole_kb_ = kb;
    whole_c_ = kc;
  }
  CM384_INLINE void SetSingleShape(int m, int n, int k) {
    m_ = m;
    n_ = n;
    k_ = k;
    Restart();
  }
  CM384_INLINE void SetTail(int m = -1, int n = -1, int k = -1) {
    SetSingleShape(m < 0 ? m_ : m, n < 0 ? n_ : n, k < 0 ? k_ : k);
  }
  CM384_INLINE void SetTensorA(const GlobalTensor<T>& a, bool transposed = A::isTrans) {
    a_.address = a.address();
    a_.local = false;
    a_.transposed = transposed;
    Restart();
  }
  CM384_INLINE void SetTensorB(const GlobalTensor<T>& b, bool transposed = B::isTrans) {
    b_.address = b.address();
    b_.local = false;
    b_.transposed = transposed;
    Restart();
  }
  // This core's part of an operand, from the UBuffer: by way of memory, A's before B's.
  inline void SetTensorA(const LocalTensor<T>& a, bool transposed = A::isTrans) {
    SetTensorA(Stage(a, 0, BytesOfA()), transposed);
    a_.local = true;
  }
  inline void SetTensorB(const LocalTensor<T>& b, bool transposed = B::isTrans) {
    const uint64_t before = a_.local ? (BytesOfA() + 31) / 32 * 32 : 0;
    SetTensorB(Stage(b, before, static_cast<uint64_t>(n_) * k_ * sizeof(T)), transposed);
    b_.local = true;
  }
  CM384_INLINE void SetBias(const GlobalTensor<typename Bias::T>& bias) {
    static_assert(sizeof(typename Bias::T) == 4, "Matmul: a bias of float or int32_t: docs/ascend-c.md");
    bias_ = bias.address();
  }
  CM384_INLINE void DisableBias() { bias_ = 0; }
  CM384_INLINE void ClearBias() { bias_ = 0; }

  // All of C: its tensor begins at this core's part.
  template <bool sync = true>
  inline void IterateAll(const GlobalTensor<Result>& c, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                         bool = false, bool = false) {
    Do(a_.address, b_.address, c.address(), bias_, m_, n_, enSequentialWrite ? n_ : PitchOfC(), enAtomic);
  }
  // To the UBuffer, rows of singleCoreN elements; 128 KiB at most.
  template <bool sync = true>
  inline void IterateAll(const LocalTensor<Result>& c, uint8_t enAtomic = 0) {
    if (served_) return;
    const uint64_t count = static_cast<uint64_t>(m_) * n_;
    if (enAtomic != 0 || g_coreType == AIC || count * sizeof(Result) > cm384::kMatmulTile)
      Abort("Matmul: IterateAll to the UBuffer of a vector core, 128 KiB at most, as it is");
    const uint64_t tile = reinterpret_cast<uint64_t>(Space()->tile[GetSubBlock()]);
    Do(a_.address, b_.address, tile, bias_, m_, n_, n_, 0);
    DataCopy(c, GlobalAt<Result>(tile), static_cast<uint32_t>((count + 15) / 16 * 16));
    PipeBarrier<PIPE_ALL>();
  }
  // Products of batches that stand one behind the other, or as far apart as strides say, in matrices; of an
  // operand with fewer batches the same ones again. Layouts other than NORMAL are not there.
  inline void IterateBatch(const GlobalTensor<Result>& c, uint32_t batchA, uint32_t batchB,
                           bool enSequentialWrite = false, uint32_t strideA = 0, uint32_t strideB = 0,
                           uint32_t strideC = 0) {
    static_assert((A::layout == LayoutMode::NONE || A::layout == LayoutMode::NORMAL) && kRows<A> &&
                      kRows<B> && kRows<C>,
                  "Matmul: IterateBatch: of LayoutMode::NORMAL, row by row: docs/ascend-c.md");
    const uint64_t of_a =
                       static_cast<uint64_t>(whole_m_) * whole_ka_ * sizeof(T) * (strideA == 0 ? 1 : strideA),
                   of_b =
                       static_cast<uint64_t>(whole_kb_) * whole_n_ * sizeof(T) * (strideB == 0 ? 1 : strideB),
                   of_c = static_cast<uint64_t>(whole_m_) * PitchOfC() * sizeof(Result) *
                          (strideC == 0 ? 1 : strideC);
    const uint32_t batches = batchA > batchB ? batchA : batchB;
    for (uint32_t n = 0; n < batches; ++n)
      Do(a_.address + n % batchA * of_a, b_.address + n % batchB * of_b, c.address() + n * of_c, bias_, m_,
         n_, enSequentialWrite ? n_ : PitchOfC(), 0);
  }
  // Tile after tile: true while there is one, which GetTensorC then gives.
  template <bool sync = true>
  inline bool Iterate(bool enPartialSum = false) {
    if (enPartialSum) Abort("Matmul: enPartialSum: docs/ascend-c.md");
    const int down = (m_ + tiling_->baseM - 1) / tiling_->baseM,
              across = (n_ + tiling_->baseN - 1) / tiling_->baseN;
    if (served_ || tile_ + 1 >= down * across) return false;
    ++tile_;
    row_ = (tiling_->iterateOrder == 0 ? tile_ % down : tile_ / across) * tiling_->baseM;
    column_ = (tiling_->iterateOrder == 0 ? tile_ / down : tile_ % across) * tiling_->baseN;
    return true;
  }
  template <bool sync = true>
  inline void GetTensorC(const GlobalTensor<Result>& c, uint8_t enAtomic = 0,
                         bool enSequentialWrite = false) {
    static_assert(kRows<C>, "Matmul: tiles of C row by row: docs/ascend-c.md");
    const uint64_t place = enSequentialWrite ? 0 : static_cast<uint64_t>(row_) * PitchOfC() + column_;
    OfTile(c.address() + place * sizeof(Result), enSequentialWrite ? tiling_->baseN : PitchOfC(), enAtomic);
  }
  template <bool sync = true>
  CM384_INLINE void AsyncGetTensorC(const LocalTensor<Result>& c) {
    GetTensorC(c);
  }
  // To the UBuffer, rows of baseN elements.
  template <bool sync = true>
  inline void GetTensorC(const LocalTensor<Result>& c, uint8_t enAtomic = 0, bool = false) {
    if (served_) return;
    if (enAtomic != 0 || g_coreType == AIC)
      Abort("Matmul: GetTensorC to the UBuffer of a vector core, as it is");
    const uint64_t tile = reinterpret_cast<uint64_t>(Space()->tile[GetSubBlock()]);
    OfTile(tile, tiling_->baseN, 0);
    const int rows = m_ - row_ < tiling_->baseM ? m_ - row_ : tiling_->baseM;
    DataCopy(c, GlobalAt<Result>(tile), static_cast<uint32_t>(rows * tiling_->baseN));
    PipeBarrier<PIPE_ALL>();
  }
  // No more jobs of this core.
  inline void End() {
    if (ended_ || !registered_ || OfCubeCores()) return;
    ended_ = true;
    cm384::MatmulJob job{};
    job.flags = cm384::kQuits;
    Ask(job);
    if (several_) Wait();  // the other objects' jobs have the same place
  }

  // On the cube core of a group, which does what vector cores ask of this object.
  CM384_INLINE void BeServed() { served_ = ended_ = true; }
  inline void Work(TPipe& pipe, const cm384::MatmulJob& job, const cm384::MatmulMore* told) {
    if constexpr (kTellsMore) {
      dcci(reinterpret_cast<uint64_t>(told), sizeof *told);
      more_ = *told;
    }
    cube_.Run(pipe, job, more_);
  }
  CM384_INLINE void Forget() { cube_.Forget(); }

  // What the cores of a group share.
  static CM384_INLINE cm384::MatmulSpace* Space() {
    const uint64_t group = static_cast<uint64_t>(GetBlockIdx()) / (g_coreType == AIC ? 1 : 2);
    return reinterpret_cast<cm384::MatmulSpace*>(LaunchOfProgram()->group_space) + group;
  }

 private:
  static CM384_INLINE bool OfCubeCores() { return LaunchOfProgram()->vector_cores == 0; }
  static CM384_INLINE uint32_t GetSubBlock() {
    return static_cast<uint32_t>(cm384::read_csr<CM384_CSR_SUB_BLOCK>());
  }
  // Rows of ND_ALIGN are whole blocks of 32 B.
  CM384_INLINE int PitchOfC() const {
    constexpr int kBlock = ONE_BLK_SIZE / sizeof(Result);
    return C::format == CubeFormat::ND_ALIGN ? (whole_c_ + kBlock - 1) / kBlock * kBlock : whole_c_;
  }
  static CM384_INLINE int RowsOfBlocks(int rows) { return (rows + 15) / 16 * 16; }
  CM384_INLINE void Restart() { tile_ = -1; }
  static constexpr bool kTellsMore = CallBack::kOwnCopy || CallBack::kOwnA || CallBack::kOwnB ||
                                     (is_same_v<T, int8_t> && !is_same_v<Result, int32_t>);
  CM384_INLINE uint64_t BytesOfA() const { return static_cast<uint64_t>(m_) * k_ * sizeof(T); }
  // The cube core of a group takes its operands from memory.
  inline GlobalTensor<T> Stage(const LocalTensor<T>& from, uint64_t at, uint64_t bytes) {
    if (g_coreType == AIC && !served_) Abort("Matmul: operands in the UBuffer are a vector core's");
    if (at + bytes > cm384::kMatmulOperands) Abort("Matmul: operands in the UBuffer: 192 KiB at most");
    const auto to = GlobalAt<T>(reinterpret_cast<uint64_t>(Space()->operand[GetSubBlock()]) + at);
    if (served_) return to;
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(bytes), 0, 0, 0});
    return to;
  }

  inline void OfTile(uint64_t c, int pitch, uint8_t atomic) {
    static_assert(kRows<A> && kRows<B>, "Matmul: tiles of operands row by row: docs/ascend-c.md");
    const uint64_t of_a = a_.transposed ? row_ : static_cast<uint64_t>(row_) * (a_.local ? k_ : whole_ka_);
    const uint64_t of_b =
        b_.transposed ? static_cast<uint64_t>(column_) * (b_.local ? k_ : whole_kb_) : column_;
    const int rows = m_ - row_ < tiling_->baseM ? m_ - row_ : tiling_->baseM;
    const int columns = n_ - column_ < tiling_->baseN ? n_ - column_ : tiling_->baseN;
    Do(a_.address + of_a * sizeof(T), b_.address + of_b * sizeof(T), c,
       bias_ == 0 ? 0 : bias_ + column_ * 4ull, rows, columns, pitch, atomic);
  }
  inline void Do(uint64_t a, uint64_t b, uint64_t c, uint64_t bias, int m, int n, int pitch, uint8_t atomic) {
    if (served_) return;
    if (atomic > 1) Abort("Matmul: enAtomic is 0 or 1: docs/ascend-c.md");
    cm384::MatmulJob job{};
    job.a = a;
    job.b = b;
    job.c = c;
    job.bias = bias;
    job.m = static_cast<uint32_t>(m);
    job.n = static_cast<uint32_t>(n);
    job.k = static_cast<uint32_t>(k_);
    // Of NZ the rows that stand in memory, in whole blocks (assumed).
    const int a_rows = a_.local ? m_ : whole_m_, a_columns = a_.local ? k_ : whole_ka_,
              b_rows = b_.local ? k_ : whole_kb_, b_columns = b_.local ? n_ : whole_n_;
    job.a_pitch = static_cast<uint32_t>(kNz<A> ? RowsOfBlocks(a_.transposed ? a_columns : a_rows)
                                               : (a_.transposed ? a_rows : a_columns));
    job.b_pitch = static_cast<uint32_t>(kNz<B> ? RowsOfBlocks(b_.transposed ? b_columns : b_rows)
                                               : (b_.transposed ? b_rows : b_columns));
    job.c_pitch = static_cast<uint32_t>(kNz<C> ? RowsOfBlocks(whole_m_) : pitch);
    job.base_m = static_cast<uint16_t>(tiling_->baseM | number_ << cm384::kObjectShift);
    job.base_n = static_cast<uint16_t>(tiling_->baseN);
    job.base_k = static_cast<uint16_t>(tiling_->baseK);
    job.flags = static_cast<uint8_t>((a_.transposed ? cm384::kTransposedA : 0) |
                                     (b_.transposed ? cm384::kTransposedB : 0) |
                                     (atomic != 0 ? cm384::kAddsToC : 0) | (kNz<A> ? cm384::kNzA : 0) |
                                     (kNz<B> ? cm384::kNzB : 0) | (kNz<C> ? cm384::kNzC : 0));
    if constexpr (g_coreType == AIC) {
      cube_.Run(*pipe_, job, more_);
      PipeBarrier<PIPE_ALL>();
    } else {
      Ask(job);
      Wait();
    }
  }
  // What this core has written before is in memory first.
  inline void Ask(cm384::MatmulJob& job) {
    PipeBarrier<PIPE_ALL>();
    if (++cm384_matmul_sequence == 0) ++cm384_matmul_sequence;
    job.sequence = cm384_matmul_sequence;
    cm384::MatmulJob* const place = &Space()->job[GetSubBlock()];
    if constexpr (kTellsMore) {
      cm384::MatmulMore* const more = &Space()->more[GetSubBlock()];
      *more = more_;
      dcci(reinterpret_cast<uint64_t>(more), sizeof *more);
    }
    *place = job;
    dcci(reinterpret_cast<uint64_t>(place), sizeof *place);
  }
  inline void Wait() {
    auto* const done = &Space()->done[GetSubBlock()];
    const uint64_t at = reinterpret_cast<uint64_t>(done);
    for (;;) {
      dcci(at, sizeof *done);
      if (*const_cast<volatile uint32_t*>(&done->sequence) == cm384_matmul_sequence) return;
      PollMark(at, sizeof *done);
    }
  }

  const TCubeTiling* tiling_ = nullptr;
  TPipe* pipe_ = nullptr;
  struct Operand {
    uint64_t address;
    bool transposed, local;  // local: a copy of this core's part
  };
  Operand a_{0, A::isTrans, false}, b_{0, B::isTrans, false};
  uint64_t bias_ = 0;
  int whole_m_ = 0, whole_n_ = 0, whole_ka_ = 0, whole_kb_ = 0, whole_c_ = 0, m_ = 0, n_ = 0, k_ = 0;
  int tile_ = -1, row_ = 0, column_ = 0;
  bool served_ = false, ended_ = false, registered_ = false, several_ = false;
  uint32_t number_ = 0;
  cm384::MatmulCube<T, Result, CallBack> cube_;
};

// Objects of a kernel, each with its tiling behind it or without: one after another, as they are named.
template <class Function>
CM384_INLINE void ForMatmuls(const Function&, uint32_t) {}
template <class Function, class Object>
CM384_INLINE void ForMatmuls(const Function& f, uint32_t number, Object& object) {
  f(number, object, static_cast<const TCubeTiling*>(nullptr));
}
template <class Function, class Object, typename Next, typename... Rest>
CM384_INLINE void ForMatmuls(const Function& f, uint32_t number, Object& object, Next&& next,
                             Rest&&... rest) {
  if constexpr (ConvertsTo<Next, const TCubeTiling*>) {
    f(number, object, static_cast<const TCubeTiling*>(next));
    ForMatmuls(f, number + 1, rest...);
  } else {
    f(number, object, static_cast<const TCubeTiling*>(nullptr));
    ForMatmuls(f, number + 1, next, rest...);
  }
}
// The cube core of a group: jobs of both vector cores until all objects of both have ended.
template <typename... Objects>
inline void ServeMatmuls(TPipe* pipe, cm384::MatmulSpace* space, Objects&&... objects) {
  uint32_t count = 0, last = 0;
  ForMatmuls(
      [&](uint32_t, auto& object, const TCubeTiling*) {
        object.BeServed();
        ++count;
      },
      0, objects...);
  const uint64_t jobs = reinterpret_cast<uint64_t>(space->job);
  uint8_t seen[2] = {};
  for (uint32_t running = 2 * count; running != 0;) {
    bool found = false;
    dcci(jobs, sizeof space->job);
    for (uint32_t n = 0; n < 2; ++n) {
      const cm384::MatmulJob job = space->job[n];
      if (job.sequence == seen[n]) continue;
      seen[n] = job.sequence;
      found = true;
      if ((job.flags & cm384::kQuits) != 0) {
        --running;
        if (count == 1) continue;
      } else {
        // Objects take turns in L1 and L0.
        const uint32_t wanted = job.base_m >> cm384::kObjectShift;
        if (wanted != last) pipe->Reset();
        ForMatmuls(
            [&](uint32_t number, auto& object, const TCubeTiling*) {
              if (wanted != last) object.Forget();
              if (number == wanted) object.Work(*pipe, job, &space->more[n]);
            },
            0, objects...);
        last = wanted;
        PipeBarrier<PIPE_ALL>();
      }
      space->done[n].sequence = job.sequence;
      dcci(reinterpret_cast<uint64_t>(&space->done[n]), sizeof space->done[n]);
    }
    if (!found && running != 0) PollMark(jobs, sizeof space->job);
  }
}
// True on the cube core of a group, which has served then and is done.
template <class Object, typename... Rest>
inline bool RegisterMatmul(TPipe* pipe, Object& object, Rest&&... rest) {
  if (g_coreType == AIC && LaunchOfProgram()->vector_cores == 2) {
    ServeMatmuls(pipe, Object::Space(), object, rest...);
    return true;
  }
  uint32_t count = 0;
  ForMatmuls([&](uint32_t, auto&, const TCubeTiling*) { ++count; }, 0, object, rest...);
  ForMatmuls(
      [&](uint32_t number, auto& each, const TCubeTiling* tiling) {
        each.Register(number, count > 1);
        if (tiling != nullptr) each.Init(tiling, pipe);
      },
      0, object, rest...);
  return false;
}
template <class A, class B, class C, class Bias = C, const auto& config = CFG_NORM,
          class CallBack = MatmulCallBackFunc<nullptr, nullptr, nullptr>, class Policy = MatmulPolicy>
using MatmulImpl = Matmul<A, B, C, Bias, config, CallBack, Policy>;

}  // namespace AscendC

// All objects of a kernel at once. On the cube core of a group the function that registers them returns once
// all has been served.
#define REGIST_MATMUL_OBJ(pipe, workspace, ...) \
  if (AscendC::RegisterMatmul(pipe, __VA_ARGS__)) return

#define REGIST_CUBE_OBJ(...) REGIST_MATMUL_OBJ(__VA_ARGS__)

// Where kernels look for the object, too.
namespace matmul {
using namespace AscendC;
}
