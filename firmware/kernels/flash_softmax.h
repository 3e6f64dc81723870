// A vector core's part of attention by tiles of queries (`flash_attention`, `flash_grouped`, `flash_full`,
// `flash_ragged`): for half of a tile's queries the online softmax of item i, in strips of rows that come and
// go by turns, then the running sum with the products of item i - 2, which are out before the scores of item
// i: it never waits for them.
//
// `Form` says what the kernel is: Arguments, Item, Walker; kWidth, elements of a value; kCausal, whether row
// r of a tile sees keys 0 .. r alone of the last block of its last item, and perhaps then Enters(a, item),
// whether it sees the others alone of the first block of an item, in which its window begins; FirstRow(a,
// item), of its sequence; and perhaps Sinks(a, item), where a float for each row of the tile is that the
// task's softmax counts as a score.
#pragma once

#include "firmware/abi/flash_attention.h"
#include "kernel_operator.h"
#include "online_softmax.h"

// Where a block keeps what its cores hand each other, three of each, taken in turn.
struct FlashWorkspace {
  CM384_INLINE FlashWorkspace(uint64_t workspace, uint32_t block, uint32_t keys)
      : scores_bytes(CM384_FLASH_SCORES(keys)),
        scores(workspace + static_cast<uint64_t>(block) * CM384_FLASH_WORKSPACE(keys)),
        probabilities(scores + CM384_FLASH_TURNS * scores_bytes),
        products(probabilities + CM384_FLASH_TURNS * (scores_bytes / 2)) {}
  // Of item i.
  CM384_INLINE uint64_t Scores(uint32_t i) const { return scores + i % CM384_FLASH_TURNS * scores_bytes; }
  CM384_INLINE uint64_t Probabilities(uint32_t i) const {
    return probabilities + i % CM384_FLASH_TURNS * (scores_bytes / 2);
  }
  CM384_INLINE uint64_t Products(uint32_t i) const {
    return products + i % CM384_FLASH_TURNS * CM384_FLASH_PRODUCTS;
  }

  uint64_t scores_bytes, scores, probabilities, products;
};

template <class Form>
class FlashSoftmax {
  using Arguments = typename Form::Arguments;
  using Item = typename Form::Item;

 public:
  FlashSoftmax(const Arguments& a, uint32_t group, uint32_t groups, uint32_t sub_block)
      : a_(a),
        sub_(sub_block),
        strip_rows_(kStripElements / a.block_tokens),
        space_(a.workspace, group, a.block_tokens),
        walker_(a, group, groups) {
    if constexpr (Form::kCausal) PlaceTriangles();
  }

  void Run() {
    using namespace AscendC;
    for (int e = 0; e < 3; ++e) SetFlag<HardEvent::MTE3_V>(e);
    for (int e = 0; e <= kSinkEvent; ++e) SetFlag<HardEvent::V_MTE2>(e);
    Item items[3];  // i - 2 .. i, item n at n % 3
    uint32_t count = 0;
    bool more = walker_.Next(items[0]);
    if (more) LoadFirst(items[0], 0);
    for (uint32_t i = 0; more || i < count + 2; ++i) {
      Item next{};
      if (more) {
        count = i + 1;
        more = walker_.Next(next);
        Softmax(items[i % 3], i, more ? &next : nullptr);
      }
      if (i >= 2 && i - 2 < count) Accumulate(items[(i - 2) % 3], i - 2);
      items[(i + 1) % 3] = next;
    }
    PipeBarrier<PIPE_ALL>();
  }

