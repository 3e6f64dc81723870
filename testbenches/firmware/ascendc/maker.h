// Draws cases, and the pool that their operands come from.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "testbenches/firmware/ascendc/forms.h"

namespace ascendc {

enum Family {
  binary,
  unary,
  scalar,
  fill,
  cast,
  compare,
  select,
  reduce,
  whole,
  sum,
  gather,
  sort,
  copy,
  atomic
};
constexpr Family kFamilies[] = {
#define FORM(name, family, text) family,
    ASCENDC_FORMS(FORM)
#undef FORM
};
constexpr const char* kTexts[] = {
#define FORM(name, family, text) text,
    ASCENDC_FORMS(FORM)
#undef FORM
};

// Element types of a form; pairs of a cast.
std::vector<std::uint32_t> types_of(std::uint32_t form);
extern const std::vector<std::pair<int, int>> kCasts;

std::vector<std::uint8_t> make_pool(std::mt19937& draw);

struct Maker {
  std::mt19937 draw{17};

  std::uint32_t one(std::uint32_t low, std::uint32_t high) { return low + draw() % (high - low + 1); }
  std::uint32_t of(std::initializer_list<std::uint32_t> choices) {
    return choices.begin()[draw() % choices.size()];
  }

  void masks(Case& c, std::uint32_t elements) {
    if (c.variant == kNumber) {
      c.mask[0] = draw() % 3 == 0 ? elements : one(1, elements);
      return;
    }
    for (auto& word : c.mask)
      word = (std::uint64_t{draw()} << 32 | draw()) &
             (draw() % 2 == 0 ? ~std::uint64_t{0} : std::uint64_t{draw()} << 20);
    if (elements < 128) c.mask[1] = 0;
    if (elements < 64) c.mask[0] &= (std::uint64_t{1} << elements) - 1;
    if ((c.mask[0] | c.mask[1]) == 0) c.mask[0] = 1;
  }
  // Strides that keep operands of so many blocks a repeat in their areas.
  void strides(Case& c, std::uint32_t to, std::uint32_t from) {
    for (int n = 0; n < 3; ++n) {
      const std::uint32_t blocks = n == 0 ? to : from;
      c.block[n] = draw() % 2 == 0 ? 1 : one(n == 0 ? 1 : 0, 3);
      c.stride[n] = draw() % 2 == 0 ? blocks : one(0, 16);
    }
  }
  void scalar_of(Case& c) {
    if (c.type == kF32) {
      const float x = static_cast<float>(static_cast<int>(draw() % 401) - 200) / 8;
      std::memcpy(&c.scalar, &x, 4);
    } else if (c.type == kF16) {
      const auto x = static_cast<_Float16>(static_cast<float>(static_cast<int>(draw() % 401) - 200) / 8);
      std::memcpy(&c.scalar, &x, 2);
    } else {
      c.scalar = draw() % 2 == 0 ? draw() : draw() % 100;
    }
  }

  Case make(std::uint32_t form, std::uint32_t n);
};

}  // namespace ascendc
