#include "system/machine/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"
#include "system/machine/inventory.h"

namespace cm384::supernode {
namespace {

constexpr double kHoursOfAYear = 8766;

void check_range(const std::string& table, const std::string& name, double value, double least, double most) {
  if (least <= value && value <= most) return;
  throw InputError(fmt::format("{}: {}: {:g} is not between its minimum, {:g}, and its maximum, {:g}", table,
                               name, value, least, most));
}

bool is_of(const hw::Texts& presets, const hw::Machine& machine) {
  return std::ranges::find(presets, machine.preset) != presets.end();
}

Ranged operator*(const Ranged& r, double factor) {
  return {r.value * factor, r.least * factor, r.most * factor};
}
Ranged operator+(const Ranged& a, const Ranged& b) {
  return {a.value + b.value, a.least + b.least, a.most + b.most};
}

}  // namespace

PriceTable PriceTable::load(const std::string& name_or_file) {
  const bool shipped = name_or_file == "default";
  const std::string text =
      shipped ? std::string(hw::embedded_prices().front().text) : read_input(name_or_file);
  const hw::TomlFile file(text, shipped ? "hw/prices/default.toml" : name_or_file);
  PriceTable table;
  file.read(table);
  for (const Price& price : table.prices)
    check_range(file.name(), price.name, price.dollars, price.least, price.most);
  for (const Power& power : table.powers)
    check_range(file.name(), "power", power.watts, power.least, power.most);
  return table;
}

bool PriceTable::has(const hw::Machine& machine) const {
  const auto named = [&](const auto& line) { return is_of(line.presets, machine); };
  return std::ranges::any_of(prices, named) && std::ranges::any_of(powers, named);
}

Priced priced(const hw::Machine& machine, const PriceTable& table) {
  if (!table.has(machine))
    throw InputError(
        fmt::format("table {} has no prices of {}; allowed: machines that stand on presets which "
                    "its lines name",
                    table.name, machine.name));
  Priced made;
  for (const PriceTable::Price& price : table.prices) {
    if (!is_of(price.presets, machine)) continue;
    PricedLine line{.name = price.name,
                    .count = counted(machine, price.each),
                    .each = {price.dollars, price.least, price.most},
                    .all = {},
                    .source = price.source};
    if (line.count == 0) continue;  // such as copper where no two nodes of a rack are joined
    line.all = line.each * static_cast<double>(line.count);
    made.machine = made.machine + line.all;
    made.lines.push_back(std::move(line));
  }
  const auto power = std::ranges::find_if(
      table.powers, [&](const PriceTable::Power& one) { return is_of(one.presets, machine); });
  made.watts = {power->watts, power->least, power->most};
  const double packages = static_cast<double>(counted(machine, "packages"));
  made.hour = made.machine * (1 / (packages * table.years * kHoursOfAYear)) +
              made.watts * (table.kilowatt_hour / 1000);
  return made;
}

double price_named(const hw::Machine& machine, std::string_view name) {
  const Priced all = priced(machine, PriceTable::load("default"));
  std::map<std::string, double> known;
  const auto add = [&](const std::string& what, const Ranged& range) {
    known[what] = range.value;
    known[what + "_least"] = range.least;
    known[what + "_most"] = range.most;
  };
  add("price.machine", all.machine);
  add("price.hour", all.hour);
  add("price.watts", all.watts);
  const auto found = known.find(std::string(name));
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [one, value] : known) names.push_back(one);
  throw InputError(fmt::format("'{}': no such price{}", name, hw::suggestion(name, names)));
}

}  // namespace cm384::supernode