 private:
  static constexpr uint32_t kRows = CM384_FLASH_TILE / 2;
  static constexpr uint32_t kStripElements = 8192;  // 32 KiB: 16 rows of 512 keys
  static constexpr uint32_t kPieceRows = 16, kPieces = kRows / kPieceRows;
  static constexpr uint32_t kTriangle = 16;  // rows and columns
  // Finite: a row may see no key of an item at all.
  static constexpr float kUnseen = -1e30f;
  static constexpr bool kHasWindow = requires(const Arguments& a, const Item& item) {
    Form::Enters(a, item);
  };
  // Of a strip's probabilities: a column of 16 has a block more than rows, so that its blocks that one repeat
  // writes lie in different banks.
  static constexpr uint32_t kWeightBytes = kStripElements * 2 + CM384_FLASH_MOST_KEYS / 16 * 32;
  static constexpr bool kHasSinks = requires(const Arguments& a, const Item& item) { Form::Sinks(a, item); };
  // Offsets in the UBuffer.
  static constexpr uint32_t kSum = 0, kStrips = kSum + kRows * Form::kWidth * 4,
                            kPiecesAt = kStrips + 2 * kStripElements * 4,
                            kGroups = kPiecesAt + kRows * Form::kWidth * 4,
                            kFactors = kGroups + kStripElements / 8 * 4,  // three, one block per row
      kWeights = kFactors + 3 * kRows * 32,  // two: a strip's probabilities, in NZ
      kSpread = kWeights + 2 * kWeightBytes,
                            kMaximum = kSpread + kRows * 32,  // one value per row, as all that follow
      kTotals = kMaximum + kRows * 4,                         // three, of a task each
      kRow = kTotals + 3 * kRows * 4, kFactor = kRow + kRows * 4,
                            kTriangles = kFactor + kRows * 4,  // of what the last block hides, the first
      kSinks = kTriangles + 2 * kTriangle * kTriangle * 4, kEnd = kSinks + kRows * 4;
  static_assert(kEnd <= AscendC::kUBufferBytes);
  // Events between MTE2 and V: of pieces, then of strips, then of sinks. Between V and MTE3: of the sum, then
  // of weights.
  static constexpr int kStripEvent = kPieces, kSinkEvent = kStripEvent + 2, kWeightEvent = 1;

  using Vector = AscendC::LocalTensor<float>;
  static CM384_INLINE Vector At(uint32_t offset, uint32_t count) { return Vector(offset, count); }
  static CM384_INLINE uint32_t Blocks(const Item& item) {
    return (item.count + CM384_FLASH_TILE - 1) / CM384_FLASH_TILE;
  }

  // Row r of the first hides columns behind r, of the second those up to r.
  static void PlaceTriangles() {
    using namespace AscendC;
    constexpr uint32_t kAll = kTriangle * kTriangle;
    Duplicate(At(kTriangles, kAll), kUnseen, static_cast<int>(kAll));
    Duplicate(At(kTriangles + kAll * 4, kAll), 0.0f, static_cast<int>(kAll));
    PipeBarrier<PIPE_V>();
    for (uint32_t row = 0; row < kTriangle; ++row) {
      const uint32_t at = kTriangles + row * kTriangle * 4;
      Duplicate(At(at, kTriangle), 0.0f, static_cast<int>(row + 1));
      Duplicate(At(at + kAll * 4, kTriangle), kUnseen, static_cast<int>(row + 1));
    }
    PipeBarrier<PIPE_V>();
  }

  // Of 16 rows of a strip, whose rows have `columns`: columns from .. to are hidden.
  static CM384_INLINE void Hide(uint32_t at, uint32_t columns, uint32_t from, uint32_t to) {
    using namespace AscendC;
    for (uint32_t half = from / 64 * 64; half < to; half += 64) {
      const uint32_t low = from > half ? from - half : 0, high = to - half < 64 ? to - half : 64;
      const uint64_t below = high < 64 ? (uint64_t{1} << high) - 1 : ~uint64_t{0};
      const uint64_t mask[2] = {below & ~((uint64_t{1} << low) - 1), 0};
      Duplicate(At(at + half * 4, 64), kUnseen, mask, static_cast<uint8_t>(kTriangle), 1,
                static_cast<uint8_t>(columns / 8));
    }
  }
  static CM384_INLINE void HideByTriangle(uint32_t at, uint32_t columns, uint32_t column, uint32_t which) {
    using namespace AscendC;
    const auto pitch = static_cast<uint8_t>(columns / 8);
    const Vector part = At(at + column * 4, kTriangle),
                 triangle = At(kTriangles + which * kTriangle * kTriangle * 4, kTriangle);
    Add(part, part, triangle, uint64_t{kTriangle}, static_cast<uint8_t>(kTriangle),
        {1, 1, 1, pitch, pitch, kTriangle / 8});
  }
  // What the rows of a strip from `row` on, of this half of the tile, do not see of the item.
  CM384_INLINE void HideUnseen(const Item& item, uint32_t strip, uint32_t row, uint32_t columns) const {
    const uint32_t last = columns - CM384_FLASH_TILE;  // the first column of the last block
    for (uint32_t r = 0; r < strip_rows_; r += kTriangle) {
      const uint32_t at = strip + r * columns * 4, own = sub_ * kRows + row + r;
      if constexpr (Form::kCausal) {
        if (item.last) {
          HideByTriangle(at, columns, last + own, 0);
          Hide(at, columns, last + own + kTriangle, columns);
        }
        if constexpr (kHasWindow) {
          if (Form::Enters(a_, item)) {
            HideByTriangle(at, columns, own, 1);
            Hide(at, columns, 0, own);
          }
        }
      } else {
        Hide(at, columns, item.count, columns);
      }
    }
  }
  CM384_INLINE bool HidesAny(const Item& item) const {
    if constexpr (!Form::kCausal) return item.count % CM384_FLASH_TILE != 0;
    if constexpr (kHasWindow) return item.last || Form::Enters(a_, item);
    return item.last;
  }

