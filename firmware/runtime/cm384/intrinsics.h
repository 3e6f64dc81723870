// Names of the layer below Ascend C: each is the instruction under a call, under the mask that is set. A
// pointer into the UBuffer is an offset or an address. Units as the calls have them.
#pragma once

#include "cm384/data_copy.h"
#include "cm384/reduce.h"
#include "cm384/vector.h"

template <typename T>
CM384_INLINE AscendC::LocalTensor<T> Cm384At(const T* address) {
  const auto at = reinterpret_cast<uint64_t>(address);
  return AscendC::LocalTensor<T>(static_cast<uint32_t>(
      at -
      (at >= CM384_UBUFFER_BASE && at < CM384_UBUFFER_BASE + CM384_UBUFFER_BYTES ? CM384_UBUFFER_BASE : 0)));
}

CM384_INLINE void set_mask_norm() {
  AscendC::SetMaskNorm();
}
CM384_INLINE void set_mask_count() {
  AscendC::SetMaskCount();
}
// In counter mode `low` elements. Order assumed.
CM384_INLINE void set_vector_mask(uint64_t high, uint64_t low) {
  if (AscendC::cm384_counter_mode) {
    AscendC::SetCounter(low);
  } else {
    AscendC::SetVectorMask<half>(high, low);
  }
}

#define CM384_BELOW(name, Call)                                                                     \
  template <typename T>                                                                             \
  CM384_INLINE void name(T* dst, T* src0, T* src1, uint8_t repeat, uint8_t dstBlk, uint8_t src0Blk, \
                         uint8_t src1Blk, uint8_t dstRep, uint8_t src0Rep, uint8_t src1Rep) {       \
    AscendC::Call<T, false>(                                                                        \
        Cm384At(dst), Cm384At(src0), Cm384At(src1), AscendC::MASK_PLACEHOLDER, repeat,              \
        AscendC::BinaryRepeatParams(dstBlk, src0Blk, src1Blk, dstRep, src0Rep, src1Rep));           \
  }
CM384_BELOW(vadd, Add)
CM384_BELOW(vsub, Sub)
CM384_BELOW(vmul, Mul)
CM384_BELOW(vdiv, Div)
CM384_BELOW(vmax, Max)
CM384_BELOW(vmin, Min)
CM384_BELOW(vand, And)
CM384_BELOW(vor, Or)
CM384_BELOW(vmla, MulAddDst)
#undef CM384_BELOW
#define CM384_BELOW(name, Call)                                                                            \
  template <typename T>                                                                                    \
  CM384_INLINE void name(T* dst, T* src, uint8_t repeat, uint16_t dstBlk, uint16_t srcBlk, uint8_t dstRep, \
                         uint8_t srcRep) {                                                                 \
    AscendC::Call<T, false>(Cm384At(dst), Cm384At(src), AscendC::MASK_PLACEHOLDER, repeat,                 \
                            AscendC::UnaryRepeatParams(dstBlk, srcBlk, dstRep, srcRep));                   \
  }
CM384_BELOW(vexp, Exp)
CM384_BELOW(vln, Ln)
CM384_BELOW(vabs, Abs)
CM384_BELOW(vsqrt, Sqrt)
CM384_BELOW(vrsqrt, Rsqrt)
CM384_BELOW(vrec, Reciprocal)
CM384_BELOW(vrelu, Relu)
CM384_BELOW(vnot, Not)
#undef CM384_BELOW
#define CM384_BELOW(name, Call)                                                                            \
  template <typename T, typename S>                                                                        \
  CM384_INLINE void name(T* dst, T* src, S scalar, uint8_t repeat, uint16_t dstBlk, uint16_t srcBlk,       \
                         uint8_t dstRep, uint8_t srcRep) {                                                 \
    AscendC::Call<T, false>(Cm384At(dst), Cm384At(src), static_cast<T>(scalar), AscendC::MASK_PLACEHOLDER, \
                            repeat, AscendC::UnaryRepeatParams(dstBlk, srcBlk, dstRep, srcRep));           \
  }
CM384_BELOW(vadds, Adds)
CM384_BELOW(vmuls, Muls)
CM384_BELOW(vmaxs, Maxs)
CM384_BELOW(vmins, Mins)
CM384_BELOW(vaxpy, Axpy)
#undef CM384_BELOW
template <typename T, typename S>
CM384_INLINE void vector_dup(T* dst, S value, uint8_t repeat, uint16_t dstBlk, uint16_t, uint8_t dstRep,
                             uint8_t) {
  AscendC::Duplicate<T, false>(Cm384At(dst), static_cast<T>(value), AscendC::MASK_PLACEHOLDER, repeat, dstBlk,
                               dstRep);
}
template <typename T>
CM384_INLINE void vcopy(T* dst, T* src, uint8_t repeat, uint16_t dstBlk, uint16_t srcBlk, uint8_t dstRep,
                        uint8_t srcRep) {
  AscendC::Copy<T, false>(Cm384At(dst), Cm384At(src), AscendC::MASK_PLACEHOLDER, repeat,
                          AscendC::CopyRepeatParams{dstBlk, srcBlk, dstRep, srcRep});
}
// One sum a repeat; one value a block, that of nothing where a block is masked off whole (the part leaves its
// target alone).
template <typename T>
CM384_INLINE void vcadd(T* dst, T* src, uint8_t repeat, uint16_t dstRep, uint16_t srcBlk, uint16_t srcRep,
                        bool mode = false) {
  if (mode) AscendC::Abort("vcadd: one sum of all repeats is not there: docs/ascend-c.md");
  AscendC::WholeReduceSum<T, false>(Cm384At(dst), Cm384At(src), int32_t{0}, repeat, dstRep, srcBlk, srcRep);
}
#define CM384_BELOW(name, Call)                                                                      \
  template <typename T>                                                                              \
  CM384_INLINE void name(T* dst, T* src, uint8_t repeat, uint16_t dstRep, uint16_t srcBlk,           \
                         uint16_t srcRep) {                                                          \
    AscendC::Call<T, false>(Cm384At(dst), Cm384At(src), repeat, int32_t{0}, dstRep, srcBlk, srcRep); \
  }
CM384_BELOW(vcgadd, BlockReduceSum)
CM384_BELOW(vcgmax, BlockReduceMax)
CM384_BELOW(vcgmin, BlockReduceMin)
#undef CM384_BELOW

// Lengths and gaps in 32 B.
template <typename To, typename From>
CM384_INLINE void copy_gm_to_ubuf(To* dst, From* src, uint8_t, uint16_t bursts, uint16_t length,
                                  uint16_t src_gap, uint16_t dst_gap) {
  AscendC::DataCopy(Cm384At(reinterpret_cast<const uint8_t*>(dst)),
                    AscendC::GlobalAt<uint8_t>(reinterpret_cast<uint64_t>(src)),
                    AscendC::DataCopyParams{bursts, length, src_gap, dst_gap});
}
template <typename To, typename From>
CM384_INLINE void copy_ubuf_to_gm(To* dst, From* src, uint8_t, uint16_t bursts, uint16_t length,
                                  uint16_t src_gap, uint16_t dst_gap) {
  AscendC::DataCopy(AscendC::GlobalAt<uint8_t>(reinterpret_cast<uint64_t>(dst)),
                    Cm384At(reinterpret_cast<const uint8_t*>(src)),
                    AscendC::DataCopyParams{bursts, length, src_gap, dst_gap});
}
[[noreturn]] CM384_INLINE void trap() {
  AscendC::Trap();
}
