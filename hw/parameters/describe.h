// How a part's parameters are declared: once, in code, beside the struct that holds them.
//
// A part's parameter struct has a static member template
//
//     template <class Self, class Visitor>
//     static void describe(Self& self, Visitor&& visit) {
//       visit("stacks", self.stacks, Range{1, 16}, "HBM stacks a die");
//       visit("t_rc", self.t_rc, Range{1_ps, 10_us}, "shortest time from ACT to ACT of one bank");
//     }
//
// Fields are bool, int, double, std::string (with OneOf), Time, Bytes, Bandwidth, Frequency, or structs that
// have describe() themselves (visit("hbm", self.hbm) makes the section `hbm`). The TOML reader, `--set`,
// `machine show|check` and the reference page are all made from these declarations. Values stand only in
// hw/presets, each with where it comes from.
#pragma once

#include <string_view>
#include <vector>

#include "hw/units.h"

namespace cm384::hw {

// Smallest and largest legal value, both legal.
template <class T>
struct Range {
  T low, high;
};
template <class T>
Range(T, T) -> Range<T>;

// The legal values of a std::string parameter.
struct OneOf {
  std::vector<std::string_view> names;
};

}  // namespace cm384::hw
