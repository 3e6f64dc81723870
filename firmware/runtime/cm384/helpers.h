// Small names that kernels use beside the calls: constants, rounding up, types and their comparison, names of
// the layer below. Functions give way to those of the kernel's own, as a pack makes them less special.
#pragma once

#include "cm384/kernel.h"
#include "standard/type_traits"

namespace AscendC {

// Of the machine; CUBE_MAX_SIZE and TOTAL_UB_SIZE are assumed.
inline constexpr int32_t BLOCK_CUBE = 16, DEFAULT_BLK_NUM = 8, DEFAULT_BLK_STRIDE = 1,
                         DEFAULT_REPEAT_STRIDE = 8, CUBE_MAX_SIZE = 256, BYTE_PER_C0 = 32,
                         TOTAL_UB_SIZE = 192 * 1024;

template <typename A, typename B>
struct IsSameType : std::is_same<A, B> {};
template <typename T>
using PrimT = T;
namespace Std {
using std::conditional;
using std::conditional_t;
using std::enable_if;
using std::enable_if_t;
using std::integral_constant;
using std::is_same;
using std::is_same_v;
template <typename A, typename B>
using IsSame = std::is_same<A, B>;
}  // namespace Std

#define CM384_ROUNDED(Name, expression)                                       \
  template <typename A, typename B, typename... None>                         \
  CM384_INLINE constexpr auto Name(A a, B b, None...) {                       \
    static_assert(sizeof...(None) == 0);                                      \
    using Common = decltype(a + b);                                           \
    const Common value = static_cast<Common>(a), by = static_cast<Common>(b); \
    return expression;                                                        \
  }
CM384_ROUNDED(DivCeil, (value + by - 1) / by)
CM384_ROUNDED(CeilDiv, (value + by - 1) / by)
CM384_ROUNDED(CeilDivision, (value + by - 1) / by)
CM384_ROUNDED(AlignUp, (value + by - 1) / by * by)
CM384_ROUNDED(Align, (value + by - 1) / by * by)
CM384_ROUNDED(CeilAlign, (value + by - 1) / by * by)
#undef CM384_ROUNDED

CM384_INLINE constexpr float ToFloat(bfloat16_t value) {
  return value;
}
CM384_INLINE constexpr bfloat16_t ToBfloat16(float value) {
  return bfloat16_t(value);
}
// On the scalar unit.
template <typename T, typename... None>
CM384_INLINE float sqrt(T value, None...) {
  static_assert(sizeof...(None) == 0);
  return __builtin_sqrtf(static_cast<float>(value));
}
template <typename T, typename... None>
CM384_INLINE constexpr auto abs(T value, None...) {
  static_assert(sizeof...(None) == 0);
  return value < 0 ? -value : value;
}

// Numbers of the block's group, on its vector cores too.
CM384_INLINE int64_t GroupIndex() {
  return g_coreType == AIC ? GetBlockIdx() : GetBlockIdx() / GetTaskRatio();
}

}  // namespace AscendC

using AscendC::g_coreType;
using AscendC::PRINTF;
using AscendC::sqrt;
using float32_t = float;
using __bf16 = bfloat16_t;

#define ASSERT(...) ascendc_assert(__VA_ARGS__)

// An object, so that a kernel may have a variable of that name.
struct Cm384BlockIndex {
  CM384_INLINE operator int64_t() const { return AscendC::GroupIndex(); }
};
[[maybe_unused]] inline constexpr Cm384BlockIndex block_idx{};
CM384_INLINE int64_t get_block_idx() {
  return AscendC::GroupIndex();
}
CM384_INLINE int64_t get_block_num() {
  return AscendC::GetBlockNum();
}
CM384_INLINE int64_t get_subblockid() {
  return static_cast<int64_t>(cm384::read_csr<CM384_CSR_SUB_BLOCK>());
}
CM384_INLINE int64_t get_subblockdim() {
  return AscendC::GetSubBlockNum();
}
