// Rotary position embedding of the heads of tokens. Arguments: firmware/abi/tokens.h.
#include "interleaved_rope.h"

using namespace AscendC;

namespace {

class RopeTokens {
 public:
  RopeTokens(const cm384_interleave_rope& a, Places& places) : a_(a), rope_(places, a.heads) {
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = places.Allocate(a.heads * InterleavedRope::kWidth * 2);
      out_[b] = places.Allocate(a.heads * InterleavedRope::kWidth * 2);
      angles_[b] = LocalTensor<float>(places.Allocate(512));
    }
  }

  void Load(uint32_t token, uint32_t b) {
    LoadBf16(in_[b], a_.x, First(token), Elements());
    DataCopy(angles_[b], GlobalAt<float>(a_.angles + token * 512ull), 128);
  }
  void Compute(uint32_t, uint32_t b) { rope_.Turn(in_[b], angles_[b], out_[b]); }
  void Store(uint32_t token, uint32_t b) {
    InterleavedRope::Store(a_.out + First(token) * 2, out_[b], a_.heads, a_.heads);
  }

 private:
  uint32_t Elements() const { return a_.heads * InterleavedRope::kWidth; }
  uint64_t First(uint32_t token) const { return static_cast<uint64_t>(token) * Elements(); }

  const cm384_interleave_rope& a_;
  InterleavedRope rope_;
  uint32_t in_[2], out_[2];
  LocalTensor<float> angles_[2];
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_interleave_rope& a = *reinterpret_cast<const cm384_interleave_rope*>(address);
  const Range tokens =
      Share(a.tokens, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  Places places;
  RopeTokens op(a, places);
  RunRows(op, tokens, 2);
}
