// A vector core's part of decode attention by blocks of keys (`mla`, `gqa`): for half of the rows of queries
// the online softmax of item i, then the running sum with the products of item i - 2, which are out before
// the scores of item i: it never waits for them.
//
// `Form` says what the kernel is: Arguments, Item, Walker and Workspace; kWidth, elements of a row of the
// result; Part(a, item), the first row among all of a task, which may be a part of the keys
// (Arguments::splits); Rows(a) of a tile, kPieceRows of half of them that are added at a time if there are
// more than kWholeRows; and perhaps Sinks(a, item), where a float for each row of the tile is that the task's
// softmax counts as a score; 0: none, as of all parts of a task's keys but one;
// kTurns, places of scores and of probabilities that are taken in turn; bytes of Scores(a), Probabilities(a),
// Products(a); Result(a, item, row, column), where elements of a row go, Pitch(a) from one row to the next,
// and ResultRows(a, item, row), how many there are from this one on.
#pragma once

#include "kernel_operator.h"

// What an AIC and its AIVs signal to each other, each once per item.
inline constexpr uint16_t kScoresReady = 0, kProbabilitiesReady = 1, kProductsReady = 2;

template <class Form>
class OnlineSoftmax {
  using Arguments = typename Form::Arguments;
  using Item = typename Form::Item;

