// The fixpipe's conversions: C as it stands in L0C to the rows that global memory gets.
#include <cstring>
#include <vector>

#include "firmware/abi/isa.h"
#include "npu_core/cube/cube_unit.h"
#include "npu_core/vector/numeric.h"

namespace cm384::npu {
namespace {

bool integer_source(const FixpipeCopy& c) {
  return c.operation == CM384_FIX_S32_TO_F16 || c.operation == CM384_FIX_S32_TO_F16_VECTOR;
}

// One element's bits, with the column's scale where one is used.
std::uint32_t convert(const FixpipeCopy& c, std::uint32_t bits, float scale) {
  if (integer_source(c)) {
    const float value = static_cast<float>(static_cast<std::int32_t>(bits)) * scale;
    return f32_to_f16(c.relu && !(value > 0) ? 0.0f : value);
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
  const std::uint32_t c0 = sim::kBlockBytes / size;
  const std::uint32_t row_bytes = blocks_of(c.n * size, sim::kBlockBytes) * sim::kBlockBytes;
  const std::uint32_t bytes = row_bytes * c.m;
  const bool vector = c.operation == CM384_FIX_S32_TO_F16_VECTOR;
  if (buffers.l0c.payload(c.l0c, c.c_bytes()) || (vector && buffers.fixpipe.payload(c.scales, c.n * 4))) {
    return result.set_payload(0, bytes, true);
  }
  result.set_payload(0, bytes, false);
  std::vector<float> scales(c.n, c.scale);
  if (vector) buffers.fixpipe.load(c.scales, reinterpret_cast<std::byte*>(scales.data()), c.n * 4);
  const std::uint32_t m16 = blocks_of(c.m, kFractalRows) * kFractalRows;
  std::vector<std::byte> out(bytes);
  std::uint32_t block[kFractalRows];
  for (std::uint32_t column = 0; column < c.n; column += kFractalRows) {
    const std::uint32_t count = std::min(kFractalRows, c.n - column);
    for (std::uint32_t row = 0; row < c.m; ++row) {
      buffers.l0c.load(c.l0c + (column * m16 + row * kFractalRows) * 4, reinterpret_cast<std::byte*>(block),
                       sizeof block);
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t n = column + i;
        const std::uint32_t value = convert(c, block[i], scales[n]);
        const std::uint32_t at =
            c.nz ? (n / c0 * c.m + row) * sim::kBlockBytes + n % c0 * size : row * row_bytes + n * size;
        std::memcpy(&out[at], &value, size);
      }
    }
  }
  result.store(0, out.data(), bytes);
}

}  // namespace cm384::npu
