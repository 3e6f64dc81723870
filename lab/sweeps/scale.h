// Values of an axis as numbers: what ranges, searches, conditions and pictures calculate with. Quantities are
// in base units (s, B, B/s, Hz).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/parameter_list.h"

namespace cm384::sweeps {

class Scale {
 public:
  // Of an option or a parameter of the machine; of a list, of its elements.
  explicit Scale(const hw::Parameter& parameter);
  // A scale of whole numbers.
  Scale() : kind_(Kind::integer) {}
  // A scale of numbers without a unit.
  static Scale real() {
    Scale made;
    made.kind_ = Kind::real;
    return made;
  }

  bool numeric() const { return kind_ != Kind::text; }
  // A number without a unit; a whole one.
  bool plain() const { return kind_ == Kind::integer || kind_ == Kind::real; }
  bool whole() const { return kind_ == Kind::integer; }
  // Nothing for names, flags, files and lists of several elements. Throws InputError if a number is
  // malformed.
  std::optional<double> number(std::string_view text) const;
  // The value nearest to `number`, with at most four significant digits (rates: three), on the parameter's
  // resolution and step, as the command line takes it. Only if numeric().
  std::string text(double number) const;

 private:
  enum class Kind : std::uint8_t { integer, real, time, size, bandwidth, frequency, text };
  Kind kind_ = Kind::text;
  double step_ = 0;  // in resolutions; 0: any
};

// "28GB/s", "7.5KiB", "42", "1e-6": any quantity in base units. Nothing if it is none.
std::optional<double> parse_quantity(std::string_view text);

}  // namespace cm384::sweeps
