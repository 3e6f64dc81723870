#include "workloads/operators/reference/values.h"

#include <cmath>

#include "traces/random.h"

namespace cm384::reference {

double of_fp16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<std::uint16_t> draw_bf16(std::uint64_t seed, std::uint64_t stream, std::uint64_t count) {
  traces::Random random(seed, stream);
  std::vector<std::uint16_t> made(count);
  for (std::uint16_t& v : made) {
    const auto bits = static_cast<std::uint32_t>(random.next());
    v = static_cast<std::uint16_t>((bits & 1) << 15 | (124 + (bits >> 1 & 3)) << 7 | (bits >> 3 & 0x7f));
  }
  return made;
}

std::vector<float> draw_floats(std::uint64_t seed, std::uint64_t stream, std::uint64_t count, float from,
                               float to) {
  traces::Random random(seed, stream);
  std::vector<float> made(count);
  for (float& v : made) v = from + (to - from) * static_cast<float>(random.below(1U << 20)) * 0x1p-20f;
  return made;
}

std::vector<float> draw_sinks(std::uint64_t seed, std::uint64_t heads) {
  return draw_floats(seed, 11, heads, -2, 8);
}

}  // namespace cm384::reference
