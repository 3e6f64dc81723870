// How a part's parameters are declared: once, in code, beside the struct that holds them.
//
// A part's parameter struct has a static member template
//
//     template <class Self, class Visitor>
//     static void describe(Self& self, Visitor&& visit) {
//       visit("stacks", self.stacks, Range{1, 16}, "HBM stacks per die");
//       visit("t_rc", self.t_rc, Range{1_ps, 10_us}, "shortest time from ACT to ACT of one bank");
//     }
//
// Fields are bool, int, double, std::string (with OneOf), Time, Bytes, Bandwidth, Frequency, or structs that
// have describe() themselves (visit("hbm", self.hbm) makes the section `hbm`). The TOML reader, `--set`,
// `machine show|check` and the reference page are all made from these declarations. Values of a machine stand
// only in hw/presets, each with where it comes from.
//
// Files of TOML are declared in the same way and read by the same reader (base/text/toml_file.h), which knows
// lists of tables and values of a form of their own as well.
//
// Options of the command line are declared in the same way (workloads/frame/options.h). They also have lists
// (std::vector of int, double, Bytes, std::string), bools with names (Either), texts of a form, a Letter, an
// Alias, and Needs.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text/units.h"

namespace cm384::hw {

// Smallest and largest legal value, both legal; all values are multiples of `step`, if there is one. Of a
// list: of each of its elements.
template <class T>
struct Range {
  T low, high;
  T step{};
};
template <class T>
Range(T, T) -> Range<T>;
template <class T>
Range(T, T, T) -> Range<T>;

// The legal values of a std::string parameter, or of each element of a list of them.
struct OneOf {
  std::vector<std::string_view> names;
  // Of one of them, as an enum's value.
  template <class Enum>
  Enum as(std::string_view name) const {
    return static_cast<Enum>(std::ranges::find(names, name) - names.begin());
  }
};

// A bool that is written as one of two names.
struct Either {
  std::string_view no, yes;
};

// What a text looks like: "FILE", "auto|MxN". `check` throws InputError, without naming the parameter.
struct Form {
  std::string_view text;
  void (*check)(std::string_view) = nullptr;
};

// Of a file: it has to be given.
struct Required {};

// What ends a Range of real numbers without an upper limit.
inline constexpr double kNoLimit = 1e300;

// Of an option: its short form, `-o`.
struct Letter {
  char letter;
};

// Of an option: another name that it is taken under, as it was called before.
struct Alias {
  std::string_view name;
};

// Of an option: it has an effect only where another option is given, or has one of these values.
struct Needs {
  std::string_view option;
  std::vector<std::string_view> values;
};

}  // namespace cm384::hw
