#include "lab/uncertainty/unknowns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text/parameter_list.h"

namespace cm384::uncertainty {

Unknown::Unknown(const hw::Parameter& parameter, const hw::Provenance& from)
    : key(parameter.key), own(hw::value_text(parameter)), provenance(from), scale_(parameter) {
  if (!provenance.plausible.interval) return;
  low_ = *scale_.number(provenance.plausible.values.front());
  high_ = *scale_.number(provenance.plausible.values.back());
}

bool Unknown::logarithmic() const {
  return low_ > 0 && high_ >= 8 * low_;
}

std::string Unknown::at(double place) const {
  const std::vector<std::string>& values = provenance.plausible.values;
  if (!provenance.plausible.interval) {
    const auto count = static_cast<double>(values.size());
    return values[static_cast<std::size_t>(std::min(place * count, count - 1))];
  }
  if (place <= 0) return values.front();
  if (place >= 1) return values.back();
  return scale_.text(logarithmic() ? low_ * std::pow(high_ / low_, place) : low_ + (high_ - low_) * place);
}

double Unknown::own_place() const {
  const std::vector<std::string>& values = provenance.plausible.values;
  if (!provenance.plausible.interval) {
    const auto found = std::ranges::find(values, own) - values.begin();
    return (static_cast<double>(found) + 0.5) / static_cast<double>(values.size());
  }
  const double value = *scale_.number(own);
  return logarithmic() ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
}

std::string Unknown::range() const {
  return fmt::format("{}",
                     fmt::join(provenance.plausible.values, provenance.plausible.interval ? " to " : ", "));
}

std::vector<Unknown> unknowns_of(const hw::Machine& machine) {
  hw::Machine copy = machine;
  std::vector<Unknown> unknowns;
  for (const hw::Parameter& parameter : hw::list_parameters(copy)) {
    const hw::Provenance& provenance = machine.provenance.at(parameter.key);
    if (provenance.plausible.values.size() > 1) unknowns.emplace_back(parameter, provenance);
  }
  return unknowns;
}

}  // namespace cm384::uncertainty
