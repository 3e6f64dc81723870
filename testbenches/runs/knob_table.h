// Which output each parameter of the machine moves, and which way.
#pragma once

#include <span>
#include <string_view>

namespace cm384::testing {

enum class Way : char { up = '+', down = '-', either = '?', refused = '!' };  // refused: the run is an error

struct Knob {
  std::string_view key;
  std::string_view value;
  std::string_view scenario;  // of knob_scenarios.h
  std::string_view output;
  Way way = Way::up;
  // Changes of the machine for both runs, "key=value key=value": what makes the mechanism bind.
  std::string_view given = "";
};
std::span<const Knob> knobs();

// Parameters without a row, and why.
struct Exempt {
  std::string_view key;
  std::string_view why;
};
std::span<const Exempt> exempt_knobs();

// Rows of hw::VectorCore in the order of the kernel's vector sections.
std::span<const std::string_view> vector_rows();

}  // namespace cm384::testing
