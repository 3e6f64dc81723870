// INT8 quantisation of short rows, as `quantise_rows` does it, several to a tile: one copy in and one out,
// and instructions whose repeats go over all rows of the tile, so that neither starting them nor the scalar
// unit is paid for every row. Arguments: firmware/abi/rows.h.
#include "row_pipeline.h"

using namespace AscendC;

namespace {

// For a float of each row, up to as many as an instruction has repeats.
constexpr uint32_t kSingles = 1024;

class QuantiseTiles {
 public:
  QuantiseTiles(const cm384_rows& a, Range rows)
      : a_(a),
        rows_(rows),
        tile_(a.chunk / a.width),
        repeats_(a.width / 64),
        by_column_((a.flags & CM384_ROWS_STATIC) != 0) {
    Places places;
    for (uint32_t b = 0; b < a.buffers; ++b) {
      in_[b] = places.Allocate(a.chunk * 2);
      out_[b] = places.Allocate(a.chunk);
      scale_[b] = places.Allocate(kSingles);
    }
    values_ = LocalTensor<float>(places.Allocate(a.chunk * 4));
    work_ = LocalTensor<float>(places.Allocate(a.chunk * 4));
    largest_ = LocalTensor<float>(places.Allocate(a.chunk / 2));
    factor_ = LocalTensor<float>(places.Allocate(kSingles));
    spread_ = LocalTensor<float>(places.Allocate(tile_ * 32));
    top_ = LocalTensor<float>(places.Allocate(kSingles));
    one_ = LocalTensor<float>(places.Allocate(kSingles));
    if (by_column_) columns_ = LocalTensor<float>(places.Allocate(a.width * 4));
  }

  // What all tiles use.
  void Open() {
    if (by_column_) {
      DataCopy(columns_, GlobalAt<float>(a_.in[1]), a_.width);
    } else {
      Duplicate(top_, 127.0f, static_cast<int32_t>(tile_));
      Duplicate(one_, 1.0f, static_cast<int32_t>(tile_));
    }
    SetFlag<HardEvent::MTE2_V>(2);
    WaitFlag<HardEvent::MTE2_V>(2);
  }
  Range Tiles() const { return {0, (rows_.size() + tile_ - 1) / tile_}; }

  void Load(uint32_t tile, uint32_t b) {
    LoadBf16(in_[b], a_.in[0], FirstElement(tile), Rows(tile) * a_.width);
  }
  void Compute(uint32_t tile, uint32_t b) {
    const uint32_t rows = Rows(tile), count = rows * a_.width;
    PipeBarrier<PIPE_V>();
    Widen(values_, in_[b], count);
    PipeBarrier<PIPE_V>();
    if (by_column_) {
      for (uint32_t row = 0; row < rows; ++row)
        Mul(Row(row), Row(row), columns_, uint64_t{64}, Repeats(repeats_), {1, 1, 1, 8, 8, 8});
    } else {
      FindFactors(rows, count, b);
      Scale(rows);
    }
    const auto integers = work_.ReinterpretCast<int32_t>();
    const auto halves = values_.ReinterpretCast<half>();
    PipeBarrier<PIPE_V>();
    Cast(integers, values_, RoundMode::CAST_RINT, count);
    PipeBarrier<PIPE_V>();
    Cast(halves, integers, RoundMode::CAST_RINT, count);
    PipeBarrier<PIPE_V>();
    Cast(LocalTensor<int8_t>(out_[b]), halves, RoundMode::CAST_TRUNC, count);
  }
  void Store(uint32_t tile, uint32_t b) {
    const uint32_t rows = Rows(tile);
    DataCopy(GlobalAt<int8_t>(a_.out[0] + FirstElement(tile)), LocalTensor<int8_t>(out_[b]), rows * a_.width);
    if (!by_column_)
      DataCopyPad(GlobalAt<float>(a_.out[1] + First(tile) * 4ull), LocalTensor<float>(scale_[b]),
                  {1, rows * 4, 0, 0, 0});
  }

 private:
  uint32_t First(uint32_t tile) const { return rows_.first + tile * tile_; }
  uint64_t FirstElement(uint32_t tile) const { return static_cast<uint64_t>(First(tile)) * a_.width; }
  uint32_t Rows(uint32_t tile) const {
    const uint32_t left = rows_.last - First(tile);
    return left < tile_ ? left : tile_;
  }
  LocalTensor<float> Row(uint32_t row) const { return values_[row * a_.width]; }
  static uint8_t Repeats(uint32_t count) { return static_cast<uint8_t>(count); }

  // The largest magnitude of every row: of each 32 B, then of what that leaves of a row, an eighth of its
  // elements, folded onto their first 64.
  void FindFactors(uint32_t rows, uint32_t count, uint32_t b) {
    const uint32_t left = a_.width / 8;
    const auto stride = static_cast<uint8_t>(left / 8);
    Abs(work_, values_, static_cast<int32_t>(count));
    PipeBarrier<PIPE_V>();
    ForCount(count, 64, [&](uint32_t first, uint32_t repeats) {
      BlockReduceMax(largest_[first / 8], work_[first], static_cast<int32_t>(repeats), 64, 1, 1, 8);
    });
    PipeBarrier<PIPE_V>();
    for (uint32_t from = 64; from < left; from += 64) {
      Max(largest_, largest_, largest_[from], uint64_t{left - from < 64 ? left - from : 64}, Repeats(rows),
          {1, 1, 1, stride, stride, stride});
      PipeBarrier<PIPE_V>();
    }
    WholeReduceMax(factor_, largest_, static_cast<int32_t>(left < 64 ? left : 64), static_cast<int32_t>(rows),
                   1, 1, stride, ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    const auto each = static_cast<int32_t>(rows);
    Div(factor_, top_, factor_, each);
    PipeBarrier<PIPE_V>();
    Div(LocalTensor<float>(scale_[b]), one_, factor_, each);
  }

  // Each row by its factor, which fills a block; repeats go over the row, or over rows where that takes fewer
  // instructions.
  void Scale(uint32_t rows) {
    Brcb(spread_, factor_, Repeats((rows + 7) / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    if (repeats_ < rows) {
      const auto stride = static_cast<uint8_t>(a_.width / 8);
      for (uint32_t column = 0; column < a_.width; column += 64)
        Mul(values_[column], values_[column], spread_, uint64_t{64}, Repeats(rows),
            {1, 1, 0, stride, stride, 1});
    } else {
      for (uint32_t row = 0; row < rows; ++row)
        Mul(Row(row), Row(row), spread_[row * 8], uint64_t{64}, Repeats(repeats_), {1, 1, 0, 8, 8, 0});
    }
  }

  const cm384_rows& a_;
  const Range rows_;
  const uint32_t tile_, repeats_;  // rows of a tile, repeats of a row
  const bool by_column_;
  uint32_t in_[2], out_[2], scale_[2];
  LocalTensor<float> values_, work_, largest_, factor_, spread_, top_, one_, columns_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  const Range rows =
      Share(a.rows, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  if (rows.size() == 0) return;
  QuantiseTiles op(a, rows);
  op.Open();
  RunRows(op, op.Tiles(), a.buffers);
}
