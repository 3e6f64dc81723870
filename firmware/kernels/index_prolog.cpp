// Queries, weights and newest keys of a lightning indexer. Arguments: firmware/abi/index_prolog.h.
#include "firmware/abi/index_prolog.h"

#include "cube_gemm.h"
#include "dequantise.h"
#include "kernel_operator.h"
#include "project.h"
#include "row_pipeline.h"
#include "steps.h"

using namespace AscendC;

namespace {

// A token's heads, and behind them its key, as rows of a tile.
class IndexToken {
 public:
  explicit IndexToken(const cm384_index_prolog& a) : a_(a), rows_(a.heads + 1) {
    const uint32_t all = a.heads + 8;
    Places places;
    in_ = places.Allocate(all * kWidth * 2);
    weights_in_ = places.Allocate(a.heads * 2);
    norm_in_ = places.Allocate(2 * kWidth * 2);
    angles_ = places.Allocate(128 * 4);
    tile_ = places.Allocate(all * kWidth * 4);
    work_ = places.Allocate(all * kWidth * 4);
    out_ = places.Allocate(all * kWidth);
    largest_ = places.Allocate(all * 4);
    factors_ = places.Allocate(all * 4);
    spread_ = places.Allocate(all * 32);
    weights_ = places.Allocate(a.heads * 4);
    norm_ = places.Allocate(2 * kWidth * 4);
    partial_ = places.Allocate(1024);
    sum_ = places.Allocate(64);
  }

  // Gamma and beta.
  void Open() const {
    LoadBf16(norm_in_, a_.gamma, 0, kWidth);
    LoadBf16(norm_in_ + kWidth * 2, a_.beta, 0, kWidth);
    PipeBarrier<PIPE_ALL>();
    Widen(At(norm_, 2 * kWidth), norm_in_, 2 * kWidth);
  }

