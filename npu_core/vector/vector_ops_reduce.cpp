#include <array>
#include <cmath>

#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_ops.h"
#include "npu_core/vector/vector_ops_elementwise.h"

namespace cm384::npu {
namespace {

template <class Format>
constexpr std::uint32_t kRepeatElements = 256 / sizeof(typename Format::Stored);

// The values of one repeat of a source; masked-off elements become `neutral`.
template <class Format>
void gather_repeat(const VectorInstruction& v, const UBuffer& u, const VectorOperand& s, std::uint32_t repeat,
                   typename Format::Value neutral, typename Format::Value* out) {
  constexpr std::uint32_t n = kBlockElements<Format>;
  for (std::uint32_t p = 0; p < 8; ++p) {
    typename Format::Stored stored[n];
    std::memcpy(stored, u.read(s.at(repeat, p)), sizeof stored);
    const std::uint32_t mask = v.piece_mask(p, n);
    for (std::uint32_t i = 0; i < n; ++i) out[p * n + i] = Format::load(stored[i]);
    if (mask == (1u << n) - 1u) continue;
    for (std::uint32_t i = 0; i < n; ++i) {
      if ((mask >> i & 1u) == 0) out[p * n + i] = neutral;
    }
  }
}

// A sum of finite FP16 numbers stops at the largest.
template <class Format>
float add_two(float a, float b) {
  const float sum = Format::round(a + b);
  if constexpr (std::is_same_v<Format, FormatF16>) {
    constexpr float kLargest = 65504.0f;
    if (std::abs(sum) > kLargest && std::abs(a) <= kLargest && std::abs(b) <= kLargest)
      return with_sign_of(kLargest, sum);
  }
  return sum;
}

// Floats in pairs, pairs of pairs and so on; integers wrap, in whatever order.
template <class Format>
typename Format::Value sum(typename Format::Value* x, std::uint32_t count) {
  using T = typename Format::Value;
  if constexpr (!std::is_floating_point_v<T>) {
    std::uint32_t total = 0;
    for (std::uint32_t i = 0; i < count; ++i) total += static_cast<std::uint32_t>(x[i]);
    return static_cast<T>(static_cast<typename Format::Bits>(total));
  } else {
    for (; count > 1; count /= 2) {
      for (std::uint32_t i = 0; i < count / 2; ++i) x[i] = add_two<Format>(x[2 * i], x[2 * i + 1]);
    }
    return x[0];
  }
}

// The largest or smallest element, the first of equals; NaN wins. With nothing taking part, index 0.
template <class Format, bool kMaximum>
std::uint32_t best(const typename Format::Value* x, std::uint32_t first, std::uint32_t count,
                   const VectorInstruction& v, bool& found) {
  std::uint32_t at = first;
  found = false;
  for (std::uint32_t i = first; i < first + count; ++i) {
    if (!v.element_on(i)) continue;
    const bool better = kMaximum ? x[i] > x[at] : x[i] < x[at];
    const bool first_nan = x[i] != x[i] && x[at] == x[at];
    if (!found || better || first_nan) {
      if (!found || x[at] == x[at]) at = i;
      found = true;
    }
  }
  return at;
}

template <class Format>
void put(UBuffer& u, std::uint32_t offset, typename Format::Value value) {
  const typename Format::Stored stored = Format::store(value);
  u.store(offset, reinterpret_cast<const std::byte*>(&stored), sizeof stored);
}

template <class Format, bool kMaximum>
void extreme(const VectorInstruction& v, UBuffer& u, bool groups) {
  constexpr std::uint32_t n = kRepeatElements<Format>;
  const auto neutral = kMaximum ? Format::lowest() : Format::highest();
  typename Format::Value x[n];
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    gather_repeat<Format>(v, u, v.sources[0], r, neutral, x);
    const std::uint32_t to = v.destination.at(r, 0);
    const std::uint32_t parts = groups ? 8 : 1;
    for (std::uint32_t g = 0; g < parts; ++g) {
      bool found = false;
      const std::uint32_t at = best<Format, kMaximum>(x, g * (n / parts), n / parts, v, found);
      const auto size = static_cast<std::uint32_t>(sizeof(typename Format::Stored));
      put<Format>(u, to + g * size, found ? x[at] : neutral);
      if (groups || v.form() == 0) continue;
      const std::uint32_t index = found ? at : 0;
      if (v.form() == 3) put<Format>(u, to + size, found ? x[at] : neutral);
      u.store(v.form() == 1 ? to + size : to, reinterpret_cast<const std::byte*>(&index), size);
    }
  }
}

// Elements of repeat r, and how many there are: all, under the mask, or what is left of a count.
template <class Format>
std::uint32_t take_repeat(const VectorInstruction& v, const UBuffer& u, std::uint32_t r,
                          typename Format::Value neutral, typename Format::Value* x) {
  constexpr std::uint32_t n = kRepeatElements<Format>;
  const std::uint32_t count = v.scalar >> 8;
  if (count == 0) {
    gather_repeat<Format>(v, u, v.sources[0], r, neutral, x);
    return n;
  }
  typename Format::Stored stored[n];
  const std::uint32_t here = std::min(n, count - r * n);
  u.load(v.sources[0].offset + r * 256, reinterpret_cast<std::byte*>(stored),
         here * static_cast<std::uint32_t>(sizeof stored[0]));
  for (std::uint32_t i = 0; i < n; ++i) x[i] = i < here ? Format::load(stored[i]) : neutral;
  return here;
}

// One value, or {value, index}, over all repeats.
template <class Format, bool kMaximum>
void extreme_of_all(const VectorInstruction& v, UBuffer& u) {
  constexpr std::uint32_t n = kRepeatElements<Format>;
  constexpr auto size = static_cast<std::uint32_t>(sizeof(typename Format::Stored));
  const auto neutral = kMaximum ? Format::lowest() : Format::highest();
  VectorInstruction all = v;
  if (v.scalar >> 8 != 0) all.mask_low = all.mask_high = ~std::uint64_t{0};
  typename Format::Value x[n];
  auto value = neutral;
  std::uint32_t index = 0;
  bool any = false;
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    const std::uint32_t here = take_repeat<Format>(v, u, r, neutral, x);
    bool found = false;
    const std::uint32_t at = best<Format, kMaximum>(x, 0, here, all, found);
    if (!found || (any && value != value)) continue;
    if (any && !(kMaximum ? x[at] > value : x[at] < value) && x[at] == x[at]) continue;
    value = x[at];
    index = r * n + at;
    any = true;
  }
  put<Format>(u, v.destination.offset, value);
  if (v.form() == 2) u.store(v.destination.offset + size, reinterpret_cast<const std::byte*>(&index), size);
}

