#include "npu_core/scalar/float32.h"

#include <bit>
#include <limits>
#include <utility>

namespace cm384::npu::float32 {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kLargest = 0x7f7fffff;

// A finite number: significand * 2^exponent.
struct Number {
  bool negative = false;
  int exponent = 0;
  std::uint64_t significand = 0;
};

bool is_infinite(std::uint32_t a) {
  return (a & ~kSign) == kInfinity;
}
bool is_zero(std::uint32_t a) {
  return (a & ~kSign) == 0;
}
bool is_negative(std::uint32_t a) {
  return (a & kSign) != 0;
}

Number unpack(std::uint32_t a) {
  const std::uint32_t fraction = a & 0x007fffff;
  const int exponent = static_cast<int>((a >> 23) & 0xff);
  if (exponent == 0) return {is_negative(a), -149, fraction};
  return {is_negative(a), exponent - 150, fraction | 0x00800000};
}

// Whether a value cut at some bit is counted up: `half` is the first bit cut off, `rest` any bit below it.
bool rounds_up(bool negative, bool odd, bool half, bool rest, Rounding rounding) {
  switch (rounding) {
    case rne:
      return half && (rest || odd);
    case rtz:
      return false;
    case rdn:
      return negative && (half || rest);
    case rup:
      return !negative && (half || rest);
    case rmm:
      return half;
  }
  return false;
}

std::uint64_t shift_right_sticky(std::uint64_t value, int by) {
  if (by <= 0) return value;
  if (by >= 64) return value != 0 ? 1 : 0;
  return (value >> by) | ((value & ((std::uint64_t{1} << by) - 1)) != 0 ? 1 : 0);
}

std::uint64_t round_at(std::uint64_t value, int cut, bool negative, Rounding rounding) {
  if (cut > 64) return rounds_up(negative, false, false, value != 0, rounding) ? 1 : 0;
  const std::uint64_t kept = cut == 64 ? 0 : value >> cut;
  const bool half = (value >> (cut - 1) & 1) != 0;
  const bool rest = (value & ((std::uint64_t{1} << (cut - 1)) - 1)) != 0;
  return kept + (rounds_up(negative, (kept & 1) != 0, half, rest, rounding) ? 1 : 0);
}

// Packs significand * 2^exponent (not zero; its lowest bit may be sticky).
std::uint32_t pack(bool negative, int exponent, std::uint64_t significand, Rounding rounding,
                   std::uint8_t& flags) {
  const std::uint32_t sign = negative ? kSign : 0;
  const int lead = std::countl_zero(significand);
  significand <<= lead;
  const int biased = exponent - lead + 63 + 127;
  // 24 bits are kept of a normal number, fewer of a subnormal one.
  const int cut = biased >= 1 ? 40 : 41 - biased;
  const std::uint64_t kept = round_at(significand, cut, negative, rounding);
  const bool exact = cut < 64 && (significand & ((std::uint64_t{1} << cut) - 1)) == 0;
  if (!exact) {
    flags |= inexact;
    // Tininess is detected after rounding, as if the exponent had no bound.
    const bool tiny =
        biased < 0 || (biased == 0 && round_at(significand, 40, negative, rounding) < (1u << 24));
    if (tiny) flags |= underflow;
  }
  std::uint32_t magnitude;
  if (biased >= 1) {
    if (biased >= 255) {
      magnitude = kInfinity;
    } else {
      magnitude = (static_cast<std::uint32_t>(biased - 1) << 23) + static_cast<std::uint32_t>(kept);
    }
  } else {
    magnitude = static_cast<std::uint32_t>(kept);
  }
  if (magnitude >= kInfinity) {
    flags |= overflow | inexact;
    const bool to_largest =
        rounding == rtz || (rounding == rdn && !negative) || (rounding == rup && negative);
    magnitude = to_largest ? kLargest : kInfinity;
  }
  return sign | magnitude;
}

std::uint32_t quiet(bool signaling, std::uint8_t& flags) {
  if (signaling) flags |= invalid;
  return kCanonicalNan;
}

std::uint32_t exact_zero(bool left, bool right, Rounding rounding) {
  const bool negative = left == right ? left : rounding == rdn;
  return negative ? kSign : 0;
}

// Sum of two finite non-zero numbers.
std::uint32_t add_numbers(Number a, Number b, Rounding rounding, std::uint8_t& flags) {
  if (a.exponent < b.exponent) std::swap(a, b);
  const int distance = a.exponent - b.exponent;
  // Beyond 70 bits the lower one is only sticky.
  const int shift = distance < 70 ? distance : 70;
  const int exponent = a.exponent - shift;
  const Wide high = static_cast<Wide>(a.significand) << shift;
  const Wide low = shift_right_sticky(b.significand, distance - shift);
  Wide sum;
  bool negative = a.negative;
  if (a.negative == b.negative) {
    sum = high + low;
  } else if (high >= low) {
    sum = high - low;
  } else {
    sum = low - high;
    negative = b.negative;
  }
  if (sum == 0) return exact_zero(a.negative, b.negative, rounding);
  const auto top = static_cast<std::uint64_t>(sum >> 64);
  if (top == 0) return pack(negative, exponent, static_cast<std::uint64_t>(sum), rounding, flags);
  const int drop = 64 - std::countl_zero(top);
  const Wide lost = sum & ((static_cast<Wide>(1) << drop) - 1);
  const std::uint64_t kept = static_cast<std::uint64_t>(sum >> drop) | (lost != 0 ? 1 : 0);
  return pack(negative, exponent + drop, kept, rounding, flags);
}

template <class Integer>
std::uint64_t to_integer(std::uint32_t a, Rounding rounding, std::uint8_t& flags) {
  using Limits = std::numeric_limits<Integer>;
  const auto extend = [](Integer value) {
    // 32-bit results are sign-extended, the unsigned one too.
    if constexpr (sizeof(Integer) == 4) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
    } else {
      return static_cast<std::uint64_t>(value);
    }
  };
  const bool negative = is_negative(a) && !is_nan(a);
  const auto saturate = [&] {
    flags |= invalid;
    return extend(negative ? Limits::min() : Limits::max());
  };
  if (is_nan(a) || is_infinite(a)) return saturate();
  const Number n = unpack(a);
  if (n.significand == 0) return 0;
  std::uint64_t magnitude = 0;
  bool is_inexact = false;
  if (n.exponent >= 0) {
    if (n.exponent > 40) return saturate();  // at least 2^64
    magnitude = n.significand << n.exponent;
  } else {
    magnitude = round_at(n.significand, -n.exponent, n.negative, rounding);
    is_inexact = -n.exponent >= 64 || (n.significand & ((std::uint64_t{1} << -n.exponent) - 1)) != 0;
  }
  const std::uint64_t bound = n.negative
                                  ? (Limits::is_signed ? static_cast<std::uint64_t>(Limits::max()) + 1 : 0)
                                  : static_cast<std::uint64_t>(Limits::max());
  if (magnitude > bound) return saturate();
  if (is_inexact) flags |= inexact;
  return extend(static_cast<Integer>(n.negative ? ~magnitude + 1 : magnitude));
}

}  // namespace

