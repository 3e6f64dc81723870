// Reductions, gathers, sorts and copies.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "testbenches/firmware/ascendc/work.h"

namespace ascendc {

Real Work::added(Real p, Real q) const {
  const Real s = held(p + q, c.type);
  // Sums of finite halves stop at the largest.
  if (c.type == kF16 && std::isinf(s) && !std::isinf(p) && !std::isinf(q))
    return std::copysign(Real{65504}, s);
  return s;
}
Real Work::tree(std::vector<Real> values) const {
  while (values.size() > 1) {
    if (values.size() % 2 != 0) values.push_back(0);
    std::vector<Real> next;
    for (std::size_t i = 0; i < values.size(); i += 2) next.push_back(added(values[i], values[i + 1]));
    values = next;
  }
  return values.front();
}
std::vector<std::pair<Real, std::uint32_t>> Work::taking_part(std::uint32_t r, std::uint32_t first,
                                                              std::uint32_t count) const {
  std::vector<std::pair<Real, std::uint32_t>> all;
  for (std::uint32_t i = first; i < first + count; ++i) {
    if (on(r, i, elements)) all.emplace_back(get(1, a, r, i), i);
  }
  return all;
}
std::pair<Real, std::uint32_t> Work::best(const std::vector<std::pair<Real, std::uint32_t>>& of,
                                          bool maximum) const {
  for (const auto& one : of) {
    if (std::isnan(one.first)) return one;
  }
  const Real infinite = std::numeric_limits<Real>::infinity();
  const Real bound =
      floating(c.type) ? infinite : std::ldexp(Real{1}, static_cast<int>(8 * size) - 1) - (maximum ? 0 : 1);
  if (of.empty()) return {maximum ? -bound : bound, 0};
  auto at = of.front();
  for (const auto& one : of) {
    if (maximum ? one.first > at.first : one.first < at.first) at = one;
  }
  return at;
}
Real Work::sum_of(std::uint32_t r, std::uint32_t first, std::uint32_t count) const {
  std::vector<Real> values(count, 0);
  for (const auto& [value, i] : taking_part(r, first, count)) values[i - first] = value;
  return tree(values);
}

void Work::reduction() {
  const std::uint32_t all = repeats(elements);
  if (c.form == kReduceSum) {
    std::vector<Real> sums;
    for (std::uint32_t r = 0; r < all; ++r) sums.push_back(sum_of(r, 0, elements));
    if (!counted()) return put(0, tree(sums));
    Real total = sums[0];
    for (std::uint32_t r = 1; r < all; ++r) total = added(total, sums[r]);
    return put(0, total);
  }
  std::vector<std::pair<Real, std::uint32_t>> of;
  for (std::uint32_t r = 0; r < all; ++r) {
    for (const auto& [value, i] : taking_part(r, 0, elements)) of.emplace_back(value, r * elements + i);
  }
  const auto [value, index] = best(of, c.form == kReduceMax);
  put(0, value);
  if (c.mode != 0) put_index(size, index);
}

void Work::whole_reduction() {
  const std::uint32_t block = elements / 8;
  for (std::uint32_t r = 0; r < c.repeat; ++r) {
    const std::uint32_t to = r * c.stride[0];
    switch (c.form) {
      case kWholeReduceSum:
      case kRepeatReduceSum:
        put(std::size_t{to} * size, sum_of(r, 0, elements));
        break;
      case kWholeReduceMax:
      case kWholeReduceMin: {
        const auto [value, index] = best(taking_part(r, 0, elements), c.form == kWholeReduceMax);
        const std::size_t pair = std::size_t{to} * 2 * size, one = std::size_t{to} * size;
        if (c.mode == 0) put(pair, value), put_index(pair + size, index);
        if (c.mode == 1) put_index(pair, index), put(pair + size, value);
        if (c.mode == 2) put(one, value);
        if (c.mode == 3) put_index(one, index);
        break;
      }
      case kPairReduceSum:
        for (std::uint32_t i = 0; i < elements / 2; ++i) {
          if (!on(r, 2 * i, elements) && !on(r, 2 * i + 1, elements)) continue;
          put(to * std::size_t{128} + i * size, sum_of(r, 2 * i, 2));
        }
        break;
      default:
        for (std::uint32_t g = 0; g < 8; ++g) {
          const std::size_t place = (std::size_t{to} * 8 + g) * size;
          if (c.form == kBlockReduceSum)
            put(place, sum_of(r, g * block, block));
          else
            put(place, best(taking_part(r, g * block, block), c.form == kBlockReduceMax).first);
        }
    }
  }
}

void Work::gathering() {
  if (c.form == kGatherMask || c.form == kGatherMaskTensor) {
    const std::uint32_t n = c.extra[0] != 0 ? c.count : elements;
    std::size_t to = 0;
    for (std::uint32_t r = 0; r < c.repeat; ++r) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const bool patterns[] = {i % 2 == 0, i % 2 == 1, i % 4 == 0, i % 4 == 1,
                                 i % 4 == 2, i % 4 == 3, true};
        const bool keep = c.form == kGatherMask ? patterns[c.mode - 1]
                                                : (x.at(r * c.stride[2] * 32 + i / 8) >> i % 8 & 1) != 0;
        if (!keep) continue;
        ++out.kept;
        const std::uint32_t block = i * size / 32;
        const std::size_t from = r * c.stride[1] * 32 + block * c.block[1] * 32 + i * size % 32;
        if (to + size <= d.size()) std::memcpy(&d.at(to), &a.at(from), size);
        to += size;
      }
    }
    return;
  }
  if (c.form == kTranspose) {
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t j = 0; j < 16; ++j) std::memcpy(&d.at((j * 16 + i) * 2), &a.at((i * 16 + j) * 2), 2);
    }
    return;
  }
  if (c.form == kBrcb) {
    for (std::uint32_t r = 0; r < c.repeat; ++r) {
      for (std::uint32_t i = 0; i < 8; ++i) {
        for (std::uint32_t at = 0; at < 32; at += size)
          std::memcpy(&d.at(r * c.stride[0] * 32 + i * c.block[0] * 32 + at), &a.at((r * 8 + i) * size),
                      size);
      }
    }
    return;
  }
  each([&](std::uint32_t r, std::uint32_t i, std::uint8_t* value) {
    std::uint32_t offset;
    std::memcpy(&offset, &x.at((r * elements + i) * 4), 4);
    std::memcpy(value, &a.at((offset & 0x7fc) + c.extra[0]), size);
  });
}

