// Root-mean-square norm of heads of tokens, rows of 64 or 128, several to a tile. Arguments:
// firmware/abi/rows.h.
#include "head_norm.h"
#include "row_pipeline.h"

using namespace AscendC;

namespace {

template <uint32_t kWidth>
class HeadNormRows {
 public:
  HeadNormRows(const cm384_rows& a, Range rows)
      : a_(a), rows_(rows), tile_(a.chunk / kWidth), norm_(tile_, 0, a.epsilon) {
    Places places;
    places.Allocate(kHeadNormBytes(tile_, kWidth));
    for (uint32_t b = 0; b < a.buffers; ++b) {
      in_[b] = places.Allocate(a.chunk * 2);
      out_[b] = places.Allocate(a.chunk * 2);
    }
    values_ = LocalTensor<float>(places.Allocate(a.chunk * 4));
    work_ = LocalTensor<float>(places.Allocate(a.chunk * 4));
  }

  void Open() const { norm_.Open(a_.in[2], 2); }
  Range Tiles() const { return {0, (rows_.size() + tile_ - 1) / tile_}; }
  void Load(uint32_t tile, uint32_t b) {
    LoadBf16(in_[b], a_.in[0], FirstElement(tile), Rows(tile) * kWidth);
  }
  void Compute(uint32_t tile, uint32_t b) {
    PipeBarrier<PIPE_V>();
    Widen(values_, in_[b], Rows(tile) * kWidth);
    PipeBarrier<PIPE_V>();
    norm_.Rows(values_, work_, Rows(tile));
    Narrow(out_[b], values_, Rows(tile) * kWidth);
  }
  void Store(uint32_t tile, uint32_t b) {
    StoreBf16(a_.out[0], FirstElement(tile), out_[b], Rows(tile) * kWidth);
  }

 private:
  uint32_t First(uint32_t tile) const { return rows_.first + tile * tile_; }
  uint64_t FirstElement(uint32_t tile) const { return static_cast<uint64_t>(First(tile)) * kWidth; }
  uint32_t Rows(uint32_t tile) const {
    const uint32_t left = rows_.last - First(tile);
    return left < tile_ ? left : tile_;
  }

  const cm384_rows& a_;
  const Range rows_;
  const uint32_t tile_;
  const HeadNorm<kWidth> norm_;
  uint32_t in_[2], out_[2];
  LocalTensor<float> values_, work_;
};

template <uint32_t kWidth>
[[gnu::noinline]] void Run(const cm384_rows& a, Range rows) {
  HeadNormRows<kWidth> op(a, rows);
  op.Open();
  RunRows(op, op.Tiles(), a.buffers);
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  const Range rows =
      Share(a.rows, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  if (rows.size() == 0) return;
  if (a.width == 64) {
    Run<64>(a, rows);
  } else {
    Run<128>(a, rows);
  }
}
