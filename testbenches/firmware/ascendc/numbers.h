// Elements of all types as long doubles, and how results are rounded to a type.
#pragma once

#include <cstdint>

#include "testbenches/firmware/ascendc/forms.h"

namespace ascendc {

using Real = long double;  // holds every element of every type

std::uint32_t size_of(std::uint32_t type);
bool floating(std::uint32_t type);
// `x` cut to an integral value by a RoundMode of Ascend C.
Real integral(Real x, std::uint32_t mode);
// To a float of so many digits and least exponent (of 1.xxx), overflow beyond the greatest.
Real narrowed(Real x, int digits, int least, Real largest, std::uint32_t mode);
// Rounded to a type, saturating where that is an integer; NaN gives 0 there.
Real to_type(Real x, std::uint32_t type, std::uint32_t mode);
// An element of a type; a value that the type has.
Real load(const std::uint8_t* at, std::uint32_t type);
void store(std::uint8_t* at, std::uint32_t type, Real value);
// A result as the type holds it: nearest even, or wrapped.
Real held(Real x, std::uint32_t type);
// Of two with a NaN: NaN; of equals: the second.
Real larger(Real a, Real b);
Real smaller(Real a, Real b);
// Products of two 32-bit integers have more digits than they need.
Real times(Real a, Real b, std::uint32_t type);

}  // namespace ascendc