void Work::sorting() {
  out.type = kU8;
  struct One {
    std::uint32_t bits = 0, index = 0;
    Real value = 0;
  };
  const auto first = [](const One& p, const One& q) { return p.value > q.value; };
  const auto take = [&](std::uint32_t from, std::uint32_t count) {
    std::vector<One> all(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memcpy(&all[i].bits, &a.at((from + i) * size), size);
      std::memcpy(&all[i].index, &b.at((from + i) * 4), 4);
      all[i].value = get(a, (from + i) * size);
    }
    std::stable_sort(all.begin(), all.end(), first);
    return all;
  };
  const auto give = [&](const std::vector<One>& all, std::size_t to) {
    for (const One& one : all) {
      std::memcpy(&d.at(to), &one.bits, 4);
      std::memcpy(&d.at(to + 4), &one.index, 4);
      to += 8;
    }
  };
  if (c.form == kExtract) {
    for (std::uint32_t i = 0; i < c.repeat * 32; ++i) {
      std::memcpy(&d.at(i * size), &a.at(i * 8), size);
      std::memcpy(&d.at(2048 + i * 4), &a.at(i * 8 + 4), 4);
    }
  } else if (c.form == kSort && c.mode != 0) {
    give(take(0, c.repeat * 32), 0);
  } else if (c.form == kMrgSort) {
    // With the list each comes from.
    std::vector<std::pair<One, std::uint32_t>> all;
    for (std::uint32_t list = 0; list < 4; ++list) {
      if ((c.mode >> list & 1) == 0) continue;
      auto one = take(list * 32, 32);
      one.resize(c.extra[list]);
      for (const One& each : one) all.emplace_back(each, list);
    }
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& p, const auto& q) { return first(p.first, q.first); });
    // With suspension up to the end of a list.
    std::vector<One> merged;
    std::uint32_t taken[4] = {};
    for (const auto& [one, list] : all) {
      merged.push_back(one);
      if (++taken[list] == c.extra[list] && c.extra[4] != 0) break;
    }
    give(merged, 0);
    for (std::size_t list = 4; c.extra[4] != 0 && list-- > 0;) out.kept = out.kept << 16 | taken[list];
  } else {
    for (std::uint32_t r = 0; r < c.repeat; ++r) give(take(r * 32, 32), r * std::size_t{256});
  }
}

void Work::copying() {
  out.type = kU8;
  if (c.form == kAtomicCopy) {
    out.type = c.type;
    for (std::size_t at = 0; at < c.extra[0]; at += size) {
      const Real p = get(d, at), q = get(a, at);
      put(at, c.mode == 0 ? held(p + q, c.type) : c.mode == 1 ? larger(p, q) : smaller(p, q));
    }
    return;
  }
  if (c.variant == kCount) {
    std::copy_n(a.begin(), c.count * size, d.begin());
    return;
  }
  const bool pads = c.form == kDataCopyPad, bytes_out = c.form == kDataCopyPadOut;
  const auto up = [](std::size_t bytes) { return (bytes + 31) / 32 * 32; };
  const std::size_t length = pads || bytes_out ? c.extra[0] : c.extra[0] * 32;
  const std::size_t left = c.extra[1] * size, right = c.extra[2] * size;
  std::size_t to = 0, from = 0;
  for (std::uint32_t burst = 0; burst < c.repeat; ++burst) {
    if (pads) {
      const std::size_t whole = up(left + length + right);
      for (std::size_t i = 0; i < whole; i += c.mode != 0 ? size : 1) {
        if (i >= left && i < left + length)
          std::memcpy(&d.at(to + i), &a.at(from + i - left), c.mode != 0 ? size : 1);
        else if (c.mode != 0)
          std::memcpy(&d.at(to + i), &c.scalar, size);
        else
          d.at(to + i) = 0;
      }
      to += whole + c.stride[0] * 32;
      from += length + c.stride[1];
    } else {
      std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(from), length,
                  d.begin() + static_cast<std::ptrdiff_t>(to));
      to += length + (bytes_out ? c.stride[0] : c.stride[0] * 32);
      from += up(length) + c.stride[1] * 32;
    }
  }
}

}  // namespace ascendc
