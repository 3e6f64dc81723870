#include "testbenches/firmware/ascendc/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ascendc {

std::uint32_t size_of(std::uint32_t type) {
  const std::uint32_t sizes[] = {4, 2, 4, 2, 4, 2, 2, 1, 1, 8};
  return sizes[type];
}

bool floating(std::uint32_t type) {
  return type == kF32 || type == kF16 || type == kBF16;
}

Real integral(Real x, std::uint32_t mode) {
  if (std::isnan(x) || std::isinf(x)) return x;
  switch (mode) {
    case 2:
      return std::floor(x);
    case 3:
      return std::ceil(x);
    case 4:
      return std::round(x);
    case 5:
      return std::trunc(x);
    case 6: {
      const Real t = std::trunc(x);
      return t != x && std::fmod(t, 2) == 0 ? t + std::copysign(Real{1}, x) : t;
    }
    default:
      return std::nearbyint(x);
  }
}
Real narrowed(Real x, int digits, int least, Real largest, std::uint32_t mode) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), least);
  const Real last = std::ldexp(Real{1}, exponent - digits + 1);
  const Real result = integral(x / last, mode) * last;
  if (std::fabs(result) <= largest) return result;
  const bool outwards = mode == 0 || mode == 1 || mode == 4 || (mode == 2 && x < 0) || (mode == 3 && x > 0);
  return std::copysign(outwards ? std::numeric_limits<Real>::infinity() : largest, x);
}
Real to_type(Real x, std::uint32_t type, std::uint32_t mode) {
  const auto saturated = [&](Real low, Real high) {
    const Real r = integral(x, mode);
    return std::isnan(r) ? Real{0} : std::clamp(r, low, high);
  };
  switch (type) {
    case kF32:
      return narrowed(x, 24, -126, std::numeric_limits<float>::max(), mode);
    case kF16:
      return narrowed(x, 11, -14, 65504, mode);
    case kBF16:
      return narrowed(x, 8, -126, 0x1.fep127L, mode);
    case kS32:
      return saturated(-0x1p31L, 0x1p31L - 1);
    case kS16:
      return saturated(-32768, 32767);
    case kS8:
      return saturated(-128, 127);
    case kU8:
      return saturated(0, 255);
    default:
      return saturated(-0x1p63L, 0x1p63L - 1);
  }
}

namespace {

// Calls with a value of the C++ type that stands for a type of the machine; BF16 has none.
template <class Visit>
auto with_type(std::uint32_t type, Visit&& visit) {
  switch (type) {
    case kF32:
      return visit(float{});
    case kF16:
      return visit(_Float16{});
    case kS32:
      return visit(std::int32_t{});
    case kU32:
      return visit(std::uint32_t{});
    case kS16:
      return visit(std::int16_t{});
    case kU16:
      return visit(std::uint16_t{});
    case kS8:
      return visit(std::int8_t{});
    case kU8:
      return visit(std::uint8_t{});
    default:
      return visit(std::int64_t{});
  }
}

}  // namespace

Real load(const std::uint8_t* at, std::uint32_t type) {
  if (type == kBF16) {
    const std::uint8_t wide[4] = {0, 0, at[0], at[1]};
    return load(wide, kF32);
  }
  return with_type(type, [at](auto x) {
    std::memcpy(&x, at, sizeof x);
    return static_cast<Real>(x);
  });
}
// A value that the type has.
void store(std::uint8_t* at, std::uint32_t type, Real value) {
  if (type == kBF16) {
    const auto x = static_cast<float>(value);
    std::memcpy(at, reinterpret_cast<const char*>(&x) + 2, 2);
    if (std::isnan(x)) at[0] |= 0x40;
    return;
  }
  with_type(type, [at, value](auto x) {
    x = static_cast<decltype(x)>(value);
    std::memcpy(at, &x, sizeof x);
  });
}
Real held(Real x, std::uint32_t type) {
  if (floating(type)) {
    // Sums and products of halves are rounded to FP32 first.
    return to_type(type == kF32 ? x : static_cast<Real>(static_cast<float>(x)), type, 1);
  }
  const Real all = std::ldexp(Real{1}, static_cast<int>(8 * size_of(type)));
  Real r = std::fmod(x, all);
  if (r < 0) r += all;
  const bool has_sign = type == kS32 || type == kS16 || type == kS8;
  return has_sign && r >= all / 2 ? r - all : r;
}
Real larger(Real a, Real b) {
  return a > b || std::isnan(a) ? a : b;
}
Real smaller(Real a, Real b) {
  return a < b || std::isnan(a) ? a : b;
}

Real times(Real a, Real b, std::uint32_t type) {
  if (floating(type)) return held(a * b, type);
  const auto product = static_cast<std::uint64_t>(static_cast<std::int64_t>(a)) *
                       static_cast<std::uint64_t>(static_cast<std::int64_t>(b));
  return held(static_cast<Real>(static_cast<std::uint32_t>(product)), type);
}

}  // namespace ascendc