// The repeats' sums one after another.
template <class Format>
void add_all(const VectorInstruction& v, UBuffer& u) {
  constexpr std::uint32_t n = kRepeatElements<Format>;
  typename Format::Value x[n], two[2] = {};
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    take_repeat<Format>(v, u, r, 0, x);
    two[1] = sum<Format>(x, n);
    two[0] = r == 0 ? two[1] : sum<Format>(two, 2);
  }
  put<Format>(u, v.destination.offset, two[0]);
}

template <class Format>
void add_neighbours(const VectorInstruction& v, UBuffer& u) {
  constexpr std::uint32_t n = kRepeatElements<Format>;
  typename Format::Value x[n];
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    gather_repeat<Format>(v, u, v.sources[0], r, 0, x);
    for (std::uint32_t i = 0; i < n / 2; ++i) {
      if (!v.element_on(2 * i) && !v.element_on(2 * i + 1)) continue;
      const auto total = sum<Format>(x + 2 * i, 2);
      put<Format>(u, v.destination.at(r, 0) + i * static_cast<std::uint32_t>(sizeof(typename Format::Stored)),
                  total);
    }
  }
}

template <class Format>
void add_up(const VectorInstruction& v, UBuffer& u, bool groups) {
  constexpr std::uint32_t n = kRepeatElements<Format>;
  const std::uint32_t parts = groups ? 8 : 1;
  typename Format::Value x[n];
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    gather_repeat<Format>(v, u, v.sources[0], r, 0, x);
    for (std::uint32_t g = 0; g < parts; ++g) {
      const auto total = sum<Format>(x + g * (n / parts), n / parts);
      put<Format>(u, v.destination.at(r, 0) + g * static_cast<std::uint32_t>(sizeof(typename Format::Stored)),
                  total);
    }
  }
}