 public:
  OnlineSoftmax(const Arguments& a, uint32_t group, uint32_t groups, uint32_t sub_block)
      : a_(a),
        rows_(Form::Rows(a) / 2),
        sub_(sub_block),
        piece_rows_(rows_ > Form::kWholeRows ? Form::kPieceRows : rows_),
        space_(a, group),
        walker_(a, group, groups) {
    uint32_t next = 0;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += (bytes + 31) / 32 * 32;
      return at;
    };
    sum_ = allocate(rows_ * Form::kWidth * 4);
    scores_ = allocate(rows_ * a.block_tokens * 4);
    for (uint32_t b = 0; b < 2; ++b) groups_[b] = allocate(rows_ * 32);
    for (uint32_t b = 0; b < 3; ++b) {
      maximum_[b] = allocate(kRepeatBytes);
      total_[b] = allocate(kRepeatBytes);
      factors_[b] = allocate(rows_ * 32);
    }
    row_ = allocate(kRepeatBytes);
    factor_ = allocate(kRepeatBytes);
    if constexpr (kHasSinks) allocate(kRepeatBytes);  // behind factor_
    PlacePieces(next);
  }

  void Run() {
    using namespace AscendC;
    SetFlag<HardEvent::MTE3_MTE2>(0);
    for (int e = 0; e < 4; ++e) SetFlag<HardEvent::MTE3_V>(e);
    for (uint32_t b = 0; b < buffers_; ++b) SetFlag<HardEvent::V_MTE2>(static_cast<int>(b));
    Item last[2], now;
    uint32_t i = 0;
    for (; walker_.Next(now); ++i) {
      Softmax(now, i);
      if (i >= 2) Accumulate(last[i & 1], i - 2);
      last[i & 1] = now;
    }
    if (i >= 2) Accumulate(last[i & 1], i - 2);
    if (i >= 1) Accumulate(last[(i - 1) & 1], i - 1);
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr uint32_t kColumns = Form::kWidth < 128 ? Form::kWidth : 128;  // of a row, per piece
  static constexpr bool kHasSinks = requires(const Arguments& a, const Item& item) { Form::Sinks(a, item); };
  static constexpr uint32_t kMostPieces = 6;
  static constexpr uint32_t kRepeatBytes = 256;  // one value per row

  // Buffers for pieces of the products: what the UBuffer has left, then the scores' place, which is empty
  // while products are added: its second half as soon as the probabilities have shrunk to the first half, and
  // the first half when they are stored. Many, since a load takes longer than its piece is worked on.
  void PlacePieces(uint32_t next) {
    const uint32_t bytes = piece_rows_ * kColumns * 4, half = rows_ * a_.block_tokens * 2;
    uint32_t most = Form::kWidth / kColumns * ((rows_ + piece_rows_ - 1) / piece_rows_);
    if (most > kMostPieces) most = kMostPieces;
    if constexpr (Form::kWidth <= kColumns) most = most < 2 ? 2 : most;
    for (; buffers_ < most && next + bytes <= AscendC::kUBufferBytes; next += bytes)
      piece_[buffers_++] = next;
    if (buffers_ < 2) AscendC::Abort("attention: the rows do not fit the UBuffer");
    upper_ = buffers_;
    for (uint32_t at = half; buffers_ < most && at + bytes <= 2 * half; at += bytes)
      piece_[buffers_++] = scores_ + at;
    lower_ = buffers_;
    for (uint32_t at = 0; buffers_ < most && at + bytes <= half; at += bytes)
      piece_[buffers_++] = scores_ + at;
  }

  // On MTE2: buffer `b` is free.
  CM384_INLINE void WaitForPiece(uint32_t b) {
    using namespace AscendC;
    if (stored_[b]) {
      WaitFlag<HardEvent::MTE3_MTE2>(static_cast<int>(b));
      stored_[b] = false;
    } else {
      WaitFlag<HardEvent::V_MTE2>(static_cast<int>(b));
    }
  }

  using Vector = AscendC::LocalTensor<float>;
  Vector At(uint32_t offset, uint32_t count) const { return Vector(offset, count); }

  // One value per row out of the items' tokens, by way of one per 32 B block.
  template <class Block, class Both>
  CM384_INLINE void ReduceRows(const Vector& to, const Vector& scores, uint32_t count, Block&& block,
                               Both&& both) {
    using namespace AscendC;
    const Vector groups = At(groups_[0], rows_ * 8), others = At(groups_[1], rows_ * 8);
    const int repeats = static_cast<int>(rows_), pitch = static_cast<int>(a_.block_tokens / 8);
    block(groups, scores, repeats, static_cast<int>(count < 64 ? count : 64), pitch);
    if (count > 64) {
      block(others, scores[64], repeats, static_cast<int>(count - 64), pitch);
      PipeBarrier<PIPE_V>();
      both(groups, groups, others, static_cast<int>(rows_ * 8));
    }
    PipeBarrier<PIPE_V>();
    block(to, groups, static_cast<int>(rows_ / 8), 64, 8);
    PipeBarrier<PIPE_V>();
  }

  void Softmax(const Item& item, uint32_t i) {
    using namespace AscendC;
    const Vector scores = At(scores_, rows_ * a_.block_tokens);
    if (item.first) {
      ++tasks_;
      WaitFlag<HardEvent::MTE3_V>(static_cast<int>(1 + tasks_ % 3));  // the task three before is stored
    }
    const Vector maximum = At(maximum_[tasks_ % 3], rows_), total = At(total_[tasks_ % 3], rows_);
    const Vector row = At(row_, rows_), factor = At(factor_, rows_), spread = At(groups_[0], rows_ * 8);
    const auto count = static_cast<int>(rows_);
    CrossCoreWaitFlag(kScoresReady);
    WaitFlag<HardEvent::MTE3_MTE2>(0);
    for (uint32_t b = upper_; b < buffers_; ++b) WaitForPiece(b);
    DataCopy(scores,
             GlobalAt<float>(space_.scores + i % Form::kTurns * Form::Scores(a_) +
                             static_cast<uint64_t>(sub_) * rows_ * a_.block_tokens * 4),
             rows_ * a_.block_tokens);
    if constexpr (kHasSinks) LoadSinks(item);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    PipeBarrier<PIPE_V>();
    Muls(scores, scores, a_.scale, static_cast<int>(rows_ * a_.block_tokens));
    PipeBarrier<PIPE_V>();
    ReduceRows(
        row, scores, item.count,
        [](const Vector& to, const Vector& from, int repeats, int mask, int pitch) {
          BlockReduceMax(to, from, repeats, mask, 1, 1, pitch);
        },
        [](const Vector& to, const Vector& x, const Vector& y, int n) { Max(to, x, y, n); });
    if (item.first) {
      if constexpr (kHasSinks) {
        TakeMaximum(item, maximum, row);
      } else {
        Adds(maximum, row, 0.0f, count);
      }
    } else {
      Max(row, maximum, row, count);
      PipeBarrier<PIPE_V>();
      Sub(factor, maximum, row, count);
      PipeBarrier<PIPE_V>();
      Exp(factor, factor, count);
      Adds(maximum, row, 0.0f, count);
      PipeBarrier<PIPE_V>();
      Brcb(At(factors_[i % 3], rows_ * 8), factor, static_cast<uint8_t>(rows_ / 8), {1, 8});
    }
    PipeBarrier<PIPE_V>();
    Brcb(spread, maximum, static_cast<uint8_t>(rows_ / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    const auto pitch = static_cast<uint8_t>(a_.block_tokens / 8);
    for (uint32_t column = 0; column < item.count; column += 64) {
      Sub(scores[column], scores[column], spread, Width(item.count - column), static_cast<uint8_t>(rows_),
          {1, 1, 0, pitch, pitch, 1});
    }
    PipeBarrier<PIPE_V>();
    for (uint32_t column = 0; column < item.count; column += 64) {
      Exp(scores[column], scores[column], Width(item.count - column), static_cast<uint8_t>(rows_),
          {1, 1, pitch, pitch});
    }
    PipeBarrier<PIPE_V>();
    ReduceRows(
        row, scores, item.count,
        [](const Vector& to, const Vector& from, int repeats, int mask, int stride) {
          BlockReduceSum(to, from, repeats, mask, 1, 1, stride);
        },
        [](const Vector& to, const Vector& x, const Vector& y, int n) { Add(to, x, y, n); });
    if (item.first) {
      if constexpr (kHasSinks) {
        TakeTotal(item, total, row, maximum);
      } else {
        Adds(total, row, 0.0f, count);
      }
    } else {
      Mul(total, total, factor, count);
      PipeBarrier<PIPE_V>();
      Add(total, total, row, count);
    }
    // In place: a repeat is read before it is written, and results are half as long.
    const LocalTensor<bfloat16_t> probabilities(scores_, rows_ * a_.block_tokens);
    Cast(probabilities, scores, RoundMode::CAST_RINT, rows_ * a_.block_tokens);
    for (uint32_t b = upper_; b < lower_; ++b) SetFlag<HardEvent::V_MTE2>(static_cast<int>(b));
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(GlobalAt<bfloat16_t>(space_.probabilities + i % Form::kTurns * Form::Probabilities(a_) +
                                  static_cast<uint64_t>(sub_) * rows_ * a_.block_tokens * 2),
             probabilities, rows_ * a_.block_tokens);
    SetFlag<HardEvent::MTE3_MTE2>(0);
    for (uint32_t b = lower_; b < buffers_; ++b) {
      SetFlag<HardEvent::MTE3_MTE2>(static_cast<int>(b));
      stored_[b] = true;
    }
    CrossCoreSetFlag<2, PIPE_MTE3>(kProbabilitiesReady);
    PipeBarrier<PIPE_V>();
  }

  // With the scores of a task's first keys, before which the softmax of the task before has read its own.
  CM384_INLINE void LoadSinks(const Item& item) const {
    using namespace AscendC;
    if (!HasSinks(item)) return;
    DataCopy(Sinks(), GlobalAt<float>(Form::Sinks(a_, item) + static_cast<uint64_t>(sub_) * rows_ * 4),
             rows_);
  }
  CM384_INLINE bool HasSinks(const Item& item) const { return item.first && Form::Sinks(a_, item) != 0; }
  CM384_INLINE Vector Sinks() const { return At(factor_ + kRepeatBytes, rows_); }

  // Of a task's first keys, and of its sinks.
  CM384_INLINE void TakeMaximum(const Item& item, const Vector& maximum, const Vector& row) const {
    using namespace AscendC;
    const auto count = static_cast<int>(rows_);
    if (HasSinks(item)) return Max(maximum, row, Sinks(), count);
    Adds(maximum, row, 0.0f, count);
  }
  CM384_INLINE void TakeTotal(const Item& item, const Vector& total, const Vector& row,
                              const Vector& maximum) const {
    using namespace AscendC;
    const auto count = static_cast<int>(rows_);
    if (!HasSinks(item)) return Adds(total, row, 0.0f, count);
    Sub(Sinks(), Sinks(), maximum, count);
    PipeBarrier<PIPE_V>();
    Exp(Sinks(), Sinks(), count);
    PipeBarrier<PIPE_V>();
    Add(total, row, Sinks(), count);
  }

  static CM384_INLINE uint64_t Width(uint32_t left) { return left < 64 ? left : 64; }

  // Visits the running sum in pieces: first row, rows, first column, the piece itself.
  template <class Visit>
  CM384_INLINE void ForPieces(Visit&& visit) {
    for (uint32_t column = 0; column < Form::kWidth; column += kColumns) {
      for (uint32_t row = 0; row < rows_; row += piece_rows_) {
        const uint32_t rows = rows_ - row < piece_rows_ ? rows_ - row : piece_rows_;
        visit(row, rows, column,
              At(sum_ + (column / kColumns * rows_ + row) * kColumns * 4, rows * kColumns));
      }
    }
  }

  void Accumulate(const Item& item, uint32_t i) {
    using namespace AscendC;
    const uint64_t products =
        space_.products + i % 3 * Form::Products(a_) + static_cast<uint64_t>(sub_) * rows_ * Form::kWidth * 4;
    CrossCoreWaitFlag(kProductsReady);
    if (item.first) WaitFlag<HardEvent::MTE3_V>(0);
    ForPieces([&](uint32_t row, uint32_t rows, uint32_t column, const Vector& sum) {
      const auto b = static_cast<int>(turn_);
      const Vector piece = At(piece_[turn_], rows * kColumns);
      WaitForPiece(turn_);
      if (++turn_ == buffers_) turn_ = 0;
      CopyBursts<CM384_MTE_GM_TO_UB>(piece.GetPhyAddr(), products + (row * Form::kWidth + column) * 4ull,
                                     kColumns * 4, rows, Form::kWidth * 4, kColumns * 4);
      SetFlag<HardEvent::MTE2_V>(1 + b);
      if (!item.first) Rows<0>(sum, At(factors_[i % 3], rows_ * 8)[row * 8], rows);
      PipeBarrier<PIPE_V>();
      WaitFlag<HardEvent::MTE2_V>(1 + b);
      if (item.first) {
        Adds(sum, piece, 0.0f, static_cast<int>(rows * kColumns));
      } else {
        Add(sum, sum, piece, static_cast<int>(rows * kColumns));
      }
      SetFlag<HardEvent::V_MTE2>(b);
    });
    PipeBarrier<PIPE_V>();
    if (item.last) Finish(item);
  }

  // sum = sum * factor of its row; Divide: sum / factor.
  template <int Divide>
  CM384_INLINE void Rows(const Vector& sum, const Vector& spread, uint32_t rows) {
    using namespace AscendC;
    for (uint32_t half = 0; half < kColumns; half += 64) {
      const BinaryRepeatParams p{1, 1, 0, kColumns / 8, kColumns / 8, 1};
      if constexpr (Divide) {
        Div(sum[half], sum[half], spread, uint64_t{64}, static_cast<uint8_t>(rows), p);
      } else {
        Mul(sum[half], sum[half], spread, uint64_t{64}, static_cast<uint8_t>(rows), p);
      }
    }
  }

  void Finish(const Item& item) {
    using namespace AscendC;
    const uint32_t task = ++finished_ % 3;
    const uint64_t first = static_cast<uint64_t>(sub_) * rows_;
    if (IsWhole()) {
      const Vector spread = At(groups_[1], rows_ * 8);
      Brcb(spread, At(total_[task], rows_), static_cast<uint8_t>(rows_ / 8), {1, 8});
      PipeBarrier<PIPE_V>();
      ForPieces([&](uint32_t row, uint32_t rows, uint32_t, const Vector& sum) {
        Rows<1>(sum, spread[row * 8], rows);
        PipeBarrier<PIPE_V>();
        Cast(sum.template ReinterpretCast<bfloat16_t>(), sum, RoundMode::CAST_RINT, rows * kColumns);
      });
    }
    SetFlag<HardEvent::V_MTE3>(1);
    WaitFlag<HardEvent::V_MTE3>(1);
    const uint64_t part = first + Form::Part(a_, item);
    ForPieces([&](uint32_t row, uint32_t rows, uint32_t column, const Vector& sum) {
      if (IsWhole()) {
        const uint32_t there = Form::ResultRows(a_, item, first + row);
        if (there == 0) return;
        CopyBursts<CM384_MTE_UB_TO_GM>(Form::Result(a_, item, first + row, column), sum.GetPhyAddr(),
                                       kColumns * 2, there < rows ? there : rows, kColumns * 2,
                                       Form::Pitch(a_));
      } else {
        CopyBursts<CM384_MTE_UB_TO_GM>(a_.partial_o + ((part + row) * Form::kWidth + column) * 4,
                                       sum.GetPhyAddr(), kColumns * 4, rows, kColumns * 4, Form::kWidth * 4);
      }
    });
    if (!IsWhole()) {
      DataCopy(GlobalAt<float>(a_.partial_m + part * 4), At(maximum_[task], rows_), rows_);
      DataCopy(GlobalAt<float>(a_.partial_l + part * 4), At(total_[task], rows_), rows_);
    }
    SetFlag<HardEvent::MTE3_V>(0);
    SetFlag<HardEvent::MTE3_V>(static_cast<int>(1 + task));
  }

  CM384_INLINE bool IsWhole() const { return a_.splits == 1; }

  const Arguments& a_;
  const uint32_t rows_, sub_, piece_rows_;  // rows: heads of this core
  const typename Form::Workspace space_;
  typename Form::Walker walker_;
  // Offsets in the UBuffer. Of a task: sum of the products, maxima and sums of the exponentials.
  uint32_t sum_, scores_, maximum_[3], total_[3];
  uint32_t factors_[3];  // what an item's maximum makes of the sum before, one block per row
  uint32_t groups_[2], row_, factor_;
  uint32_t piece_[kMostPieces];     // of a product, taken in turn
  uint32_t buffers_ = 0;            // of them
  uint32_t upper_ = 0, lower_ = 0;  // the first in the second and in the first half of the scores' place
  bool stored_[kMostPieces] = {};   // MTE3 says when it is free, not V
  uint32_t tasks_ = 0, finished_ = 0, turn_ = 0;
};
