// The cube core's part of a grouped matrix multiplication: A and B to L1 in pieces of k, from there to L0,
// MMAD, and the fixpipe. MTE2 runs ahead of the tile that is computed, over the tiles' borders.
#pragma once

#include "firmware/abi/gemm.h"
#include "grouped_tiles.h"
#include "kernel_operator.h"

// What the AICs and their AIVs signal to each other. Slot s of the workspace: full, free again.
inline constexpr uint16_t kWorkspaceFull = 0, kWorkspaceFree = 2;

CM384_INLINE uint32_t RoundUp(uint32_t value, uint32_t to) {
  return (value + to - 1) / to * to;
}

template <typename T>
class CubeGemm {
 public:
  CubeGemm(const cm384_gemm& a, uint32_t block, uint32_t blocks)
      : a_(a),
        t_(a.tiling),
        row_bytes_(a.k * static_cast<uint32_t>(sizeof(T)) / AscendC::kPacked<T>),
        a_bytes_(RoundUp(t_.tile_m, 16) * t_.l1_k),
        slot_bytes_(a_bytes_ + RoundUp(t_.tile_n, 16) * t_.l1_k),
        c_bytes_(RoundUp(t_.tile_m, 16) * t_.part_n * 4),
        workspace_(a.workspace + block * CM384_GEMM_WORKSPACE(t_)),
        compute_(a, block, blocks),
        load_(compute_) {
    loading_ = load_.next(loaded_);
  }

