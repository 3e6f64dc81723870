#include "hw/qos.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text/error.h"
#include "base/text/quantity.h"

namespace cm384::hw {
namespace {

std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  for (;;) {
    const std::size_t comma = text.find(',');
    entries.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return entries;
    text.remove_prefix(comma + 1);
  }
}

bool is_count(std::string_view text) {
  return !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The entry of a class: the last one holds for the rest.
std::string_view entry(std::string_view list, int service_class) {
  const std::vector<std::string_view> entries = entries_of(list);
  return entries[std::min(static_cast<std::size_t>(service_class), entries.size() - 1)];
}

Bandwidth rate_of(std::string_view text) {
  return text == "none" ? Bandwidth{} : parse_bandwidth(text);
}

// "LxN" or "L".
struct Levels {
  int level = 0, dies = 0;
};
Levels levels_of(std::string_view text) {
  const std::size_t by = text.find('x');
  return {static_cast<int>(parse_integer(text.substr(0, by))),
          by == std::string_view::npos ? 1 : static_cast<int>(parse_integer(text.substr(by + 1)))};
}

}  // namespace

void check_weights(std::string_view text) {
  for (const std::string_view part : entries_of(text)) {
    if (!is_count(part) || parse_integer(part) < 1 || parse_integer(part) > 1000)
      throw InputError(fmt::format(
          "'{}' is not a list of weights; allowed: whole numbers from 1 to 1000, as in 1,2", text));
  }
}

void check_class_rates(std::string_view text) {
  for (const std::string_view part : entries_of(text)) {
    if (part == "none") continue;
    const Bandwidth rate = parse_bandwidth(part);
    if (rate < Bandwidth{1'000'000} || rate > Bandwidth{4'000'000'000'000})
      throw InputError(
          fmt::format("'{}' is out of range; allowed: none, or 1MB/s to 4TB/s, as in none,20GB/s", text));
  }
}

void check_die_levels(std::string_view text) {
  for (const std::string_view part : entries_of(text)) {
    const std::size_t by = part.find('x');
    const bool counted = by == std::string_view::npos || is_count(part.substr(by + 1));
    if (!counted || !is_count(part.substr(0, by)) || levels_of(part).level > UbQos::kMostLevel ||
        levels_of(part).dies < 1)
      throw InputError(fmt::format(
          "'{}' is not a list of service levels; allowed: 0 to 15, each perhaps with xDIES, as in 1x8,0x8",
          text));
  }
}

int UbQos::weight(int service_class) const {
  return static_cast<int>(parse_integer(entry(weights, service_class)));
}

Bandwidth UbQos::rate(int service_class) const {
  return rate_of(entry(rates, service_class));
}

int UbQos::die_level(int die) const {
  int all = 0;
  for (const std::string_view part : entries_of(die_levels)) all += levels_of(part).dies;
  int place = die % all;
  for (const std::string_view part : entries_of(die_levels)) {
    const Levels levels = levels_of(part);
    if (place < levels.dies) return levels.level;
    place -= levels.dies;
  }
  return 0;
}

void check_qos(const Machine& machine) {
  const UbQos& qos = machine.ub.qos;
  for (const auto& [key, list] : {std::pair{"weights", &qos.weights}, std::pair{"rates", &qos.rates}}) {
    const std::size_t entries = entries_of(*list).size();
    if (entries > static_cast<std::size_t>(qos.classes))
      throw InputError(
          fmt::format("ub.qos.{}: {} of {} classes; allowed: at most one each", key, entries, qos.classes));
  }
}

std::string without_effect_of_qos(const Machine& machine, const std::string& key) {
  const UbQos& qos = machine.ub.qos;
  const bool level = key == "sdma.service_level";
  const bool of_drr = key == "ub.qos.weights" || key == "ub.qos.quantum";
  const bool by_class =
      key == "ub.qos.arbitration" && (qos.arbitration == "strict" || qos.arbitration == "drr");
  if (qos.classes == 1 && (level || of_drr || by_class))
    return "has no effect with ub.qos.classes=1; allowed with: 2 or more";
  if (of_drr && qos.arbitration != "drr")
    return fmt::format("has no effect with ub.qos.arbitration={}; allowed with: drr", qos.arbitration);
  if (key == "ub.qos.burst" && !qos.limits_rates())
    return "has no effect with ub.qos.rates=none; allowed with: a rate";
  return {};
}

}  // namespace cm384::hw