std::uint32_t fused_multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c, Rounding rounding,
                                 std::uint8_t& flags) {
  const bool no_product = (is_infinite(a) && is_zero(b)) || (is_zero(a) && is_infinite(b));
  if (no_product) return quiet(true, flags);
  if (is_nan(a) || is_nan(b) || is_nan(c)) {
    return quiet(is_signaling(a) || is_signaling(b) || is_signaling(c), flags);
  }
  const bool negative = is_negative(a) != is_negative(b);
  if (is_infinite(a) || is_infinite(b)) {
    if (is_infinite(c) && is_negative(c) != negative) return quiet(true, flags);
    return (negative ? kSign : 0) | kInfinity;
  }
  if (is_infinite(c)) return c;
  const Number x = unpack(a), y = unpack(b), z = unpack(c);
  const Number product{negative, x.exponent + y.exponent, x.significand * y.significand};
  if (product.significand == 0) return z.significand == 0 ? exact_zero(negative, z.negative, rounding) : c;
  if (z.significand == 0) return pack(negative, product.exponent, product.significand, rounding, flags);
  return add_numbers(product, z, rounding, flags);
}

std::uint32_t add(std::uint32_t a, std::uint32_t b, Rounding rounding, std::uint8_t& flags) {
  return fused_multiply_add(a, 0x3f800000, b, rounding, flags);
}

std::uint32_t multiply(std::uint32_t a, std::uint32_t b, Rounding rounding, std::uint8_t& flags) {
  return fused_multiply_add(a, b, (a ^ b) & kSign, rounding, flags);
}

std::uint32_t divide(std::uint32_t a, std::uint32_t b, Rounding rounding, std::uint8_t& flags) {
  if (is_nan(a) || is_nan(b)) return quiet(is_signaling(a) || is_signaling(b), flags);
  const std::uint32_t sign = (a ^ b) & kSign;
  if (is_infinite(a)) return is_infinite(b) ? quiet(true, flags) : sign | kInfinity;
  if (is_infinite(b)) return sign;
  if (is_zero(b)) {
    if (is_zero(a)) return quiet(true, flags);
    flags |= divide_by_zero;
    return sign | kInfinity;
  }
  if (is_zero(a)) return sign;
  Number x = unpack(a), y = unpack(b);
  const int lead_x = std::countl_zero(x.significand), lead_y = std::countl_zero(y.significand);
  // A 64-bit dividend over a 24-bit divisor: at least 40 bits of quotient.
  const std::uint64_t dividend = x.significand << lead_x, divisor = y.significand << lead_y >> 40;
  const std::uint64_t quotient = dividend / divisor;
  const std::uint64_t sticky = dividend % divisor != 0 ? 1 : 0;
  const int exponent = (x.exponent - lead_x) - (y.exponent - lead_y + 40);
  return pack(sign != 0, exponent, quotient | sticky, rounding, flags);
}

