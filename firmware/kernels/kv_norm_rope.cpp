// Norm and rotation of what attention caches for a token. Arguments: firmware/abi/tokens.h.
#include "interleaved_rope.h"

using namespace AscendC;

namespace {

constexpr uint32_t kLatent = 512, kRope = InterleavedRope::kWidth;

class KvNormRope {
 public:
  KvNormRope(const cm384_kv_norm_rope& a, Places& places) : a_(a), rope_(places, 2) {
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = places.Allocate((kLatent + 2 * kRope) * 2);
      latent_[b] = places.Allocate(kLatent * 2);
      key_[b] = places.Allocate(2 * kRope * 2);
      angles_[b] = LocalTensor<float>(places.Allocate(512));
    }
    row_ = LocalTensor<float>(places.Allocate(kLatent * 4));
    work_ = LocalTensor<float>(places.Allocate(kLatent * 4));
    gamma_ = places.Allocate(kLatent * 2);
    total_ = LocalTensor<float>(places.Allocate(256));
  }

  void LoadGamma() {
    LoadBf16(gamma_, a_.gamma, 0, kLatent);
    SetFlag<HardEvent::MTE2_V>(2);
  }
  void Load(uint32_t token, uint32_t b) {
    LoadBf16(in_[b], a_.kv, static_cast<uint64_t>(token) * (kLatent + kRope), kLatent + kRope);
    DataCopy(angles_[b], GlobalAt<float>(a_.angles + token * 512ull), 128);
  }
  void Compute(uint32_t, uint32_t b) {
    constexpr int kCount = kLatent;
    PipeBarrier<PIPE_V>();
    Widen(row_, in_[b], kLatent);
    PipeBarrier<PIPE_V>();
    Mul(work_, row_, row_, kCount);
    Fold<CM384_VADD>(work_, kLatent);
    WholeReduceSum(total_, work_, 64, 1, 1, 1, 8);
    const float mean = FromVector(total_) / static_cast<float>(kLatent);
    float root = mean + a_.epsilon;
    asm("fsqrt.s %0, %0" : "+f"(root));
    ToVector();
    if (first_) WaitFlag<HardEvent::MTE2_V>(2);
    first_ = false;
    Muls(row_, row_, 1.0f / root, kCount);
    Widen(work_, gamma_, kLatent);
    PipeBarrier<PIPE_V>();
    Mul(row_, row_, work_, kCount);
    PipeBarrier<PIPE_V>();
    Narrow(latent_[b], row_, kLatent);
    rope_.Turn(in_[b] + kLatent * 2, angles_[b], key_[b]);
  }
  void Store(uint32_t token, uint32_t b) {
    const uint64_t slot = reinterpret_cast<const uint32_t*>(a_.slots)[token];
    StoreBf16(a_.latents, slot * kLatent, latent_[b], kLatent);
    InterleavedRope::Store(a_.keys + slot * kRope * 2, key_[b], 1, 2);
  }

 private:
  const cm384_kv_norm_rope& a_;
  InterleavedRope rope_;
  bool first_ = true;
  uint32_t in_[2], latent_[2], key_[2], gamma_;
  LocalTensor<float> angles_[2], row_, work_, total_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_kv_norm_rope& a = *reinterpret_cast<const cm384_kv_norm_rope*>(address);
  const Range tokens =
      Share(a.tokens, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  if (tokens.size() == 0) return;
  Places places;
  KvNormRope op(a, places);
  op.LoadGamma();
  RunRows(op, tokens, 2);
}
