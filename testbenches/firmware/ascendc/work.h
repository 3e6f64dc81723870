// One case at work: its areas, and which elements of them take part.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "testbenches/firmware/ascendc/numbers.h"
#include "testbenches/firmware/ascendc/reference.h"

namespace ascendc {

struct Work {
  const Case& c;
  std::vector<std::uint8_t> d, a, b, x;
  std::uint32_t size, elements;
  Expected out;

  Work(const Case& given, const std::uint8_t* pool) : c(given), size(size_of(c.type)), elements(256 / size) {
    const auto row = [&](int area) {
      const std::uint8_t* at = pool + std::size_t{c.row[area]} * AREA;
      // What a burst may reach beyond its row.
      return std::vector<std::uint8_t>(at, at + AREA);
    };
    d = row(0), a = row(1), b = row(2), x = row(3);
    out.type = c.type;
  }

  // Whether element i of repeat r takes part, and how many repeats there are.
  bool counted() const { return c.variant == kCount || c.variant == kCounter || c.variant == kCounterNumber; }
  std::uint32_t repeats(std::uint32_t each) const {
    return counted() ? (c.count + each - 1) / each : c.repeat;
  }
  bool on(std::uint32_t r, std::uint32_t i, std::uint32_t each) const {
    if (counted()) return r * each + i < c.count;
    if (c.variant == kNumber) return i < c.mask[0];
    return (c.mask[i / 64] >> (i % 64) & 1) != 0;
  }
  // Where an element of operand `n` stands, `each` of `bytes` a repeat.
  std::size_t at(int n, std::uint32_t r, std::uint32_t i, std::uint32_t bytes, std::uint32_t each) const {
    if (c.variant == kCount) return std::size_t{r * each + i} * bytes;
    const std::uint32_t block = i * bytes / 32;
    return r * c.stride[n] * 32 + block * c.block[n] * 32 + i * bytes % 32;
  }
  Real get(const std::vector<std::uint8_t>& from, std::size_t offset) const {
    return load(&from.at(offset), c.type);
  }
  Real get(int n, const std::vector<std::uint8_t>& from, std::uint32_t r, std::uint32_t i) const {
    return get(from, at(n, r, i, size, elements));
  }
  void put(std::size_t offset, Real value) { store(&d.at(offset), c.type, value); }
  Real scalar() const { return load(reinterpret_cast<const std::uint8_t*>(&c.scalar), c.type); }

  // f(repeat, element) of all that take part, a repeat's results after all are known.
  template <class F>
  void each(const F& f) {
    for (std::uint32_t r = 0; r < repeats(elements); ++r) {
      std::vector<std::pair<std::size_t, std::uint32_t>> writes;
      for (std::uint32_t i = 0; i < elements; ++i) {
        if (!on(r, i, elements)) continue;
        std::uint8_t value[4] = {};
        f(r, i, value);
        std::uint32_t word;
        std::memcpy(&word, value, 4);
        writes.emplace_back(at(0, r, i, size, elements), word);
      }
      for (const auto& [offset, word] : writes) std::memcpy(&d.at(offset), &word, size);
    }
  }
  template <class F>
  void compute(const F& f) {
    each([&](std::uint32_t r, std::uint32_t i, std::uint8_t* value) {
      store(value, c.type, f(get(1, a, r, i), get(2, b, r, i), get(0, d, r, i), r * elements + i));
    });
  }
  void bits(const auto& f) {
    each([&](std::uint32_t r, std::uint32_t i, std::uint8_t* value) {
      for (std::uint32_t byte = 0; byte < size; ++byte)
        value[byte] = f(a.at(at(1, r, i, size, elements) + byte), b.at(at(2, r, i, size, elements) + byte));
    });
  }
  void element_wise();
  void convert();
  void comparison();
  void selection();
  Real tree(std::vector<Real> values) const;
  Real added(Real p, Real q) const;
  // Elements of a repeat that take part, and their numbers.
  std::vector<std::pair<Real, std::uint32_t>> taking_part(std::uint32_t r, std::uint32_t first,
                                                          std::uint32_t count) const;
  std::pair<Real, std::uint32_t> best(const std::vector<std::pair<Real, std::uint32_t>>& of,
                                      bool maximum) const;
  void put_index(std::size_t offset, std::uint32_t index) { std::memcpy(&d.at(offset), &index, size); }
  Real sum_of(std::uint32_t r, std::uint32_t first, std::uint32_t count) const;
  void reduction();
  void whole_reduction();
  void gathering();
  void sorting();
  void copying();
  void run();
};

}  // namespace ascendc
