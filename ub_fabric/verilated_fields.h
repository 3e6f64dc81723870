// Ports of Verilated models as bit fields: Verilator makes a vector a scalar or an array of 32-bit words, by
// its width.
#pragma once

#include <verilated.h>

#include <cstdint>
#include <type_traits>

namespace cm384::ub {

// `width` bits (at most 64) of a port from bit `at` on.
template <class Port>
std::uint64_t field(const Port& port, unsigned at, unsigned width) {
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if constexpr (std::is_integral_v<Port>) {
    return static_cast<std::uint64_t>(port) >> at & mask;
  } else {
    std::uint64_t value = 0;
    for (unsigned done = 0; done < width;) {
      const unsigned bit = at + done;
      value |= static_cast<std::uint64_t>(port[bit / 32] >> bit % 32) << done;
      done += 32 - bit % 32;
    }
    return value & mask;
  }
}

template <class Port>
void set_field(Port& port, unsigned at, unsigned width, std::uint64_t value) {
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if constexpr (std::is_integral_v<Port>) {
    const std::uint64_t kept = static_cast<std::uint64_t>(port) & ~(mask << at);
    port = static_cast<Port>(kept | (value & mask) << at);
  } else {
    for (unsigned done = 0; done < width;) {
      const unsigned bit = at + done;
      const unsigned low = bit % 32;
      const auto part = static_cast<std::uint32_t>(mask >> done);
      port[bit / 32] = (port[bit / 32] & ~(part << low)) |
                       (static_cast<std::uint32_t>((value & mask) >> done) & part) << low;
      done += 32 - low;
    }
  }
}

}  // namespace cm384::ub
