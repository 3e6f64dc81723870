// The topology's texts and derived rates.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/text/error.h"
#include "base/text/quantity.h"
#include "hw/parameters/ub.h"

namespace cm384::hw {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<double> rates_of(std::string_view text) {
  std::vector<double> rates;
  for (const std::string_view part : split(text, ',')) rates.push_back(parse_real(part));
  return rates;
}

Bandwidth scaled(Bandwidth whole, double rate) {
  if (rate == 1) return whole;
  return rounded_rate(static_cast<double>(whole.bytes_per_second) * rate);
}

}  // namespace

Bandwidth rounded_rate(double bytes_per_second) {
  return Bandwidth{std::max<std::int64_t>(1, std::llround(bytes_per_second))};
}

Topology Topology::one_supernode() const {
  Topology one = *this;
  one.supernodes = 1;
  return one;
}

std::vector<int> Topology::lengths() const {
  std::vector<int> lengths;
  if (shape == "auto") {
    int shorter = static_cast<int>(std::sqrt(static_cast<double>(nodes)));
    while (nodes % shorter != 0) --shorter;
    return {nodes / shorter, shorter};
  }
  for (const std::string_view part : split(shape, 'x'))
    lengths.push_back(static_cast<int>(parse_integer(part)));
  return lengths;
}

void check_shape(std::string_view text) {
  if (text == "auto") return;
  const std::vector<std::string_view> parts = split(text, 'x');
  bool fits = parts.size() <= 8;
  for (const std::string_view part : parts) {
    fits = fits && !part.empty() && part.size() <= 5 &&
           part.find_first_not_of("0123456789") == std::string_view::npos && parse_integer(part) >= 1;
  }
  if (!fits)
    throw InputError(
        fmt::format("'{}' is not a shape; allowed: auto, or one to eight lengths as in 4x4x4", text));
}

void check_file(std::string_view text) {
  if (text.empty()) throw InputError("'' is nothing; allowed: a text");
}

void check_rates(std::string_view text) {
  for (const double rate : rates_of(text)) {
    if (!(rate >= 0.01 && rate <= 100))
      throw InputError(
          fmt::format("'{}' is out of range; allowed: factors from 0.01 to 100, separated by commas", text));
  }
}

double UbLink::plane_rate(int plane) const {
  const std::vector<double> rates = rates_of(plane_rates);
  return rates[std::min(static_cast<std::size_t>(plane), rates.size() - 1)];
}

Bandwidth UbLink::of_plane(Bandwidth whole, int plane) const {
  return scaled(whole, plane_rate(plane));
}

Bandwidth UbLink::die_bandwidth(int plane) const {
  return of_plane(bandwidth, plane);
}

Bandwidth UbLink::trunk_bandwidth(int plane) const {
  return scaled(bandwidth, trunk_rate * plane_rate(plane));
}

}  // namespace cm384::hw
