// A vector core's part of a grouped matrix multiplication with weights of 4 bits (CM384_GEMM_INT4): of the
// two sums of each row 16 times the first, the second, and what 8 in each element adds, times the scales of
// their column and row, to BF16. All before the scales is exact in FP32 for k up to 16,384.
#pragma once

#include "cube_gemm.h"

class PairDequantiser {
 public:
  // `sums`: float per group and column, 8 * the sum of its weights.
  PairDequantiser(const cm384_gemm& a, uint64_t sums, uint32_t group, uint32_t sub_block)
      : a_(a),
        sums_(sums),
        pairs_(a.tiling.vector_rows / 2),
        pitch_(CM384_GEMM_PITCH(a.tiling.tile_n)),
        sub_block_(sub_block),
        workspace_(a.workspace + group * CM384_GEMM_WORKSPACE(a.tiling)) {
    uint32_t next = 0;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += (bytes + 31) / 32 * 32;
      return at;
    };
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = allocate(pairs_ * pitch_ * 8);
      out_[b] = allocate(pairs_ * pitch_ * 2);
      token_[b] = allocate(pairs_ * 4);
      spread_[b] = allocate((pairs_ + 7) / 8 * 256);
    }
    channel_ = allocate(pitch_ * 4);
    offset_ = allocate(pitch_ * 4);
  }

  void Run(TilesOf<2> walker) {
    using namespace AscendC;
    SetFlag<HardEvent::V_MTE2>(0);
    SetFlag<HardEvent::V_MTE2>(1);
    SetFlag<HardEvent::V_MTE2>(kChannel);
    SetFlag<HardEvent::MTE3_V>(0);
    SetFlag<HardEvent::MTE3_V>(1);
    Tile tile;
    for (; walker.next(tile); ++tiles_) One(tile);
    WaitFlag<HardEvent::V_MTE2>(0);
    WaitFlag<HardEvent::V_MTE2>(1);
    WaitFlag<HardEvent::V_MTE2>(kChannel);
    WaitFlag<HardEvent::MTE3_V>(0);
    WaitFlag<HardEvent::MTE3_V>(1);
  }

 private:
  static constexpr int kChannel = 2;  // event of what belongs to columns

  void One(const Tile& tile) {
    using namespace AscendC;
    const uint32_t slot = static_cast<uint32_t>(tiles_ & 1), all = tile.rows / 2, half = (all + 1) / 2;
    const uint32_t first = sub_block_ == 0 ? 0 : half, last = sub_block_ == 0 ? half : all;
    CrossCoreWaitFlag(static_cast<uint16_t>(kWorkspaceFull + slot));
    if (first < last) {
      const uint64_t column = (static_cast<uint64_t>(tile.group) * a_.n + tile.column) * 4;
      WaitFlag<HardEvent::V_MTE2>(kChannel);
      DataCopyPad(LocalTensor<float>(channel_, pitch_), GlobalAt<float>(a_.channel_scales + column),
                  {1, tile.columns * 4, 0, 0, 0});
      DataCopyPad(LocalTensor<float>(offset_, pitch_), GlobalAt<float>(sums_ + column),
                  {1, tile.columns * 4, 0, 0, 0});
    }
    for (uint32_t pair = first; pair < last; pair += pairs_) {
      const uint32_t count = last - pair < pairs_ ? last - pair : pairs_;
      const int b = static_cast<int>(pieces_++ & 1);
      Load(tile, slot, pair, count, b);
      if (pair + count == last) CrossCoreSetFlag<2, PIPE_MTE2>(static_cast<uint16_t>(kWorkspaceFree + slot));
      Scale(tile, count, b);
      if (pair + count == last) SetFlag<HardEvent::V_MTE2>(kChannel);
      Store(tile, pair, count, b);
    }
    if (first >= last) CrossCoreSetFlag<2, PIPE_MTE2>(static_cast<uint16_t>(kWorkspaceFree + slot));
  }

  void Load(const Tile& tile, uint32_t slot, uint32_t pair, uint32_t count, int b) {
    using namespace AscendC;
    WaitFlag<HardEvent::V_MTE2>(b);
    const uint64_t row = static_cast<uint64_t>(slot) * a_.tiling.tile_m + 2 * pair;
    DataCopy(LocalTensor<int32_t>(in_[b], pairs_ * pitch_ * 2),
             GlobalAt<int32_t>(workspace_ + row * pitch_ * 4), 2 * count * pitch_);
    DataCopyPad(LocalTensor<float>(token_[b], pairs_),
                GlobalAt<float>(a_.token_scales + (static_cast<uint64_t>(tile.row) / 2 + pair) * 4),
                {1, count * 4, 0, 0, 0});
    SetFlag<HardEvent::MTE2_V>(b);
  }

  // The first of two rows becomes the row, and then rows close up: each is read before one is written there.
  void Scale(const Tile& tile, uint32_t count, int b) {
    using namespace AscendC;
    const LocalTensor<int32_t> sums(in_[b], pairs_ * pitch_ * 2);
    const LocalTensor<float> values(in_[b], pairs_ * pitch_ * 2), channel(channel_, pitch_),
        offset(offset_, pitch_), spread(spread_[b], pairs_ * 8);
    const auto one = static_cast<uint8_t>(pitch_ / 8), two = static_cast<uint8_t>(pitch_ / 4);
    const auto repeats = static_cast<uint8_t>(count);
    WaitFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE3_V>(b);
    Cast(values, sums, RoundMode::CAST_RINT, 2 * count * pitch_);
    Brcb(spread, LocalTensor<float>(token_[b], pairs_), static_cast<uint8_t>((count + 7) / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    ForColumns(tile.columns, [&](uint32_t column, uint64_t mask) {
      Muls(values[column], values[column], 16.0f, mask, repeats, {1, 1, two, two});
    });
    PipeBarrier<PIPE_V>();
    ForColumns(tile.columns, [&](uint32_t column, uint64_t mask) {
      Add(values[column], values[column], values[pitch_ + column], mask, repeats, {1, 1, 1, two, two, two});
    });
    PipeBarrier<PIPE_V>();
    ForColumns(tile.columns, [&](uint32_t column, uint64_t mask) {
      Add(values[column], values[column], offset[column], mask, repeats, {1, 1, 1, two, two, 0});
    });
    PipeBarrier<PIPE_V>();
    ForColumns(tile.columns, [&](uint32_t column, uint64_t mask) {
      Mul(values[column], values[column], channel[column], mask, repeats, {1, 1, 1, one, two, 0});
    });
    PipeBarrier<PIPE_V>();
    ForColumns(tile.columns, [&](uint32_t column, uint64_t mask) {
      Mul(values[column], values[column], spread, mask, repeats, {1, 1, 0, one, one, 1});
    });
    PipeBarrier<PIPE_V>();
    Cast(LocalTensor<bfloat16_t>(out_[b], pairs_ * pitch_), values, RoundMode::CAST_RINT, count * pitch_);
    SetFlag<HardEvent::V_MTE2>(b);
    SetFlag<HardEvent::V_MTE3>(b);
  }

  template <class Visit>
  CM384_INLINE void ForColumns(uint32_t columns, Visit&& visit) {
    for (uint32_t column = 0; column < columns; column += 64)
      visit(column, columns - column < 64 ? columns - column : 64);
  }

  void Store(const Tile& tile, uint32_t pair, uint32_t count, int b) {
    using namespace AscendC;
    const uint64_t to = a_.c + (static_cast<uint64_t>(tile.row) / 2 + pair) * a_.c_pitch + tile.column * 2ull;
    WaitFlag<HardEvent::V_MTE3>(b);
    CopyBursts<CM384_MTE_UB_TO_GM>(to, out_[b], tile.columns * 2ull, count, pitch_ * 2ull, a_.c_pitch);
    SetFlag<HardEvent::MTE3_V>(b);
  }

  const cm384_gemm& a_;
  const uint64_t sums_;
  const uint32_t pairs_, pitch_, sub_block_;
  const uint64_t workspace_;
  uint32_t in_[2], out_[2], token_[2], spread_[2], channel_, offset_;
  uint64_t tiles_ = 0, pieces_ = 0;
};
