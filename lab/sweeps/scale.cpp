#include "lab/sweeps/scale.h"

#include <array>
#include <cmath>

#include "base/text/error.h"
#include "base/text/quantity.h"

namespace cm384::sweeps {
namespace {

constexpr double kPicosecond = 1e-12;

double to_digits(int digits, double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

template <class Parse>
std::optional<double> attempt(Parse&& parse) {
  try {
    return parse();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

Scale::Scale(const hw::Parameter& parameter) : step_(parameter.step) {
  struct {
    Kind operator()(const int*) const { return Kind::integer; }
    Kind operator()(const std::int64_t*) const { return Kind::integer; }
    Kind operator()(const hw::Integers*) const { return Kind::integer; }
    Kind operator()(const double*) const { return Kind::real; }
    Kind operator()(const hw::Reals*) const { return Kind::real; }
    Kind operator()(const Time*) const { return Kind::time; }
    Kind operator()(const Bytes*) const { return Kind::size; }
    Kind operator()(const hw::Sizes*) const { return Kind::size; }
    Kind operator()(const Bandwidth*) const { return Kind::bandwidth; }
    Kind operator()(const Frequency*) const { return Kind::frequency; }
    Kind operator()(const bool*) const { return Kind::text; }
    Kind operator()(const std::string*) const { return Kind::text; }
    Kind operator()(const hw::Texts*) const { return Kind::text; }
  } kind_of;
  kind_ = std::visit(kind_of, parameter.value);
}

std::optional<double> Scale::number(std::string_view text) const {
  if (text.find(',') != std::string_view::npos || text.find("..") != std::string_view::npos)
    return std::nullopt;
  switch (kind_) {
    case Kind::integer:
      return static_cast<double>(hw::parse_integer(text));
    case Kind::real:
      return hw::parse_real(text);
    case Kind::time:
      return static_cast<double>(hw::parse_time(text).ps) * kPicosecond;
    case Kind::size:
      return static_cast<double>(hw::parse_bytes(text).count);
    case Kind::bandwidth:
      return static_cast<double>(hw::parse_bandwidth(text).bytes_per_second);
    case Kind::frequency:
      return static_cast<double>(hw::parse_frequency(text).hertz);
    case Kind::text:
      break;
  }
  return std::nullopt;
}

std::string Scale::text(double number) const {
  const auto whole = [this](double value, int digits = 4) {
    const double grain = std::max(step_, 1.0);
    return static_cast<std::int64_t>(std::llround(to_digits(digits, value) / grain) * std::llround(grain));
  };
  switch (kind_) {
    case Kind::integer:
      return std::to_string(whole(number));
    case Kind::real:
      return hw::format(to_digits(4, number));
    case Kind::time:
      return hw::format(Time{whole(number / kPicosecond)});
    case Kind::size:
      return hw::format(Bytes{whole(number)});
    case Kind::bandwidth:  // with more digits its clock would not be exact
      return hw::format(Bandwidth{whole(number, 3)});
    case Kind::frequency:
      return hw::format(Frequency{whole(number, 3)});
    case Kind::text:
      break;
  }
  throw InputError("a range needs an axis of numbers");
}

std::optional<double> parse_quantity(std::string_view text) {
  using Parse = double (*)(std::string_view);
  static constexpr std::array<Parse, 5> kForms{
      [](std::string_view t) { return hw::parse_real(t); },
      [](std::string_view t) { return static_cast<double>(hw::parse_bandwidth(t).bytes_per_second); },
      [](std::string_view t) { return static_cast<double>(hw::parse_bytes(t).count); },
      [](std::string_view t) { return static_cast<double>(hw::parse_time(t).ps) * kPicosecond; },
      [](std::string_view t) { return static_cast<double>(hw::parse_frequency(t).hertz); }};
  for (const Parse parse : kForms) {
    if (const auto value = attempt([&] { return std::optional<double>(parse(text)); })) return value;
  }
  return std::nullopt;
}

}  // namespace cm384::sweeps