  void Run(uint32_t token) const {
    const uint64_t key = a_.key.c + token * a_.key.c_pitch;
    LoadBf16(in_, a_.query.c + token * a_.query.c_pitch, 0, a_.heads * kWidth);
    LoadBf16(in_ + a_.heads * kWidth * 2, key, 0, kWidth);
    LoadBf16(weights_in_, key, kWidth, a_.heads);
    DataCopy(At(angles_, 128), GlobalAt<float>(a_.rope + token * 512ull), 128);
    PipeBarrier<PIPE_ALL>();
    Widen(At(tile_, rows_ * kWidth), in_, rows_ * kWidth);
    Widen(At(weights_, a_.heads), weights_in_, a_.heads);
    PipeBarrier<PIPE_V>();
    NormKey();
    Rotate();
    Quantise();
    Weigh();
    PipeBarrier<PIPE_ALL>();
    Store(token);
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr uint32_t kWidth = CM384_INDEX_WIDTH, kRowBlocks = kWidth / 8;

  using Vector = LocalTensor<float>;
  static Vector At(uint32_t offset, uint32_t count) { return Vector(offset, count); }

  // (x - mean) / sqrt(variance + epsilon) * gamma + beta.
  void NormKey() const {
    const Vector row = At(tile_ + a_.heads * kWidth * 4, kWidth), work = At(work_, kWidth);
    const Vector sum = At(sum_, 8), partial = At(partial_, 256);
    Adds(work, row, 0.0f, static_cast<int>(kWidth));
    PipeBarrier<PIPE_V>();
    TreeSum(sum, work, partial, static_cast<int>(kWidth));
    const float mean = FromVector(sum) / static_cast<float>(kWidth);
    ToVector();
    Adds(row, row, -mean, static_cast<int>(kWidth));
    PipeBarrier<PIPE_V>();
    Mul(work, row, row, static_cast<int>(kWidth));
    PipeBarrier<PIPE_V>();
    TreeSum(sum, work, partial, static_cast<int>(kWidth));
    float root = FromVector(sum) / static_cast<float>(kWidth) + a_.epsilon;
    asm("fsqrt.s %0, %0" : "+f"(root));
    ToVector();
    Muls(row, row, 1.0f / root, static_cast<int>(kWidth));
    PipeBarrier<PIPE_V>();
    Mul(row, row, At(norm_, kWidth), static_cast<int>(kWidth));
    PipeBarrier<PIPE_V>();
    Add(row, row, At(norm_ + kWidth * 4, kWidth), static_cast<int>(kWidth));
    PipeBarrier<PIPE_V>();
  }

  // The first half of each row, as Rope has it.
  void Rotate() const {
    const auto repeats = static_cast<uint8_t>(rows_);
    const Vector rows = At(tile_, rows_ * kWidth), turned = At(work_, rows_ * kWidth);
    const Vector cosines = At(angles_, 64), sines = At(angles_ + 256, 64);
    const BinaryRepeatParams each{1, 1, 1, kRowBlocks, kRowBlocks, 0};
    Mul(turned, rows[32], sines, uint64_t{32}, repeats, each);
    Mul(turned[32], rows, sines[32], uint64_t{32}, repeats, each);
    PipeBarrier<PIPE_V>();
    Mul(rows, rows, cosines, uint64_t{64}, repeats, each);
    PipeBarrier<PIPE_V>();
    Add(rows, rows, turned, uint64_t{64}, repeats, {1, 1, 1, kRowBlocks, kRowBlocks, kRowBlocks});
    PipeBarrier<PIPE_V>();
  }

  // Rows to INT8. A row of zeros gives NaN products, which convert to 0.
  void Quantise() const {
    const auto repeats = static_cast<uint8_t>(rows_);
    const uint32_t elements = rows_ * kWidth;
    const Vector rows = At(tile_, elements), work = At(work_, elements);
    const Vector largest = At(largest_, rows_), factors = At(factors_, rows_),
                 spread = At(spread_, rows_ * 8);
    Abs(work, rows, static_cast<int>(elements));
    PipeBarrier<PIPE_V>();
    Max(work, work, work[64], uint64_t{64}, repeats, {1, 1, 1, kRowBlocks, kRowBlocks, kRowBlocks});
    Duplicate(factors, 127.0f, static_cast<int>(rows_));
    PipeBarrier<PIPE_V>();
    WholeReduceMax(largest, work, 64, static_cast<int32_t>(rows_), 1, 1, kRowBlocks,
                   ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    Div(factors, factors, largest, static_cast<int>(rows_));
    PipeBarrier<PIPE_V>();
    Brcb(spread, factors, static_cast<uint8_t>((rows_ + 7) / 8), {1, 8});
    Muls(largest, largest, 1.0f / 127.0f, static_cast<int>(rows_));
    PipeBarrier<PIPE_V>();
    for (uint32_t half = 0; half < kWidth; half += 64)
      Mul(rows[half], rows[half], spread, uint64_t{64}, repeats, {1, 1, 0, kRowBlocks, kRowBlocks, 1});
    PipeBarrier<PIPE_V>();
    const auto integers = work.ReinterpretCast<int32_t>();
    const auto halves = rows.ReinterpretCast<half>();
    Cast(integers, rows, RoundMode::CAST_RINT, elements);
    PipeBarrier<PIPE_V>();
    Cast(halves, integers, RoundMode::CAST_RINT, elements);
    PipeBarrier<PIPE_V>();
    Cast(LocalTensor<int8_t>(out_, elements), halves, RoundMode::CAST_TRUNC, elements);
  }

  void Weigh() const {
    const Vector weights = At(weights_, a_.heads);
    Mul(weights, weights, At(largest_, a_.heads), static_cast<int>(a_.heads));
    PipeBarrier<PIPE_V>();
    Muls(weights, weights, a_.weight_scale, static_cast<int>(a_.heads));
    PipeBarrier<PIPE_V>();
    Cast(LocalTensor<half>(weights_in_, a_.heads), weights, RoundMode::CAST_RINT, a_.heads);
  }

  void Store(uint32_t token) const {
    const uint32_t slot = reinterpret_cast<const uint32_t*>(a_.slots)[token], within = slot % kPageTokens;
    const uint64_t page = a_.keys + static_cast<uint64_t>(slot / kPageTokens) * CM384_INDEX_PAGE_BYTES;
    const uint64_t first = static_cast<uint64_t>(token) * a_.heads;
    DataCopy(GlobalAt<int8_t>(a_.q + first * kWidth), LocalTensor<int8_t>(out_, a_.heads * kWidth),
             a_.heads * kWidth);
    DataCopyPad(GlobalAt<half>(a_.weights + first * 2), LocalTensor<half>(weights_in_, a_.heads),
                {1, a_.heads * 2, 0, 0, 0});
    CopyBursts<CM384_MTE_UB_TO_GM>(page + within * 32, out_ + a_.heads * kWidth, 32, kWidth / 32, 32,
                                   kPageTokens * 32);
    DataCopyPad(GlobalAt<float>(page + CM384_INDEX_KEY_BYTES + within * 4), At(largest_ + a_.heads * 4, 8),
                {1, 4, 0, 0, 0});
  }
  static constexpr uint32_t kPageTokens = CM384_INDEX_PAGE_TOKENS;

  const cm384_index_prolog& a_;
  const uint32_t rows_;
  uint32_t in_, weights_in_, norm_in_, angles_, tile_, work_, out_, largest_, factors_, spread_, weights_,
      norm_, partial_, sum_;  // in the UBuffer
};

template <typename T>
void RunCube(const cm384_index_prolog& a, uint32_t block, uint32_t blocks) {
  RunCubeGemm<T>(a.query, block, blocks);
  RunCubeGemm<T>(a.key, block, blocks);
}

[[gnu::noinline]] void DequantiseProduct(const cm384_gemm& a, uint32_t group, uint32_t groups) {
  Dequantiser(a, group, static_cast<uint32_t>(GetSubBlockIdx())).Run(TileWalker(a, group, groups));
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_index_prolog& a = *reinterpret_cast<const cm384_index_prolog*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  const bool int8 = IsInt8(a.query);
  if (ASCEND_IS_AIC) {
    if (int8) return RunCube<int8_t>(a, block, blocks);
    RunCube<bfloat16_t>(a, block, blocks);
    return CubesDone();
  }
  if (int8) {
    DequantiseProduct(a.query, block / 2, blocks);
    DequantiseProduct(a.key, block / 2, blocks);
    SyncAll();
  } else {
    WaitForCubes();
  }
  const Range tokens = Share(a.tokens, 2 * blocks, block);
  if (tokens.size() == 0) return;
  const IndexToken one(a);
  one.Open();
  for (uint32_t t = tokens.first; t < tokens.last; ++t) one.Run(t);
}
