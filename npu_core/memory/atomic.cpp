#include "npu_core/memory/atomic.h"

#include <array>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "firmware/abi/isa.h"
#include "npu_core/vector/numeric.h"

namespace cm384::npu {
namespace {

struct F32 {
  using Stored = float;
  static float load(float v) { return v; }
  static float store(float v) { return v; }
};
struct F16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t v) { return f16_to_f32(v); }
  static std::uint16_t store(float v) { return f32_to_f16(v); }
};
struct Bf16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t v) { return bf16_to_f32(v); }
  static std::uint16_t store(float v) { return f32_to_bf16(v); }
};
template <class T>
struct Integer {
  using Stored = T;
  static T load(T v) { return v; }
  static T store(T v) { return v; }
};

struct Add {
  float operator()(float a, float b) const { return a + b; }
  template <class T>
  requires std::is_integral_v<T> T operator()(T a, T b) const {
    return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};
struct Larger {
  float operator()(float a, float b) const { return max_f32(a, b); }
  template <class T>
  requires std::is_integral_v<T> T operator()(T a, T b) const { return a > b ? a : b; }
};
struct Smaller {
  float operator()(float a, float b) const { return min_f32(a, b); }
  template <class T>
  requires std::is_integral_v<T> T operator()(T a, T b) const { return a < b ? a : b; }
};

template <class Format, class F>
void apply(const std::byte* before, const std::byte* operand, std::byte* after, std::uint32_t bytes) {
  using Stored = typename Format::Stored;
  for (std::uint32_t i = 0; i < bytes; i += sizeof(Stored)) {
    Stored a, b;
    std::memcpy(&a, before + i, sizeof a);
    std::memcpy(&b, operand + i, sizeof b);
    a = Format::store(F{}(Format::load(a), Format::load(b)));
    std::memcpy(after + i, &a, sizeof a);
  }
}

// Types in the order of enum cm384_atomic.
template <class F>
constexpr std::array<Atomic, 6> kTypes = {{{4, apply<Integer<std::int32_t>, F>},
                                           {4, apply<F32, F>},
                                           {2, apply<Integer<std::int16_t>, F>},
                                           {1, apply<Integer<std::int8_t>, F>},
                                           {2, apply<F16, F>},
                                           {2, apply<Bf16, F>}}};
static_assert(CM384_ATOMIC_MAX_S32 == CM384_ATOMIC_ADD_S32 + 6 &&
              CM384_ATOMIC_MIN_S32 == CM384_ATOMIC_MAX_S32 + 6 && CM384_ATOMIC_ADD_BF16 == 6);

}  // namespace

Atomic atomic_of(sim::Operation operation) {
  const auto mode =
      static_cast<std::size_t>(operation) - static_cast<std::size_t>(sim::Operation::atomic_add_s32);
  assert(mode + CM384_ATOMIC_ADD_S32 < CM384_ATOMIC_MODES);
  const std::size_t type = mode % 6;
  return mode < 6 ? kTypes<Add>[type] : mode < 12 ? kTypes<Larger>[type] : kTypes<Smaller>[type];
}

}  // namespace cm384::npu
