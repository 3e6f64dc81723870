// Dynamic INT8 quantisation of a row on the host, bit for bit what firmware/kernels/quantise.h computes.
#pragma once

#include <cstdint>
#include <span>

namespace cm384::reference {

// The float of a bf16's bits.
float from_bf16(std::uint16_t bits);

// Quantises a row of bf16 without NaN and infinities to int8 and returns the scale: x is about out * scale.
// All steps in float, as the kernel does them: factor = 127 / max |x|, out = int8(half(int32(x * factor,
// nearest even))), scale = 1 / factor. A row of zeros gives zeros and scale 0. `out` has the size of `row`.
float quantise_row(std::span<const std::uint16_t> row, std::span<std::int8_t> out);
// The same for a row of float.
float quantise_values(std::span<const float> row, std::span<std::int8_t> out);

}  // namespace cm384::reference
