#include "testbenches/firmware/ascendc/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "testbenches/firmware/ascendc/work.h"

namespace ascendc {

void Work::element_wise() {
  const std::uint32_t t = c.type;
  const Real s = scalar();
  const auto f32 = [](Real v) { return static_cast<Real>(static_cast<float>(v)); };
  switch (c.form) {
    case kAdd:
      return compute([&](Real p, Real q, Real, auto) { return held(p + q, t); });
    case kSub:
      return compute([&](Real p, Real q, Real, auto) { return held(p - q, t); });
    case kMul:
      return compute([&](Real p, Real q, Real, auto) { return times(p, q, t); });
    case kDiv:
      return compute(
          [&](Real p, Real q, Real, auto) { return held(static_cast<float>(p) / static_cast<float>(q), t); });
    case kMax:
      return compute([&](Real p, Real q, Real, auto) { return larger(p, q); });
    case kMin:
      return compute([&](Real p, Real q, Real, auto) { return smaller(p, q); });
    case kAnd:
      return bits([](int p, int q) { return static_cast<std::uint8_t>(p & q); });
    case kOr:
      return bits([](int p, int q) { return static_cast<std::uint8_t>(p | q); });
    case kNot:
      return bits([](int p, int) { return static_cast<std::uint8_t>(~p); });
    case kCopy:
      return bits([](int p, int) { return static_cast<std::uint8_t>(p); });
    case kMulAddDst:
      return compute([&](Real p, Real q, Real e, auto) { return held(times(p, q, t) + e, t); });
    case kAbs:
      return compute([&](Real p, Real, Real, auto) { return held(std::fabs(p), t); });
    case kRelu:
      return compute([&](Real p, Real, Real, auto) { return larger(p, 0); });
    case kExp:
      out.places = 1;
      return compute([&](Real p, Real, Real, auto) { return held(std::exp(p), t); });
    case kLn:
      out.places = 1;
      return compute([&](Real p, Real, Real, auto) { return held(std::log(p), t); });
    case kSqrt:
      return compute([&](Real p, Real, Real, auto) { return held(std::sqrt(static_cast<float>(p)), t); });
    case kRsqrt:
      return compute([&](Real p, Real, Real, auto) {
        return held(1.0f / static_cast<float>(held(std::sqrt(static_cast<float>(p)), t)), t);
      });
    case kReciprocal:
      return compute([&](Real p, Real, Real, auto) { return held(1.0f / static_cast<float>(p), t); });
    case kAdds:
      return compute([&](Real p, Real, Real, auto) { return held(p + s, t); });
    case kMuls:
      return compute([&](Real p, Real, Real, auto) { return times(p, s, t); });
    case kMaxs:
      return compute([&](Real p, Real, Real, auto) { return larger(p, s); });
    case kMins:
      return compute([&](Real p, Real, Real, auto) { return smaller(p, s); });
    case kAxpy:
      return compute([&](Real p, Real, Real e, auto) { return held(times(p, s, t) + e, t); });
    case kShiftLeft:
      return compute(
          [&](Real p, Real, Real, auto) { return held(std::ldexp(p, static_cast<int>(c.scalar)), t); });
    case kShiftRight:
      return compute(
          [&](Real p, Real, Real, auto) { return std::floor(std::ldexp(p, -static_cast<int>(c.scalar))); });
    case kDuplicate:
      return each([&](auto, auto, std::uint8_t* value) { std::memcpy(value, &c.scalar, size); });
    default:
      return compute([&](Real, Real, Real, std::uint32_t i) {
        return held(t == kF32 || t == kF16 ? f32(s + i) : s + i, t);
      });
  }
}

void Work::convert() {
  const std::uint32_t from = size_of(c.type), to = size_of(c.type2), n = 256 / std::max(from, to);
  out.type = c.type2;
  for (std::uint32_t r = 0; r < repeats(n); ++r) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!on(r, i, n)) continue;
      Real value = load(&a.at(at(1, r, i, from, n)), c.type);
      const std::uint32_t mode = c.mode;
      if (c.extra[0] != 0)
        value = static_cast<float>(
            static_cast<float>(value) *
            static_cast<float>(load(reinterpret_cast<const std::uint8_t*>(&c.scalar), kF16)));
      if (c.type == kS32 && c.type2 == kF16) value = static_cast<float>(value);
      const bool same = c.type == kF32 && c.type2 == kF32;
      store(&d.at(at(0, r, i, to, n)), c.type2, same ? integral(value, mode) : to_type(value, c.type2, mode));
    }
  }
}