template <class Format, class Compare>
void compare_with(const VectorInstruction& v, UBuffer& u, const Compare& compare) {
  constexpr std::uint32_t n = kRepeatElements<Format>;
  typename Format::Value a[n], b[n];
  std::fill(b, b + n, scalar_value<Format>(v));
  for (std::uint32_t r = 0; r < v.repeats; ++r) {
    gather_repeat<Format>(v, u, v.sources[0], r, 0, a);
    if (v.sources[1].used()) gather_repeat<Format>(v, u, v.sources[1], r, 0, b);
    std::array<std::uint64_t, 2> bits{};
    for (std::uint32_t i = 0; i < n; ++i) {
      bits[i / 64] |= std::uint64_t{compare(a[i], b[i])} << (i % 64);
    }
    bits[0] &= v.mask_low;
    bits[1] &= v.mask_high;
    u.store(v.destination.at(r, 0), reinterpret_cast<const std::byte*>(bits.data()), n / 8);
  }
}

template <class Format>
void run(const VectorInstruction& v, UBuffer& u) {
  using T = typename Format::Value;
  switch (v.operation) {
    case CM384_VCADD:
      if (v.form() == 1) return add_all<Format>(v, u);
      [[fallthrough]];
    case CM384_VCGADD:
      return add_up<Format>(v, u, v.operation == CM384_VCGADD);
    case CM384_VCPADD:
      return add_neighbours<Format>(v, u);
    case CM384_VCMAX:
      if (v.form() == 2 || v.form() == 5) return extreme_of_all<Format, true>(v, u);
      [[fallthrough]];
    case CM384_VCGMAX:
      return extreme<Format, true>(v, u, v.operation == CM384_VCGMAX);
    case CM384_VCMIN:
      if (v.form() == 2 || v.form() == 5) return extreme_of_all<Format, false>(v, u);
      [[fallthrough]];
    case CM384_VCGMIN:
      return extreme<Format, false>(v, u, v.operation == CM384_VCGMIN);
    case CM384_VCMP_EQ:
    case CM384_VCMPS_EQ:
      return compare_with<Format>(v, u, [](T a, T b) { return a == b; });
    case CM384_VCMP_NE:
    case CM384_VCMPS_NE:
      return compare_with<Format>(v, u, [](T a, T b) { return a != b; });
    case CM384_VCMP_LT:
    case CM384_VCMPS_LT:
      return compare_with<Format>(v, u, [](T a, T b) { return a < b; });
    case CM384_VCMP_LE:
    case CM384_VCMPS_LE:
      return compare_with<Format>(v, u, [](T a, T b) { return a <= b; });
    case CM384_VCMP_GT:
    case CM384_VCMPS_GT:
      return compare_with<Format>(v, u, [](T a, T b) { return a > b; });
    case CM384_VCMP_GE:
    case CM384_VCMPS_GE:
      return compare_with<Format>(v, u, [](T a, T b) { return a >= b; });
    default:
      fault(v.pc, "no such reduction");
  }
}

}  // namespace

void execute_reduce(const VectorInstruction& v, UBuffer& u) {
  switch (v.type) {
    case CM384_F32:
      return run<FormatF32>(v, u);
    case CM384_F16:
      return run<FormatF16>(v, u);
    case CM384_S32:
      return run<FormatS32>(v, u);
    default:
      return run<FormatS16>(v, u);
  }
}

}  // namespace cm384::npu