std::uint32_t square_root(std::uint32_t a, Rounding rounding, std::uint8_t& flags) {
  if (is_nan(a)) return quiet(is_signaling(a), flags);
  if (is_zero(a)) return a;
  if (is_negative(a)) return quiet(true, flags);
  if (is_infinite(a)) return a;
  Number n = unpack(a);
  const int lead = std::countl_zero(n.significand);
  n.significand <<= lead;
  n.exponent -= lead;
  if ((n.exponent & 1) != 0) {  // an even exponent; the bit lost is zero, 24 of 64 are used
    n.significand >>= 1;
    n.exponent += 1;
  }
  std::uint64_t root = 0, rest = n.significand;
  for (std::uint64_t bit = std::uint64_t{1} << 62; bit != 0; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return pack(false, n.exponent / 2 - 1, root << 1 | (rest != 0 ? 1 : 0), rounding, flags);
}

bool equal(std::uint32_t a, std::uint32_t b, std::uint8_t& flags) {
  if (is_nan(a) || is_nan(b)) {
    if (is_signaling(a) || is_signaling(b)) flags |= invalid;
    return false;
  }
  return a == b || (is_zero(a) && is_zero(b));
}

namespace {

// Order of two numbers that are no NaN; -0 is less than +0.
bool is_before(std::uint32_t a, std::uint32_t b) {
  if (is_negative(a) != is_negative(b)) return is_negative(a);
  return is_negative(a) ? a > b : a < b;
}

std::uint32_t choose(std::uint32_t a, std::uint32_t b, bool smaller, std::uint8_t& flags) {
  if (is_signaling(a) || is_signaling(b)) flags |= invalid;
  if (is_nan(a)) return is_nan(b) ? kCanonicalNan : b;
  if (is_nan(b)) return a;
  return is_before(a, b) == smaller ? a : b;
}

}  // namespace

bool less(std::uint32_t a, std::uint32_t b, std::uint8_t& flags) {
  if (is_nan(a) || is_nan(b)) {
    flags |= invalid;
    return false;
  }
  return is_before(a, b) && !(is_zero(a) && is_zero(b));
}

bool less_or_equal(std::uint32_t a, std::uint32_t b, std::uint8_t& flags) {
  if (is_nan(a) || is_nan(b)) {
    flags |= invalid;
    return false;
  }
  return !is_before(b, a) || (is_zero(a) && is_zero(b));
}

std::uint32_t minimum(std::uint32_t a, std::uint32_t b, std::uint8_t& flags) {
  return choose(a, b, true, flags);
}
std::uint32_t maximum(std::uint32_t a, std::uint32_t b, std::uint8_t& flags) {
  return choose(a, b, false, flags);
}

std::uint32_t classify(std::uint32_t a) {
  if (is_nan(a)) return is_signaling(a) ? 1u << 8 : 1u << 9;
  const bool negative = is_negative(a);
  if (is_infinite(a)) return negative ? 1u << 0 : 1u << 7;
  if (is_zero(a)) return negative ? 1u << 3 : 1u << 4;
  if ((a & kInfinity) == 0) return negative ? 1u << 2 : 1u << 5;
  return negative ? 1u << 1 : 1u << 6;
}

std::uint64_t to_int32(std::uint32_t a, Rounding r, std::uint8_t& flags) {
  return to_integer<std::int32_t>(a, r, flags);
}
std::uint64_t to_uint32(std::uint32_t a, Rounding r, std::uint8_t& flags) {
  return to_integer<std::uint32_t>(a, r, flags);
}
std::uint64_t to_int64(std::uint32_t a, Rounding r, std::uint8_t& flags) {
  return to_integer<std::int64_t>(a, r, flags);
}
std::uint64_t to_uint64(std::uint32_t a, Rounding r, std::uint8_t& flags) {
  return to_integer<std::uint64_t>(a, r, flags);
}

std::uint32_t from_uint64(std::uint64_t a, Rounding rounding, std::uint8_t& flags) {
  return a == 0 ? 0 : pack(false, 0, a, rounding, flags);
}
std::uint32_t from_int64(std::int64_t a, Rounding rounding, std::uint8_t& flags) {
  if (a >= 0) return from_uint64(static_cast<std::uint64_t>(a), rounding, flags);
  return pack(true, 0, ~static_cast<std::uint64_t>(a) + 1, rounding, flags);
}

}  // namespace cm384::npu::float32
