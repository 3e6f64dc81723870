#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_ops.h"
#include "npu_core/vector/vector_ops_elementwise.h"

namespace cm384::npu {
namespace {

constexpr std::uint32_t kElements = 64;  // a repeat, on both sides

// One repeat: gathers 64 source elements, converts, scatters. Nothing is written before all is read.
template <class From, class To, class F>
void convert_repeat(const VectorInstruction& v, UBuffer& u, std::uint32_t repeat, const F& f) {
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
  if (v.mask_low == ~std::uint64_t{0}) {
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
    default:
      fault(v.pc, "no such conversion");
  }
}

}  // namespace cm384::npu
