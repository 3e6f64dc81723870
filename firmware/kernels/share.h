// Splits work over blocks.
#pragma once

#include <stdint.h>

struct Range {
  uint32_t first, last;
  uint32_t size() const { return last - first; }
};

// Share `index` of `total` items in `parts` contiguous shares; the first total % parts have one more.
inline Range Share(uint32_t total, uint32_t parts, uint32_t index) {
  const uint32_t size = total / parts, more = total % parts;
  const uint32_t first = index * size + (index < more ? index : more);
  return {first, first + size + (index < more ? 1u : 0u)};
}