  // One value per row of a strip.
  template <class Block, class Whole>
  CM384_INLINE void ReduceRows(const Vector& to, const Vector& strip, uint32_t columns, Block&& block,
                               Whole&& whole) {
    using namespace AscendC;
    const Vector groups = At(kGroups, kStripElements / 8);
    block(groups, strip, static_cast<int>(strip_rows_ * columns / 64));
    PipeBarrier<PIPE_V>();
    whole(to, groups, static_cast<int>(columns / 8), static_cast<int>(strip_rows_),
          static_cast<int>(columns / 64));
    PipeBarrier<PIPE_V>();
  }

  CM384_INLINE void LoadStrip(const Item& item, uint32_t i, uint32_t row) {
    using namespace AscendC;
    const uint32_t b = loaded_++ & 1, columns = Blocks(item) * CM384_FLASH_TILE;
    WaitFlag<HardEvent::V_MTE2>(kStripEvent + static_cast<int>(b));
    DataCopy(At(kStrips + b * kStripElements * 4, strip_rows_ * columns),
             GlobalAt<float>(space_.Scores(i) + static_cast<uint64_t>(sub_ * kRows + row) * columns * 4),
             strip_rows_ * columns);
    SetFlag<HardEvent::MTE2_V>(kStripEvent + static_cast<int>(b));
  }
  CM384_INLINE void LoadFirst(const Item& item, uint32_t i) {
    AscendC::CrossCoreWaitFlag(kScoresReady);
    LoadStrip(item, i, 0);
  }

  // A strip is on its way while the one before is worked on, also the first one of the next item.
  void Softmax(const Item& item, uint32_t i, const Item* next) {
    using namespace AscendC;
    if (item.first) {
      ++tasks_;
      if constexpr (kHasSinks) LoadSinks(item);
    }
    for (uint32_t row = 0; row < kRows; row += strip_rows_) {
      if (row + strip_rows_ < kRows) LoadStrip(item, i, row + strip_rows_);
      SoftmaxOfStrip(item, i, row);
      if (row + strip_rows_ == kRows) {
        CrossCoreSetFlag<2, PIPE_MTE3>(kProbabilitiesReady);
        if (next != nullptr) LoadFirst(*next, i + 1);
      }
    }
    if constexpr (kHasSinks) {
      if (item.first) SetFlag<HardEvent::V_MTE2>(kSinkEvent);
    }
  }
  CM384_INLINE void LoadSinks(const Item& item) {
    using namespace AscendC;
    WaitFlag<HardEvent::V_MTE2>(kSinkEvent);
    DataCopy(At(kSinks, kRows),
             GlobalAt<float>(Form::Sinks(a_, item) + static_cast<uint64_t>(sub_) * kRows * 4), kRows);
    SetFlag<HardEvent::MTE2_V>(kSinkEvent);
    WaitFlag<HardEvent::MTE2_V>(kSinkEvent);
  }

