// The fixpipe's conversions: C as it stands in L0C to the rows that global memory gets.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "firmware/abi/isa.h"
#include "npu_core/cube/cube_unit.h"
#include "npu_core/vector/numeric.h"

namespace cm384::npu {
namespace {

bool integer_source(const FixpipeCopy& c) {
  return c.operation == CM384_FIX_S32_TO_F16 || c.operation == CM384_FIX_S32_TO_F16_VECTOR ||
         c.operation == CM384_FIX_S32_TO_S8 || c.operation == CM384_FIX_S32_TO_S8_VECTOR;
}

std::uint32_t to_s8(float value) {
  if (std::isnan(value)) return 0;
  const float limited = std::clamp(std::nearbyint(value), -128.0f, 127.0f);
  return static_cast<std::uint8_t>(static_cast<std::int8_t>(limited));
}

// One element's bits, with the column's scale where one is used.
std::uint32_t convert(const FixpipeCopy& c, std::uint32_t bits, float scale) {
  if (integer_source(c) || c.element_bytes() == 1) {
    const float from =
        integer_source(c) ? static_cast<float>(static_cast<std::int32_t>(bits)) : std::bit_cast<float>(bits);
    const float value = c.relu && !(from * scale > 0) ? 0.0f : from * scale;
    return c.element_bytes() == 1 ? to_s8(value) : f32_to_f16(value);
  }
  // Of F32 and of S32 the sign is the top bit, and zero is all zeros.
  if (c.relu && (bits >> 31) != 0) bits = 0;
  switch (c.operation) {
    case CM384_FIX_F32_TO_F16:
      return f32_to_f16(std::bit_cast<float>(bits));
    case CM384_FIX_F32_TO_BF16:
      return f32_to_bf16(std::bit_cast<float>(bits));
    default:
      return bits;
  }
}

}  // namespace

void perform(const FixpipeCopy& c, const CubeBuffers& buffers, LocalBuffer& result) {
  const std::uint32_t size = c.element_bytes();
  const std::uint32_t c0 = c.nz_row / size, unit = c.nz ? c.nz_row : sim::kBlockBytes;
  const std::uint32_t row_bytes = blocks_of(c.n * size, unit) * unit;
  const std::uint32_t bytes = row_bytes * c.m;
  if (buffers.l0c.payload(c.l0c, c.c_bytes()) ||
      (c.vector() && buffers.fixpipe.payload(c.scales, c.n * c.scale_bytes))) {
    return result.set_payload(0, bytes, true);
  }
  result.set_payload(0, bytes, false);
  std::vector<float> scales(c.n, c.scale);
  for (std::uint32_t n = 0; c.vector() && n < c.n; ++n)
    buffers.fixpipe.load(c.scales + n * c.scale_bytes, reinterpret_cast<std::byte*>(&scales[n]), 4);
  std::vector<std::byte> out(bytes);
  std::uint32_t block[kFractalRows];
  for (std::uint32_t column = 0; column < c.n; column += kFractalRows) {
    const std::uint32_t count = std::min(kFractalRows, c.n - column);
    for (std::uint32_t row = 0; row < c.m; ++row) {
      buffers.l0c.load(c.l0c + column / kFractalRows * c.column_bytes + row * kFractalRows * 4,
                       reinterpret_cast<std::byte*>(block), sizeof block);
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t n = column + i;
        const std::uint32_t value = convert(c, block[i], scales[n]);
        const std::uint32_t at =
            c.nz ? (n / c0 * c.m + row) * c.nz_row + n % c0 * size : row * row_bytes + n * size;
        std::memcpy(&out[at], &value, size);
      }
    }
  }
  result.store(0, out.data(), bytes);
}

}  // namespace cm384::npu
