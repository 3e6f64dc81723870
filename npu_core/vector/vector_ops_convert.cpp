#include <algorithm>

#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_ops.h"
#include "npu_core/vector/vector_ops_elementwise.h"

namespace cm384::npu {
namespace {

// One repeat: gathers its source elements, converts, scatters. Nothing is written before all is read.
template <class From, class To, class F>
void convert_repeat(const VectorInstruction& v, UBuffer& u, std::uint32_t repeat, const F& f) {
  constexpr std::uint32_t kElements = sizeof(From) == 8 || sizeof(To) == 8 ? 32 : 64;
  alignas(32) From from[kElements];
  alignas(32) To to[kElements];
  const VectorOperand& s = v.sources[0];
  const VectorOperand& d = v.destination;
  auto* source = reinterpret_cast<std::byte*>(from);
  auto* result = reinterpret_cast<std::byte*>(to);
  for (std::uint32_t p = 0; p < s.pieces; ++p) {
    std::memcpy(source + p * sim::kBlockBytes, u.read(s.at(repeat, p)), sim::kBlockBytes);
  }
  for (std::uint32_t i = 0; i < kElements; ++i) to[i] = static_cast<To>(f(from[i]));
  constexpr std::uint64_t kAll = ~std::uint64_t{0} >> (64 - kElements);
  if ((v.mask_low & kAll) == kAll) {
    for (std::uint32_t p = 0; p < d.pieces; ++p) {
      std::memcpy(u.write(d.at(repeat, p)), result + p * sim::kBlockBytes, sim::kBlockBytes);
    }
    return;
  }
  constexpr std::uint32_t n = sim::kBlockBytes / sizeof(To);
  for (std::uint32_t i = 0; i < kElements; ++i) {
    if ((v.mask_low >> i & 1u) == 0) continue;
    std::memcpy(u.write(d.at(repeat, i / n)) + i % n * sizeof(To), &to[i], sizeof(To));
  }
}

template <class From, class To, class F>
void convert(const VectorInstruction& v, UBuffer& u, const F& f) {
  for (std::uint32_t r = 0; r < v.repeats; ++r) convert_repeat<From, To>(v, u, r, f);
}

// Rounding to nearest even has loops without branches; the others take the general routines.
template <class From, class To, class Nearest, class General>
void rounded(const VectorInstruction& v, UBuffer& u, const Nearest& nearest, const General& general) {
  const auto mode = static_cast<Rounding>(v.type);
  if (mode == Rounding::nearest_even) return convert<From, To>(v, u, nearest);
  convert<From, To>(v, u, [&](From x) { return general(x, mode); });
}

template <class From, class To, class F>
void general(const VectorInstruction& v, UBuffer& u, const F& f) {
  const auto mode = static_cast<Rounding>(v.type);
  convert<From, To>(v, u, [&](From x) { return f(x, mode); });
}

// Saturating; NaN gives 0.
template <class To>
To to_integer(float x, Rounding mode) {
  const float r = round_integral(x, mode);
  if (is_nan(r)) return 0;
  // The largest value may round up as a float, to a power of two that is too large by 1.
  constexpr auto kLow = static_cast<float>(std::numeric_limits<To>::min());
  constexpr To kHalf = std::numeric_limits<To>::max() / 2 + 1;
  constexpr auto kEnd = 2.0f * static_cast<float>(kHalf);
  if (r < kLow) return std::numeric_limits<To>::min();
  if (r >= kEnd) return std::numeric_limits<To>::max();
  return static_cast<To>(r);
}

}  // namespace

void execute_convert(const VectorInstruction& v, UBuffer& u) {
  using S32 = std::int32_t;
  using S16 = std::int16_t;
  using S8 = std::int8_t;
  using U16 = std::uint16_t;
  switch (v.operation) {
    case CM384_BF16_TO_F32:
      return convert<U16, float>(v, u, [](U16 x) { return bf16_to_f32(x); });
    case CM384_F32_TO_BF16:
      return rounded<float, U16>(
          v, u, [](float x) { return f32_to_bf16(x); },
          [](float x, Rounding m) { return f32_to_bf16(x, m); });
    case CM384_F16_TO_F32:
      return convert<U16, float>(v, u, [](U16 x) { return f16_to_f32(x); });
    case CM384_F32_TO_F16:
      return rounded<float, U16>(
          v, u, [](float x) { return f32_to_f16(x); }, [](float x, Rounding m) { return f32_to_f16(x, m); });
    case CM384_F32_TO_S32:
      return rounded<float, S32>(
          v, u, [](float x) { return integral_to_s32(round_integral_nearest(x)); }, f32_to_s32);
    case CM384_S32_TO_F32:
      return rounded<S32, float>(
          v, u, [](S32 x) { return static_cast<float>(x); }, s32_to_f32);
    case CM384_S32_TO_F16:
      if (v.scalar_high != 0) {
        const float factor = std::bit_cast<float>(v.scalar_high);
        return rounded<S32, U16>(
            v, u, [factor](S32 x) { return f32_to_f16(static_cast<float>(x) * factor); },
            [factor](S32 x, Rounding m) { return f32_to_f16(static_cast<float>(x) * factor, m); });
      }
      return rounded<S32, U16>(
          v, u, [](S32 x) { return f32_to_f16(static_cast<float>(x)); }, s32_to_f16);
    case CM384_F16_TO_S8:
      return rounded<U16, S8>(
          v, u, [](U16 x) { return integral_to_s8(round_integral_nearest(f16_to_f32(x))); }, f16_to_s8);
    case CM384_S8_TO_F16:
      return convert<S8, U16>(v, u, [](S8 x) { return f32_to_f16(static_cast<float>(x)); });
    case CM384_F32_TO_F32:
      return rounded<float, float>(
          v, u, [](float x) { return round_integral_nearest(x); }, round_integral);
    case CM384_F16_TO_S32:
      return rounded<U16, S32>(
          v, u, [](U16 x) { return integral_to_s32(round_integral_nearest(f16_to_f32(x))); },
          [](U16 x, Rounding m) { return f32_to_s32(f16_to_f32(x), m); });
    case CM384_S32_TO_S16:
      return convert<S32, S16>(v, u, [](S32 x) { return s32_to_s16(x); });
    case CM384_S16_TO_S32:
      return convert<S16, S32>(v, u, [](S16 x) { return S32{x}; });
    case CM384_F16_TO_U8:
      return general<U16, std::uint8_t>(
          v, u, [](U16 x, Rounding m) { return to_integer<std::uint8_t>(f16_to_f32(x), m); });
    case CM384_U8_TO_F16:
      return convert<std::uint8_t, U16>(v, u,
                                        [](std::uint8_t x) { return f32_to_f16(static_cast<float>(x)); });
    case CM384_F32_TO_S16:
      return general<float, S16>(v, u, [](float x, Rounding m) { return to_integer<S16>(x, m); });
    case CM384_F16_TO_S16:
      return general<U16, S16>(v, u, [](U16 x, Rounding m) { return to_integer<S16>(f16_to_f32(x), m); });
    case CM384_S16_TO_F16:
      return general<S16, U16>(v, u, [](S16 x, Rounding m) { return f32_to_f16(static_cast<float>(x), m); });
    case CM384_BF16_TO_S32:
      return general<U16, S32>(v, u, [](U16 x, Rounding m) { return f32_to_s32(bf16_to_f32(x), m); });
    case CM384_F32_TO_S64:
      return general<float, std::int64_t>(v, u,
                                          [](float x, Rounding m) { return to_integer<std::int64_t>(x, m); });
    case CM384_S64_TO_F32:
      return general<std::int64_t, float>(v, u, s64_to_f32);
    case CM384_S32_TO_S64:
      return convert<S32, std::int64_t>(v, u, [](S32 x) { return std::int64_t{x}; });
    case CM384_S64_TO_S32:
      return convert<std::int64_t, S32>(v, u, [](std::int64_t x) {
        return static_cast<S32>(
            std::clamp<std::int64_t>(x, std::numeric_limits<S32>::min(), std::numeric_limits<S32>::max()));
      });
    case CM384_S16_TO_F32:
      return convert<S16, float>(v, u, [](S16 x) { return static_cast<float>(x); });
    default:
      fault(v.pc, "no such conversion");
  }
}

}  // namespace cm384::npu