  void SoftmaxOfStrip(const Item& item, uint32_t i, uint32_t first_row) {
    using namespace AscendC;
    const uint32_t b = used_++ & 1, at = kStrips + b * kStripElements * 4,
                   columns = Blocks(item) * CM384_FLASH_TILE, all = strip_rows_ * columns;
    const auto count = static_cast<int>(strip_rows_);
    const Vector strip = At(at, all), maximum = At(kMaximum + first_row * 4, strip_rows_),
                 total = At(kTotals + (tasks_ % 3 * kRows + first_row) * 4, strip_rows_),
                 row = At(kRow, strip_rows_), factor = At(kFactor, strip_rows_),
                 spread = At(kSpread, strip_rows_ * 8);
    WaitFlag<HardEvent::MTE2_V>(kStripEvent + static_cast<int>(b));
    Muls(strip, strip, a_.scale, static_cast<int>(all));
    PipeBarrier<PIPE_V>();
    if (HidesAny(item)) {
      HideUnseen(item, at, first_row, columns);
      PipeBarrier<PIPE_V>();
    }
    ReduceRows(
        row, strip, columns,
        [](const Vector& to, const Vector& from, int repeats) {
          BlockReduceMax(to, from, repeats, 64, 1, 1, 8);
        },
        [](const Vector& to, const Vector& from, int mask, int repeats, int pitch) {
          WholeReduceMax(to, from, mask, repeats, 1, 1, pitch, ReduceOrder::ORDER_ONLY_VALUE);
        });
    const Vector sinks = At(kSinks + first_row * 4, strip_rows_);
    if (item.first) {
      if constexpr (kHasSinks) {
        Max(maximum, row, sinks, count);
        PipeBarrier<PIPE_V>();
        Sub(factor, sinks, maximum, count);
        PipeBarrier<PIPE_V>();
        Exp(factor, factor, count);
      } else {
        Adds(maximum, row, 0.0f, count);
      }
    } else {
      Max(row, maximum, row, count);
      PipeBarrier<PIPE_V>();
      Sub(factor, maximum, row, count);
      Adds(maximum, row, 0.0f, count);
      PipeBarrier<PIPE_V>();
      Exp(factor, factor, count);
      PipeBarrier<PIPE_V>();
      Brcb(At(kFactors + (i % 3 * kRows + first_row) * 32, strip_rows_ * 8), factor,
           static_cast<uint8_t>(strip_rows_ / 8), {1, 8});
    }
    PipeBarrier<PIPE_V>();
    Brcb(spread, maximum, static_cast<uint8_t>(strip_rows_ / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    const auto pitch = static_cast<uint8_t>(columns / 8);
    for (uint32_t column = 0; column < columns; column += 64)
      Sub(strip[column], strip[column], spread, uint64_t{64}, static_cast<uint8_t>(strip_rows_),
          {1, 1, 0, pitch, pitch, 1});
    PipeBarrier<PIPE_V>();
    Exp(strip, strip, static_cast<int>(all));
    PipeBarrier<PIPE_V>();
    ReduceRows(
        row, strip, columns,
        [](const Vector& to, const Vector& from, int repeats) {
          BlockReduceSum(to, from, repeats, 64, 1, 1, 8);
        },
        [](const Vector& to, const Vector& from, int mask, int repeats, int stride) {
          WholeReduceSum(to, from, mask, repeats, 1, 1, stride);
        });
    if (item.first) {
      if constexpr (kHasSinks) {
        Add(total, row, factor, count);
      } else {
        Adds(total, row, 0.0f, count);
      }
    } else {
      Mul(total, total, factor, count);
      PipeBarrier<PIPE_V>();
      Add(total, total, row, count);
    }
    // A block of 16 columns behind the other, each with all rows.
    const uint32_t weights = kWeights + b * kWeightBytes, height = strip_rows_ + 1;
    const int event = kWeightEvent + static_cast<int>(b);
    WaitFlag<HardEvent::MTE3_V>(event);
    for (uint32_t column = 0; column < columns; column += 64)
      Cast(LocalTensor<bfloat16_t>(weights + column * height * 2, 64 * height), strip[column],
           RoundMode::CAST_RINT, uint64_t{64}, static_cast<uint8_t>(strip_rows_),
           {static_cast<uint16_t>(height), 1, 1, pitch});
    SetFlag<HardEvent::V_MTE2>(kStripEvent + static_cast<int>(b));
    SetFlag<HardEvent::V_MTE3>(event);
    WaitFlag<HardEvent::V_MTE3>(event);
    CopyBursts<CM384_MTE_UB_TO_GM>(space_.Probabilities(i) + (sub_ * kRows + first_row) * 32, weights,
                                   strip_rows_ * 32, columns / 16, height * 32, CM384_FLASH_TILE * 32);
    SetFlag<HardEvent::MTE3_V>(event);
    PipeBarrier<PIPE_V>();
  }

  static CM384_INLINE Vector SumFrom(uint32_t row) {
    return At(kSum + row * Form::kWidth * 4, kPieceRows * Form::kWidth);
  }
  // rows = rows * a value each; Divide: rows / it.
  template <bool Divide>
  static CM384_INLINE void Rows(const Vector& rows, const Vector& spread) {
    using namespace AscendC;
    constexpr uint8_t kPitch = Form::kWidth / 8;
    for (uint32_t half = 0; half < Form::kWidth; half += 64) {
      const BinaryRepeatParams p{1, 1, 0, kPitch, kPitch, 1};
      if constexpr (Divide) {
        Div(rows[half], rows[half], spread, uint64_t{64}, static_cast<uint8_t>(kPieceRows), p);
      } else {
        Mul(rows[half], rows[half], spread, uint64_t{64}, static_cast<uint8_t>(kPieceRows), p);
      }
    }
  }

  void Accumulate(const Item& item, uint32_t i) {
    using namespace AscendC;
    constexpr uint32_t kBytes = kPieceRows * Form::kWidth * 4;
    constexpr int kElements = static_cast<int>(kPieceRows * Form::kWidth);
    const uint64_t products = space_.Products(i) + static_cast<uint64_t>(sub_) * kRows * Form::kWidth * 4;
    CrossCoreWaitFlag(kProductsReady);
    if (item.first) WaitFlag<HardEvent::MTE3_V>(0);
    for (uint32_t p = 0; p < kPieces; ++p) {
      WaitFlag<HardEvent::V_MTE2>(static_cast<int>(p));
      DataCopy(At(kPiecesAt + p * kBytes, kPieceRows * Form::kWidth), GlobalAt<float>(products + p * kBytes),
               kPieceRows * Form::kWidth);
      SetFlag<HardEvent::MTE2_V>(static_cast<int>(p));
    }
    for (uint32_t p = 0; p < kPieces; ++p) {
      const Vector sum = SumFrom(p * kPieceRows),
                   piece = At(kPiecesAt + p * kBytes, kPieceRows * Form::kWidth);
      if (!item.first) Rows<false>(sum, At(kFactors + (i % 3 * kRows + p * kPieceRows) * 32, kPieceRows * 8));
      PipeBarrier<PIPE_V>();
      WaitFlag<HardEvent::MTE2_V>(static_cast<int>(p));
      if (item.first) {
        Adds(sum, piece, 0.0f, kElements);
      } else {
        Add(sum, sum, piece, kElements);
      }
      SetFlag<HardEvent::V_MTE2>(static_cast<int>(p));
    }
    PipeBarrier<PIPE_V>();
    if (item.last) Finish(item);
  }

  void Finish(const Item& item) {
    using namespace AscendC;
    const Vector spread = At(kSpread, kRows * 8);
    Brcb(spread, At(kTotals + ++finished_ % 3 * kRows * 4, kRows), static_cast<uint8_t>(kRows / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    for (uint32_t row = 0; row < kRows; row += kPieceRows) {
      const Vector sum = SumFrom(row);
      Rows<true>(sum, spread[row * 8]);
      PipeBarrier<PIPE_V>();
      Cast(sum.template ReinterpretCast<bfloat16_t>(), sum, RoundMode::CAST_RINT, kPieceRows * Form::kWidth);
    }
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    for (uint32_t row = 0; row < kRows; row += kPieceRows) {
      const uint32_t own = sub_ * kRows + row;
      if (own >= item.rows) break;
      const uint32_t left = item.rows - own;
      const uint64_t token = Form::FirstRow(a_, item) + item.tile * CM384_FLASH_TILE + own;
      CopyBursts<CM384_MTE_UB_TO_GM>(a_.out + (token * a_.heads + item.head) * Form::kWidth * 2,
                                     SumFrom(row).GetPhyAddr(), Form::kWidth * 2,
                                     left < kPieceRows ? left : kPieceRows, Form::kWidth * 2,
                                     static_cast<uint64_t>(a_.heads) * Form::kWidth * 2);
    }
    SetFlag<HardEvent::MTE3_V>(0);
  }

  const Arguments& a_;
  const uint32_t sub_, strip_rows_;
  const FlashWorkspace space_;
  typename Form::Walker walker_;
  uint32_t loaded_ = 0, used_ = 0;  // strips
  uint32_t tasks_ = 0, finished_ = 0;
};
