// Casts between half and int4b_t, of a count of elements: made of instructions on bytes and 16-bit words, at
// their costs (the part has one; assumed).
#pragma once

#include "cm384/fused.h"

namespace AscendC {

// To -8..7, rounded as `mode` says: bytes first, then the low halves of each two in one.
template <typename D, typename S>
requires(is_same_v<D, int4b_t>&& is_same_v<S, half>) inline void Cast(const LocalTensor<D>& dst,
                                                                      const LocalTensor<S>& src,
                                                                      RoundMode mode, uint32_t count) {
  Cm384Pieces<2>(count, [&](uint32_t first, uint32_t now, auto temporary) {
    const LocalTensor<half> x = temporary(0).template ReinterpretCast<half>();
    const LocalTensor<int8_t> bytes = temporary(1).template ReinterpretCast<int8_t>();
    const auto n = static_cast<int32_t>(now), words = n / 2;
    Mins(x, src[first], half(7), n);
    PipeBarrier<PIPE_V>();
    Maxs(x, x, half(-8), n);
    PipeBarrier<PIPE_V>();
    Cast(bytes, x, mode, now);
    PipeBarrier<PIPE_V>();
    const LocalTensor<uint16_t> both = bytes.template ReinterpretCast<uint16_t>(),
                                low = x.template ReinterpretCast<uint16_t>();
    ShiftLeft(low, both, uint16_t{12}, words);
    ShiftLeft(both, both, uint16_t{4}, words);
    PipeBarrier<PIPE_V>();
    ShiftRight(low, low, uint16_t{12}, words);
    ShiftRight(both, both, uint16_t{12}, words);
    PipeBarrier<PIPE_V>();
    ShiftLeft(both, both, uint16_t{4}, words);
    PipeBarrier<PIPE_V>();
    Or(low, low, both, words);
    PipeBarrier<PIPE_V>();
    const LocalTensor<half> number = both.template ReinterpretCast<half>();
    Cast(number, low.template ReinterpretCast<int16_t>(), RoundMode::CAST_NONE, static_cast<uint32_t>(words));
    PipeBarrier<PIPE_V>();
    Cast(dst[first].template ReinterpretCast<uint8_t>(), number, RoundMode::CAST_NONE,
         static_cast<uint32_t>(words));
  });
}
// Each byte gives the two halves of a word of 4 B.
template <typename D, typename S>
requires(is_same_v<D, half>&& is_same_v<S, int4b_t>) inline void Cast(const LocalTensor<D>& dst,
                                                                      const LocalTensor<S>& src, RoundMode,
                                                                      uint32_t count) {
  Cm384Pieces<2>(count, [&](uint32_t first, uint32_t now, auto temporary) {
    const LocalTensor<half> x = temporary(0).template ReinterpretCast<half>();
    const LocalTensor<int16_t> both = temporary(1).template ReinterpretCast<int16_t>();
    const uint32_t words = now / 2;
    const auto n = static_cast<int32_t>(words);
    const LocalTensor<int32_t> high = temporary(0).template ReinterpretCast<int32_t>(),
                               result = dst[first].template ReinterpretCast<int32_t>();
    Cast(x, src[first].template ReinterpretCast<uint8_t>(), RoundMode::CAST_NONE, words);
    PipeBarrier<PIPE_V>();
    Cast(both, x, RoundMode::CAST_RINT, words);
    PipeBarrier<PIPE_V>();
    // The high half's number, in the upper 16 bits of its word.
    const auto number = [&](int16_t up, const LocalTensor<int32_t>& to) {
      const LocalTensor<int16_t> part = both[(words + 15) / 16 * 16];
      ShiftLeft(part, both, up, n);
      PipeBarrier<PIPE_V>();
      ShiftRight(part, part, int16_t{12}, n);
      PipeBarrier<PIPE_V>();
      Cast(part.template ReinterpretCast<half>(), part, RoundMode::CAST_NONE, words);
      PipeBarrier<PIPE_V>();
      Cast(to, part, RoundMode::CAST_NONE, words);
      PipeBarrier<PIPE_V>();
      ShiftLeft(to, to, 16, n);
      PipeBarrier<PIPE_V>();
    };
    number(8, high);
    number(12, result);
    const LocalTensor<uint32_t> low = result.template ReinterpretCast<uint32_t>();
    ShiftRight(low, low, 16u, n);
    PipeBarrier<PIPE_V>();
    Or(result, result, high, n);
  });
}

// One number, on the scalar unit.
template <typename T>
requires(is_same_v<T, bfloat16_t>) CM384_INLINE float Cast(const T& value) {
  return static_cast<float>(value);
}
template <typename T>
requires(is_same_v<T, float>) CM384_INLINE bfloat16_t Cast(const T& value) {
  return bfloat16_t(value);
}

// (src + offset) * scale with the types of source and destination named, the shape of offset and scale in
// braces; sources of int4b_t are cast first.
template <typename S, typename D, bool isTranspose, typename O>
inline void Cm384AntiQuant(const LocalTensor<D>& dst, const LocalTensor<S>& src, const O& offset,
                           const O& scale, uint32_t k, const AntiQuantShapeInfo& shape) {
  if constexpr (is_same_v<S, int4b_t>) {
    static_assert(is_same_v<D, half>, "AscendAntiQuant: of int4b_t to half: docs/ascend-c.md");
    const uint32_t n = src.GetSize();
    const LocalTensor<uint8_t> room = Cm384Scratch(LocalTensor<uint8_t>(), n * 3 + 4096);
    Cast(dst, src, RoundMode::CAST_NONE, n);
    PipeBarrier<PIPE_V>();
    LocalTensor<int8_t> bytes = room.template ReinterpretCast<int8_t>();
    bytes.SetSize(n);
    Cast(bytes, dst, RoundMode::CAST_NONE, n);
    PipeBarrier<PIPE_V>();
    AscendAntiQuant<D, isTranspose>(dst, bytes, offset, scale, room[(n + 31) / 32 * 32], k, shape);
  } else {
    AscendAntiQuant<D, isTranspose>(dst, src, offset, scale, LocalTensor<uint8_t>(), k, shape);
  }
}
#define CM384_ANTIQUANT(Operand)                                                                          \
  template <typename S, typename D, bool isTranspose>                                                     \
  CM384_INLINE void AscendAntiQuant(const LocalTensor<D>& dst, const LocalTensor<S>& src, Operand offset, \
                                    Operand scale, const LocalTensor<uint8_t>&, uint32_t k,               \
                                    const AntiQuantShapeInfo& shape = {}) {                               \
    Cm384AntiQuant<S, D, isTranspose>(dst, src, offset, scale, k, shape);                                 \
  }                                                                                                       \
  template <typename S, typename D, bool isTranspose>                                                     \
  CM384_INLINE void AscendAntiQuant(const LocalTensor<D>& dst, const LocalTensor<S>& src, Operand offset, \
                                    Operand scale, uint32_t k, const AntiQuantShapeInfo& shape = {}) {    \
    Cm384AntiQuant<S, D, isTranspose>(dst, src, offset, scale, k, shape);                                 \
  }
CM384_ANTIQUANT(const LocalTensor<D>&)
CM384_ANTIQUANT(const D)
#undef CM384_ANTIQUANT

}  // namespace AscendC