  void Run() {
    using namespace AscendC;
    for (uint32_t s = 0; s < t_.l1_buffers; ++s) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(s));
    for (uint32_t b = 0; b < 2; ++b) SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    for (uint32_t c = 0; c < t_.places; ++c) SetFlag<HardEvent::FIX_M>(static_cast<int>(c));
    Tile tile;
    while (compute_.next(tile)) Compute(tile);
    for (uint32_t s = 0; s < t_.l1_buffers; ++s) WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(s));
    for (uint32_t b = 0; b < 2; ++b) WaitFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    for (uint32_t c = 0; c < t_.places; ++c) WaitFlag<HardEvent::FIX_M>(static_cast<int>(c));
    // What the vector cores have freed last and nobody took.
    if constexpr (kSums) {
      for (uint32_t s = 0; s < 2 && s < tiles_; ++s)
        CrossCoreWaitFlag(static_cast<uint16_t>(kWorkspaceFree + s));
    }
  }

 private:
  static constexpr uint32_t kHalf = 32 * 1024;  // L0A and L0B have two buffers each
  // S32 that the vector cores take.
  static constexpr bool kSums = AscendC::is_same_v<T, int8_t> || AscendC::is_same_v<T, int4b_t>;

  // The next piece of k of the tile that is loaded to the next buffer of L1.
  void LoadPiece() {
    using namespace AscendC;
    const uint32_t slot = load_slot_;
    load_slot_ = Next(slot, t_.l1_buffers);
    const uint32_t l1 = slot * slot_bytes_;
    const uint32_t left = row_bytes_ - load_k_, bytes = left < t_.l1_k ? left : t_.l1_k;
    WaitFlag<HardEvent::MTE1_MTE2>(static_cast<int>(slot));
    CopyNd2Nz(l1, a_.a + loaded_.group * a_.a_group + loaded_.row * a_.a_pitch + load_k_, loaded_.rows, bytes,
              a_.a_pitch, RoundUp(loaded_.rows, 16) * 32);
    const uint32_t column_bytes = RoundUp(loaded_.columns, 16) * 32;
    if (a_.b_nz != 0) {
      const uint64_t height = RoundUp(a_.n, 16) * 32ull;  // of a column of blocks of B
      const uint64_t from =
          a_.b + loaded_.group * height * (RoundUp(row_bytes_, 32) / 32) + load_k_ / 32 * height;
      CopyToL1(l1 + a_bytes_, from + loaded_.column * 32ull, loaded_.columns * 32ull, RoundUp(bytes, 32) / 32,
               height, column_bytes);
    } else {
      const uint64_t row = static_cast<uint64_t>(loaded_.group) * a_.n + loaded_.column;
      CopyNd2Nz(l1 + a_bytes_, a_.b + row * row_bytes_ + load_k_, loaded_.columns, bytes, row_bytes_,
                column_bytes);
    }
    SetFlag<HardEvent::MTE2_MTE1>(static_cast<int>(slot));
    ++loads_;
    load_k_ += bytes;
    if (load_k_ == row_bytes_) {
      load_k_ = 0;
      loading_ = load_.next(loaded_);
    }
  }

  // Columns of a tile that have a place of their own in L0C.
  struct Part {
    uint32_t column, columns;
    int place;
  };
  Part PartOf(const Tile& tile, uint32_t number) const {
    const uint32_t column = number * t_.part_n, left = tile.columns - column, place = used_ + number;
    return {column, left < t_.part_n ? left : t_.part_n,
            static_cast<int>(place < t_.places ? place : place - t_.places)};
  }
  // The next of `count` places that are taken in turn.
  static CM384_INLINE uint32_t Next(uint32_t place, uint32_t count) {
    return place + 1 < count ? place + 1 : 0;
  }

  void Compute(const Tile& tile) {
    const uint32_t parts = (tile.columns + t_.part_n - 1) / t_.part_n;
    for (uint32_t k = 0; k < row_bytes_; k += t_.l1_k, ++pieces_, slot_ = Next(slot_, t_.l1_buffers)) {
      while (loading_ && loads_ < pieces_ + t_.l1_buffers) LoadPiece();
      const uint32_t left = row_bytes_ - k;
      ComputePiece(tile, parts, k == 0, left <= t_.l1_k, left < t_.l1_k ? left : t_.l1_k);
    }
    used_ += parts;
    if (used_ >= t_.places) used_ -= t_.places;
    ++tiles_;
  }

  // The products of what one buffer of L1 holds; after a tile's last one its parts go out.
  void ComputePiece(const Tile& tile, uint32_t parts, bool first, bool last, uint32_t bytes) {
    using namespace AscendC;
    const uint32_t slot = slot_;
    WaitFlag<HardEvent::MTE2_MTE1>(static_cast<int>(slot));
    for (uint32_t number = 0; number < parts; ++number) {
      const Part part = PartOf(tile, number);
      if (first) WaitFlag<HardEvent::FIX_M>(part.place);
      for (uint32_t k = 0; k < bytes; k += t_.l0_k) {
        Step(tile, part, slot * slot_bytes_, k, bytes - k < t_.l0_k ? bytes - k : t_.l0_k, first && k == 0);
      }
      if (number + 1 == parts) SetFlag<HardEvent::MTE1_MTE2>(static_cast<int>(slot));
      if (last) Drain(tile, part, number == 0, number + 1 == parts);
    }
  }

  // A and the part's B from L1 to the next half of L0A and L0B, and their product.
  CM384_INLINE void Step(const Tile& tile, const Part& part, uint32_t l1, uint32_t k, uint32_t bytes,
                         bool first) {
    using namespace AscendC;
    const uint32_t rows = RoundUp(tile.rows, 16), columns = RoundUp(tile.columns, 16);
    const uint32_t blocks = RoundUp(bytes, 32) / 32, b = steps_++ & 1;
    WaitFlag<HardEvent::M_MTE1>(static_cast<int>(b));
    LoadA<T>(b * kHalf, l1 + k * rows, rows * 32, rows / 16, blocks);
    LoadB<T>(b * kHalf, l1 + a_bytes_ + k * columns + part.column * 32, columns * 32,
             RoundUp(part.columns, 16) / 16, blocks);
    SetFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    WaitFlag<HardEvent::MTE1_M>(static_cast<int>(b));
    MmadParams p;
    p.m = static_cast<uint16_t>(tile.rows);
    p.n = static_cast<uint16_t>(part.columns);
    p.k = static_cast<uint16_t>(bytes / sizeof(T) * kPacked<T>);
    p.cmatrixInitVal = first;
    Mmad<T>(static_cast<uint32_t>(part.place) * c_bytes_, b * kHalf, b * kHalf, p);
    SetFlag<HardEvent::M_MTE1>(static_cast<int>(b));
  }

  void Drain(const Tile& tile, const Part& part, bool first, bool last) {
    using namespace AscendC;
    const uint32_t l0c = static_cast<uint32_t>(part.place) * c_bytes_;
    SetFlag<HardEvent::M_FIX>(part.place);
    WaitFlag<HardEvent::M_FIX>(part.place);
    if constexpr (kSums) {
      const uint32_t slot = static_cast<uint32_t>(tiles_ & 1), pitch = CM384_GEMM_PITCH(t_.tile_n) * 4;
      if (first && tiles_ >= 2) CrossCoreWaitFlag(static_cast<uint16_t>(kWorkspaceFree + slot));
      Fixpipe<CM384_FIX_KEEP>(workspace_ + slot * static_cast<uint64_t>(t_.tile_m) * pitch + part.column * 4,
                              l0c, tile.rows, part.columns, pitch);
      if (last) CrossCoreSetFlag<2, PIPE_FIX>(static_cast<uint16_t>(kWorkspaceFull + slot));
    } else {
      const uint64_t column = tile.column + part.column;
      if (a_.type == CM384_GEMM_BF16_PARTS) {
        Fixpipe<CM384_FIX_KEEP>(a_.c + tile.group * a_.c_group + tile.row * a_.c_pitch + column * 4, l0c,
                                tile.rows, part.columns, a_.c_pitch);
        return SetFlag<HardEvent::FIX_M>(part.place);
      }
      Fixpipe<CM384_FIX_F32_TO_BF16>(a_.c + tile.group * a_.c_group + tile.row * a_.c_pitch + column * 2, l0c,
                                     tile.rows, part.columns, a_.c_pitch);
    }
    SetFlag<HardEvent::FIX_M>(part.place);
  }

  const cm384_gemm& a_;
  const cm384_gemm_tiling& t_;
  const uint32_t row_bytes_, a_bytes_, slot_bytes_, c_bytes_;
  const uint64_t workspace_;
  TilesOf<AscendC::kPacked<T>> compute_, load_;
  Tile loaded_;  // the tile that is loaded
  bool loading_;
  uint32_t load_k_ = 0;  // bytes of k loaded of it
  uint64_t loads_ = 0;   // pieces loaded
  uint64_t pieces_ = 0;  // pieces computed
  uint64_t tiles_ = 0;
  uint32_t load_slot_ = 0, slot_ = 0;  // buffers of L1 of the next pieces
  uint32_t used_ = 0;                  // the place in L0C of the tile's first part
  uint32_t steps_ = 0;
};

// The share of block `block` of `blocks`. Not inline: where a kernel has several multiplications, the later
// ones find the code in the instruction cache.
template <typename T>
[[gnu::noinline]] void RunCubeGemm(const cm384_gemm& a, uint32_t block, uint32_t blocks) {
  CubeGemm<T>(a, block, blocks).Run();
}