void Work::comparison() {
  out.type = kU8;
  for (std::uint32_t r = 0; r < repeats(elements); ++r) {
    for (std::uint32_t i = 0; i < elements; ++i) {
      const std::size_t bit = r * elements + i;
      d.at(bit / 8) &= static_cast<std::uint8_t>(~(1 << bit % 8));
      if (!on(r, i, elements)) continue;
      const Real p = get(1, a, r, i), q = c.form == kCompareScalar ? scalar() : get(2, b, r, i);
      const bool is[] = {p<q, p> q, p == q, p <= q, p >= q, p != q};  // CMPMODE
      if (is[c.mode]) d.at(bit / 8) |= static_cast<std::uint8_t>(1 << bit % 8);
    }
  }
}

void Work::selection() {
  each([&](std::uint32_t r, std::uint32_t i, std::uint8_t* value) {
    const std::size_t bit = (c.mode == 0 ? 0 : r * elements) + i;
    const bool first = (x.at(bit / 8) >> bit % 8 & 1) != 0;
    if (first)
      std::memcpy(value, &a.at(at(1, r, i, size, elements)), size);
    else if (c.form == kSelectScalar)
      std::memcpy(value, &c.scalar, size);
    else
      std::memcpy(value, &b.at(at(2, r, i, size, elements)), size);
  });
}

void Work::run() {
  if (c.form <= kCreateVecIndex) return element_wise();
  if (c.form == kCast) return convert();
  if (c.form <= kCompareScalar) return comparison();
  if (c.form <= kSelectScalar) return selection();
  if (c.form <= kReduceMin) return reduction();
  if (c.form <= kPairReduceSum) return whole_reduction();
  if (c.form == kSum) {
    for (std::uint32_t row = 0; row < c.repeat; ++row) {
      Real total = 0;
      for (std::uint32_t first = 0; first < c.count; first += elements) {
        std::vector<Real> values(elements, 0);
        for (std::uint32_t i = first; i < std::min(c.count, first + elements); ++i)
          values[i - first] = get(a, (row * std::size_t{c.extra[0]} + i) * size);
        total = first == 0 ? tree(values) : added(total, tree(values));
      }
      put(row * std::size_t{size}, total);
    }
    return;
  }
  if (c.form <= kTranspose) return gathering();
  if (c.form <= kExtract) return sorting();
  copying();
}

Expected expect(const Case& c, const std::uint8_t* pool) {
  Work work(c, pool);
  work.run();
  work.out.bytes = work.d;
  return work.out;
}

int first_difference(const Expected& expected, const std::uint8_t* is) {
  const std::uint32_t size = size_of(expected.type);
  for (std::uint32_t at = 0; at < AREA; at += size) {
    const std::uint8_t* should = &expected.bytes[at];
    if (std::memcmp(is + at, should, size) == 0) continue;
    if (floating(expected.type)) {
      if (std::isnan(load(is + at, expected.type)) && std::isnan(load(should, expected.type))) continue;
      std::int32_t p = 0, q = 0;
      std::memcpy(&p, is + at, size);
      std::memcpy(&q, should, size);
      if (static_cast<std::uint32_t>(std::abs(p - q)) <= expected.places) continue;
    }
    return static_cast<int>(at);
  }
  return -1;
}

}  // namespace ascendc
