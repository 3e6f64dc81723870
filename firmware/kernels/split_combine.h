// The end of decode attention with more than one split (`mla`, `gqa`): vector cores weigh the partial sums by
// their maxima and add them. `Form` as in online_softmax.h, with Pair, as in split_items.h; Rows(a) is a
// multiple of eight. Out(a, pair, row) is where eight rows go, and OutRows(a, row) how many of them there
// are.
#pragma once

#include "split_items.h"

template <class Form>
class SplitCombine {
  using Arguments = typename Form::Arguments;
  using Pair = typename Form::Pair;

 public:
  explicit SplitCombine(const Arguments& a) : a_(a) {}

  // Eight rows at a time, dealt out to `cores` vector cores.
  void Run(uint32_t core, uint32_t cores) {
    const uint32_t units = Pair::Count(a_) * (Form::Rows(a_) / kRows);
    for (uint32_t unit = core; unit < units; unit += cores) {
      const uint32_t pair = unit / (Form::Rows(a_) / kRows);
      One(pair, (unit - pair * (Form::Rows(a_) / kRows)) * kRows);
    }
  }

 private:
  static constexpr uint32_t kRows = 8, kMostSplits = 32, kRowBytes = Form::kWidth * 4;
  // UBuffer: maxima, sums and weights of all splits; the largest maximum, its total; a weight per block;
  // sums.
  static constexpr uint32_t kMaxima = 0, kTotals = kMaxima + kMostSplits * 32,
                            kWeights = kTotals + kMostSplits * 32, kLargest = kWeights + kMostSplits * 32,
                            kTotal = kLargest + 32, kSpread = kTotal + 32, kSum = kSpread + 256,
                            kPart = kSum + kRows * kRowBytes;

  using Vector = AscendC::LocalTensor<float>;
  static Vector At(uint32_t offset, uint32_t count) { return Vector(offset, count); }

  void One(uint32_t pair, uint32_t head) {
    using namespace AscendC;
    const uint64_t first = static_cast<uint64_t>(pair) * a_.splits * Form::Rows(a_) + head;
    const uint32_t parts = Pair(a_, pair).parts;
    CopyBursts<CM384_MTE_GM_TO_UB>(kMaxima, a_.partial_m + first * 4, 32, parts, Form::Rows(a_) * 4, 32);
    CopyBursts<CM384_MTE_GM_TO_UB>(kTotals, a_.partial_l + first * 4, 32, parts, Form::Rows(a_) * 4, 32);
    PipeBarrier<PIPE_ALL>();
    Weigh(parts);
    const Vector sum = At(kSum, kRows * Form::kWidth), part = At(kPart, kRows * Form::kWidth);
    const Vector spread = At(kSpread, 64);
    for (uint32_t s = 0; s < parts; ++s) {
      DataCopy(
          part,
          GlobalAt<float>(a_.partial_o + (first + static_cast<uint64_t>(s) * Form::Rows(a_)) * kRowBytes),
          kRows * Form::kWidth);
      PipeBarrier<PIPE_ALL>();
      Brcb(spread, At(kWeights + s * 32, kRows), 1, {1, 8});
      PipeBarrier<PIPE_V>();
      Rows<false>(part, spread);
      PipeBarrier<PIPE_V>();
      if (s == 0) {
        Adds(sum, part, 0.0f, kRows * Form::kWidth);
      } else {
        Add(sum, sum, part, kRows * Form::kWidth);
      }
      PipeBarrier<PIPE_ALL>();
    }
    Brcb(spread, At(kTotal, kRows), 1, {1, 8});
    PipeBarrier<PIPE_V>();
    Rows<true>(sum, spread);
    PipeBarrier<PIPE_V>();
    const auto result = sum.ReinterpretCast<bfloat16_t>();
    Cast(result, sum, RoundMode::CAST_RINT, kRows * Form::kWidth);
    PipeBarrier<PIPE_ALL>();
    const uint32_t there = Form::OutRows(a_, head);
    if (there != 0) DataCopy(GlobalAt<bfloat16_t>(Form::Out(a_, pair, head)), result, there * Form::kWidth);
    PipeBarrier<PIPE_ALL>();
  }

  // Weight of a split: exp(its maximum - the largest); total: the weighted sum of the sums.
  void Weigh(uint32_t parts) {
    using namespace AscendC;
    const Vector largest = At(kLargest, kRows), total = At(kTotal, kRows);
    const auto count = static_cast<int>(kRows);
    Adds(largest, At(kMaxima, kRows), 0.0f, count);
    for (uint32_t s = 1; s < parts; ++s) {
      PipeBarrier<PIPE_V>();
      Max(largest, largest, At(kMaxima + s * 32, kRows), count);
    }
    PipeBarrier<PIPE_V>();
    for (uint32_t s = 0; s < parts; ++s) {
      const Vector weight = At(kWeights + s * 32, kRows), part = At(kTotals + s * 32, kRows);
      Sub(weight, At(kMaxima + s * 32, kRows), largest, count);
      PipeBarrier<PIPE_V>();
      Exp(weight, weight, count);
      PipeBarrier<PIPE_V>();
      Mul(part, part, weight, count);
      PipeBarrier<PIPE_V>();
      if (s == 0) {
        Adds(total, part, 0.0f, count);
      } else {
        Add(total, total, part, count);
      }
    }
    PipeBarrier<PIPE_V>();
  }

  template <bool divide>
  CM384_INLINE void Rows(const Vector& rows, const Vector& spread) {
    using namespace AscendC;
    const BinaryRepeatParams p{1, 1, 0, kRowBytes / 32, kRowBytes / 32, 1};
    for (uint32_t column = 0; column < Form::kWidth; column += 64) {
      if constexpr (divide) {
        Div(rows[column], rows[column], spread, uint64_t{64}, kRows, p);
      } else {
        Mul(rows[column], rows[column], spread, uint64_t{64}, kRows, p);
      }
    }
  }

  const Arguments& a_;
};
