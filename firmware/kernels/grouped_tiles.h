// The tiles of C of a grouped matrix multiplication, dealt out to blocks in turn. The cube cores and the
// vector cores of a launch walk the same tiles.
#pragma once

#include "firmware/abi/gemm.h"

struct Tile {
  uint32_t group;
  uint32_t row, rows;        // of A and C: over all groups, or of a group that stands apart
  uint32_t column, columns;  // of the group's C
};

// `kRows`: of A for each row that is counted.
template <uint32_t kRows>
class TilesOf {
 public:
  // Block `block` of `blocks` takes every `blocks`-th tile.
  TilesOf(const cm384_gemm& a, uint32_t block, uint32_t blocks)
      : group_rows_(reinterpret_cast<const uint32_t*>(a.group_rows)),
        words_(a.group_row_words),
        groups_(a.groups),
        apart_(a.a_group != 0),
        n_(a.n),
        tile_m_(a.tiling.tile_m),
        tile_n_(a.tiling.tile_n),
        band_(a.tiling.band),
        columns_((a.n + a.tiling.tile_n - 1) / a.tiling.tile_n),
        index_(block),
        step_(blocks) {
    if (groups_ != 0) enter();
  }

  // The next tile of this block; false when there is none.
  bool next(Tile& tile) {
    while (group_ < groups_ && index_ >= rows_ * columns_) {
      index_ -= rows_ * columns_;
      if (!apart_) first_row_ += kRows * group_rows_[group_ * words_];
      if (++group_ < groups_) enter();
    }
    if (group_ >= groups_) return false;
    // Bands of tiles of m; within a band, column after column.
    const uint32_t band = index_ / (band_ * columns_), within = index_ - band * band_ * columns_;
    const uint32_t left = rows_ - band * band_, height = left < band_ ? left : band_;
    const uint32_t column = within / height, row = band * band_ + (within - column * height);
    tile.group = group_;
    tile.row = first_row_ + row * tile_m_;
    tile.rows = part(kRows * group_rows_[group_ * words_], row * tile_m_, tile_m_);
    tile.column = column * tile_n_;
    tile.columns = part(n_, column * tile_n_, tile_n_);
    index_ += step_;
    return true;
  }

 private:
  static uint32_t part(uint32_t total, uint32_t from, uint32_t most) {
    return total - from < most ? total - from : most;
  }
  void enter() { rows_ = (kRows * group_rows_[group_ * words_] + tile_m_ - 1) / tile_m_; }

  const uint32_t* group_rows_;
  uint32_t words_;  // from one group's to the next's
  uint32_t groups_;
  bool apart_;
  uint32_t n_, tile_m_, tile_n_, band_;
  uint32_t columns_;  // tiles of n
  uint32_t index_;    // of the next tile, in the group
  uint32_t step_;
  uint32_t group_ = 0;
  uint32_t rows_ = 0;       // tiles of m of the group
  uint32_t first_row_ = 0;  // of the group
};

using TileWalker = TilesOf<1>;
