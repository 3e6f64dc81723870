// A vector core's part of an INT8 grouped matrix multiplication: sums from the workspace, times the scales of
// their column and row, to BF16.
#pragma once

#include "cube_gemm.h"

class Dequantiser {
 public:
  Dequantiser(const cm384_gemm& a, uint32_t group, uint32_t sub_block)
      : a_(a),
        rows_(a.tiling.vector_rows),
        pitch_(CM384_GEMM_PITCH(a.tiling.tile_n)),
        sub_block_(sub_block),
        workspace_(a.workspace + group * CM384_GEMM_WORKSPACE(a.tiling)) {
    uint32_t next = 0;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += bytes;
      return at;
    };
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = allocate(rows_ * pitch_ * 4);
      out_[b] = allocate(rows_ * pitch_ * 2);
      token_[b] = allocate(rows_ * 4);
      spread_[b] = allocate(rows_ * 32);
    }
    channel_ = allocate(pitch_ * 4);
  }

  void Run(TileWalker walker) {
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
  static constexpr int kChannel = 2;  // event of the columns' scales

  void One(const Tile& tile) {
    using namespace AscendC;
    const uint32_t slot = static_cast<uint32_t>(tiles_ & 1);
    const uint32_t half = (tile.rows + 1) / 2;
    const uint32_t first = sub_block_ == 0 ? 0 : half, last = sub_block_ == 0 ? half : tile.rows;
    CrossCoreWaitFlag(static_cast<uint16_t>(kWorkspaceFull + slot));
    if (first < last) {
      WaitFlag<HardEvent::V_MTE2>(kChannel);
      DataCopyPad(
          LocalTensor<float>(channel_, pitch_),
          GlobalAt<float>(a_.channel_scales + (static_cast<uint64_t>(tile.group) * a_.n + tile.column) * 4),
          {1, tile.columns * 4, 0, 0, 0});
    }
    for (uint32_t row = first; row < last; row += rows_) {
      const uint32_t count = last - row < rows_ ? last - row : rows_;
      const int b = static_cast<int>(pieces_++ & 1);
      Load(tile, slot, row, count, b);
      if (row + count == last) CrossCoreSetFlag<2, PIPE_MTE2>(static_cast<uint16_t>(kWorkspaceFree + slot));
      Scale(tile, count, b);
      if (row + count == last) SetFlag<HardEvent::V_MTE2>(kChannel);
      Store(tile, row, count, b);
    }
    if (first >= last) CrossCoreSetFlag<2, PIPE_MTE2>(static_cast<uint16_t>(kWorkspaceFree + slot));
  }

  void Load(const Tile& tile, uint32_t slot, uint32_t row, uint32_t count, int b) {
    using namespace AscendC;
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(
        LocalTensor<int32_t>(in_[b], rows_ * pitch_),
        GlobalAt<int32_t>(workspace_ + (static_cast<uint64_t>(slot) * a_.tiling.tile_m + row) * pitch_ * 4),
        count * pitch_);
    DataCopyPad(LocalTensor<float>(token_[b], rows_),
                GlobalAt<float>(a_.token_scales + (static_cast<uint64_t>(tile.row) + row) * 4),
                {1, count * 4, 0, 0, 0});
    SetFlag<HardEvent::MTE2_V>(b);
  }

  void Scale(const Tile& tile, uint32_t count, int b) {
    using namespace AscendC;
    const LocalTensor<int32_t> sums(in_[b], rows_ * pitch_);
    const LocalTensor<float> values(in_[b], rows_ * pitch_), channel(channel_, pitch_),
        spread(spread_[b], rows_ * 8);
    const auto pitch_blocks = static_cast<uint8_t>(pitch_ / 8);
    const auto repeats = static_cast<uint8_t>(count);
    WaitFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE3_V>(b);
    Cast(values, sums, RoundMode::CAST_RINT, count * pitch_);
    Brcb(spread, LocalTensor<float>(token_[b], rows_), static_cast<uint8_t>((count + 7) / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    ForColumns(tile.columns, [&](uint32_t column, uint64_t mask) {
      Mul(values[column], values[column], channel[column], mask, repeats,
          {1, 1, 1, pitch_blocks, pitch_blocks, 0});
    });
    PipeBarrier<PIPE_V>();
    ForColumns(tile.columns, [&](uint32_t column, uint64_t mask) {
      Mul(values[column], values[column], spread, mask, repeats, {1, 1, 0, pitch_blocks, pitch_blocks, 1});
    });
    PipeBarrier<PIPE_V>();
    Cast(LocalTensor<bfloat16_t>(out_[b], rows_ * pitch_), values, RoundMode::CAST_RINT, count * pitch_);
    SetFlag<HardEvent::V_MTE2>(b);
    SetFlag<HardEvent::V_MTE3>(b);
  }

  template <class Visit>
  CM384_INLINE void ForColumns(uint32_t columns, Visit&& visit) {
    for (uint32_t column = 0; column < columns; column += 64) {
      visit(column, columns - column < 64 ? columns - column : 64);
    }
  }

  void Store(const Tile& tile, uint32_t row, uint32_t count, int b) {
    using namespace AscendC;
    const uint64_t to = a_.c + (tile.row + row) * a_.c_pitch + tile.column * 2ull;
    WaitFlag<HardEvent::V_MTE3>(b);
    CopyBursts<CM384_MTE_UB_TO_GM>(to, out_[b], tile.columns * 2ull, count, pitch_ * 2ull, a_.c_pitch);
    SetFlag<HardEvent::MTE3_V>(b);
  }

  const cm384_gemm& a_;
  const uint32_t rows_, pitch_, sub_block_;
  const uint64_t workspace_;
  uint32_t in_[2], out_[2], token_[2], spread_[2], channel_;
  uint64_t tiles_ = 0, pieces_ = 0;
};
