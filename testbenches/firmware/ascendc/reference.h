// What the call forms of forms.h do, in plain C++.
#pragma once

#include <cstdint>
#include <vector>

#include "testbenches/firmware/ascendc/forms.h"

namespace ascendc {

// The destination's area after the call, how elements are compared, and what rsvdCnt says.
struct Expected {
  std::vector<std::uint8_t> bytes;
  std::uint32_t type = kU8;  // of what was written: NaNs are all the same
  std::uint32_t places = 0;  // by which a float may differ in the last place
  std::uint64_t kept = 0;
};

Expected expect(const Case& c, const std::uint8_t* pool);
// The byte at which an element that differs begins; -1: none does.
int first_difference(const Expected& expected, const std::uint8_t* is);

}  // namespace ascendc
