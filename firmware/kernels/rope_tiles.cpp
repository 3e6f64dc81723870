// Rotary position embedding of tokens with few heads, as `interleave_rope` does it, several tokens to a tile:
// one copy in and one out, and instructions whose repeats go over tokens. Arguments: firmware/abi/tokens.h.
#include "firmware/abi/tokens.h"
#include "row_pipeline.h"

using namespace AscendC;

namespace {

class RopeTiles {
 public:
  RopeTiles(const cm384_interleave_rope& a, Range tokens) : a_(a), tokens_(tokens) {
    Places places;
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = places.Allocate(a.tile * Elements() * 2);
      out_[b] = places.Allocate(a.tile * Elements() * 2 + kWidth);
      angles_[b] = LocalTensor<float>(places.Allocate(a.tile * kAngles * 4));
    }
    const auto floats = [&] { return LocalTensor<float>(places.Allocate(a.tile * Elements() * 4)); };
    all_ = floats();
    first_ = floats();
    second_ = floats();
    turned_ = floats();
  }

  Range Tiles() const { return {0, (tokens_.size() + a_.tile - 1) / a_.tile}; }
  void Load(uint32_t tile, uint32_t b) {
    LoadBf16(in_[b], a_.x, FirstElement(tile), Tokens(tile) * Elements());
    DataCopy(angles_[b], GlobalAt<float>(a_.angles + First(tile) * (kAngles * 4ull)), Tokens(tile) * kAngles);
  }
  void Compute(uint32_t tile, uint32_t b) {
    const uint32_t rows = Tokens(tile) * a_.heads;
    uint64_t kept = 0;
    PipeBarrier<PIPE_V>();
    Widen(all_, in_[b], rows * kWidth);
    PipeBarrier<PIPE_V>();
    GatherMask(first_, all_, uint8_t{1}, false, 0, {1, static_cast<uint16_t>(rows), 8, 0}, kept);
    GatherMask(second_, all_, uint8_t{2}, false, 0, {1, static_cast<uint16_t>(rows), 8, 0}, kept);
    PipeBarrier<PIPE_V>();
    Turn(Tokens(tile), rows * kHalf, angles_[b]);
    PipeBarrier<PIPE_V>();
    // Half a repeat of floats is half a row; of the last one the other half lies behind the areas.
    const UnaryRepeatParams halves{1, 1, 4, 4};
    const auto repeats = static_cast<uint8_t>(rows);
    Cast(LocalTensor<bfloat16_t>(out_[b]), turned_, RoundMode::CAST_RINT, uint64_t{kHalf}, repeats, halves);
    Cast(LocalTensor<bfloat16_t>(out_[b] + kWidth), turned_[rows * kHalf], RoundMode::CAST_RINT,
         uint64_t{kHalf}, repeats, halves);
  }
  void Store(uint32_t tile, uint32_t b) {
    StoreBf16(a_.out, FirstElement(tile), out_[b], Tokens(tile) * Elements());
  }

 private:
  static constexpr uint32_t kWidth = CM384_ROPE_WIDTH, kHalf = kWidth / 2, kAngles = 2 * kWidth;

  uint32_t Elements() const { return a_.heads * kWidth; }
  uint32_t First(uint32_t tile) const { return tokens_.first + tile * a_.tile; }
  uint64_t FirstElement(uint32_t tile) const { return static_cast<uint64_t>(First(tile)) * Elements(); }
  uint32_t Tokens(uint32_t tile) const {
    const uint32_t left = tokens_.last - First(tile);
    return left < a_.tile ? left : a_.tile;
  }

  // The planes by the angles of their tokens: `half` first elements, then as many second ones. A repeat is
  // two heads of a token.
  void Turn(uint32_t tokens, uint32_t half, const LocalTensor<float>& cosines) {
    const LocalTensor<float> sines = cosines[kWidth];
    const auto repeats = static_cast<uint8_t>(tokens), stride = static_cast<uint8_t>(a_.heads * 4);
    const BinaryRepeatParams each{1, 1, 1, stride, stride, 16};
    for (uint32_t from = 0; from < a_.heads * kHalf; from += 64) {
      Mul(turned_[from], first_[from], cosines, uint64_t{64}, repeats, each);
      Mul(turned_[half + from], second_[from], cosines, uint64_t{64}, repeats, each);
      Mul(all_[from], second_[from], sines, uint64_t{64}, repeats, each);
      Mul(all_[half + from], first_[from], sines, uint64_t{64}, repeats, each);
    }
    PipeBarrier<PIPE_V>();
    Sub(turned_, turned_, all_, static_cast<int>(half));
    Add(turned_[half], turned_[half], all_[half], static_cast<int>(half));
  }

  const cm384_interleave_rope& a_;
  const Range tokens_;
  uint32_t in_[2], out_[2];
  LocalTensor<float> angles_[2], all_, first_, second_, turned_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_interleave_rope& a = *reinterpret_cast<const cm384_interleave_rope*>(address);
  const Range tokens =
      Share(a.tokens, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  RopeTiles op(a, tokens);
  RunRows(op, op.Tiles(), 2);
}
