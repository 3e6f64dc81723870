#include "workloads/operators/reference/quantise.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <vector>

namespace cm384::reference {

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

namespace {
// float to int32, nearest even, then half, then int8. Whole numbers up to 2048 are exact in half and larger
// ones stay larger, so the two last steps are a saturation; NaN gives 0.
std::int8_t to_int8(float value) {
  if (value != value) return 0;
  const float whole = std::nearbyintf(value);
  if (whole >= 127.0f) return 127;
  if (whole <= -128.0f) return -128;
  return static_cast<std::int8_t>(whole);
}
}  // namespace

float quantise_values(std::span<const float> row, std::span<std::int8_t> out) {
  assert(row.size() == out.size());
  float maximum = 0;
  for (const float value : row) {
    const float magnitude = std::fabs(value);
    if (magnitude > maximum) maximum = magnitude;
  }
  const float factor = 127.0f / maximum;
  for (std::size_t i = 0; i < row.size(); ++i) out[i] = to_int8(row[i] * factor);
  return 1.0f / factor;
}

float quantise_row(std::span<const std::uint16_t> row, std::span<std::int8_t> out) {
  std::vector<float> values(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) values[i] = from_bf16(row[i]);
  return quantise_values(values, out);
}

}  // namespace cm384::reference
