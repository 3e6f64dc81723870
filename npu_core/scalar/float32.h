// IEEE 754 single precision as RISC-V defines it, in integer arithmetic: every rounding mode, exact flags,
// the canonical NaN. The scalar unit uses the host's float unit for round-to-nearest-even and these functions
// for the rest; a test holds the two to the same bits.
#pragma once

#include <cstdint>

namespace cm384::npu::float32 {

enum Rounding : std::uint8_t { rne = 0, rtz = 1, rdn = 2, rup = 3, rmm = 4 };
enum Flag : std::uint8_t { inexact = 1, underflow = 2, overflow = 4, divide_by_zero = 8, invalid = 16 };

inline constexpr std::uint32_t kCanonicalNan = 0x7fc00000;
inline constexpr std::uint32_t kSign = 0x80000000;

constexpr bool is_nan(std::uint32_t a) {
  return (a & ~kSign) > 0x7f800000;
}
constexpr bool is_signaling(std::uint32_t a) {
  return is_nan(a) && (a & 0x00400000) == 0;
}

// Operands and results are the encodings; flags are OR-ed into `flags`.
std::uint32_t add(std::uint32_t a, std::uint32_t b, Rounding rounding, std::uint8_t& flags);
std::uint32_t multiply(std::uint32_t a, std::uint32_t b, Rounding rounding, std::uint8_t& flags);
std::uint32_t divide(std::uint32_t a, std::uint32_t b, Rounding rounding, std::uint8_t& flags);
std::uint32_t square_root(std::uint32_t a, Rounding rounding, std::uint8_t& flags);
// a * b + c, rounded once.
std::uint32_t fused_multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c, Rounding rounding,
                                 std::uint8_t& flags);

std::uint32_t minimum(std::uint32_t a, std::uint32_t b, std::uint8_t& flags);
std::uint32_t maximum(std::uint32_t a, std::uint32_t b, std::uint8_t& flags);
bool equal(std::uint32_t a, std::uint32_t b, std::uint8_t& flags);
bool less(std::uint32_t a, std::uint32_t b, std::uint8_t& flags);
bool less_or_equal(std::uint32_t a, std::uint32_t b, std::uint8_t& flags);
// The fclass.s mask.
std::uint32_t classify(std::uint32_t a);

// Saturating conversions; NaN gives the largest value. 32-bit results come sign-extended.
std::uint64_t to_int32(std::uint32_t a, Rounding rounding, std::uint8_t& flags);
std::uint64_t to_uint32(std::uint32_t a, Rounding rounding, std::uint8_t& flags);
std::uint64_t to_int64(std::uint32_t a, Rounding rounding, std::uint8_t& flags);
std::uint64_t to_uint64(std::uint32_t a, Rounding rounding, std::uint8_t& flags);
std::uint32_t from_int64(std::int64_t a, Rounding rounding, std::uint8_t& flags);
std::uint32_t from_uint64(std::uint64_t a, Rounding rounding, std::uint8_t& flags);

}  // namespace cm384::npu::float32
