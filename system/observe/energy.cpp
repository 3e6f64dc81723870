#include "system/observe/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"
#include "system/machine/inventory.h"

namespace cm384::observe {
namespace {

constexpr std::string_view kOtherChips = "chips_other";
constexpr std::string_view kChips = "chips_";

Joules operator*(const Joules& j, double factor) {
  return {j.value * factor, j.least * factor, j.most * factor};
}
Joules operator+(const Joules& a, const Joules& b) {
  return {a.value + b.value, a.least + b.least, a.most + b.most};
}

template <class Line>
void check_range(const hw::TomlFile& file, const Line& line, double value) {
  if (line.least <= value && value <= line.most) return;
  throw InputError(fmt::format("{}: {}: {:g} is not between its minimum, {:g}, and its maximum, {:g}",
                               file.name(), line.name, value, line.least, line.most));
}

EnergyTable parse(std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  EnergyTable table;
  file.read(table);
  for (const EnergyTable::Action& action : table.actions) check_range(file, action, action.picojoules);
  for (const EnergyTable::Power& power : table.powers) check_range(file, power, power.watts);
  return table;
}

// How many the machine has; none where it has no chip of that kind.
std::int64_t count_for(const EnergyTable::Power& power, const EnergyTable& table,
                       const std::vector<supernode::Counted>& counts) {
  const auto of = [&](std::string_view name) {
    const auto found = std::ranges::find(counts, name, &supernode::Counted::name);
    return found == counts.end() ? std::int64_t{-1} : found->count;
  };
  if (power.each == kOtherChips) {
    std::int64_t sum = of("switch_chips");
    for (const EnergyTable::Power& other : table.powers) {
      if (other.each.starts_with(kChips) && other.each != kOtherChips)
        sum -= std::max<std::int64_t>(0, of(other.each));
    }
    return sum;
  }
  const std::int64_t count = of(power.each);
  if (count >= 0) return count;
  if (power.each.starts_with(kChips)) return 0;
  throw InputError(fmt::format("{}: {}: '{}' is nothing that `cm384 machine count` shows", table.name,
                               power.name, power.each));
}

int dies_of(const Json& row) {
  int dies = 0;
  for (const auto& part : row.at("parts").items()) dies += part.key().starts_with("die") ? 1 : 0;
  return dies;
}

}  // namespace

EnergyTable EnergyTable::load(const std::string& name_or_file, const hw::Machine& machine) {
  if (name_or_file != "default") return parse(read_input(name_or_file), name_or_file);
  std::optional<EnergyTable> of_others;
  for (const hw::EmbeddedText& text : hw::embedded_energy()) {
    EnergyTable table = parse(text.text, std::string(text.name));
    if (std::ranges::find(table.presets, machine.preset) != table.presets.end()) return table;
    if (table.presets.empty()) of_others = std::move(table);
  }
  if (of_others && machine.accelerator.has_cores()) return *std::move(of_others);
  throw InputError(fmt::format(
      "--energy default: there is no table of {}, which has no cores; allowed: a file as those of "
      "hw/energy/",
      machine.name));
}

void EnergyTable::check(const std::vector<std::string>& patterns) const {
  for (const Action& action : actions) {
    for (const std::string& counter : action.counters) {
      if (std::ranges::find(patterns, counter) == patterns.end())
        throw InputError(fmt::format("{}: {}: '{}' is counted nowhere{}", name, action.name, counter,
                                     hw::suggestion(counter, patterns)));
    }
  }
}

Energy energy_of(const Json& row, const hw::Machine& machine, const EnergyTable& table) {
  Energy energy;
  energy.dies = dies_of(row);
  energy.seconds = row.at("simulated_us").get<double>() * 1e-6;
  const std::vector<supernode::Counted> counts = supernode::inventory(machine);
  const double share = static_cast<double>(energy.dies) / machine.topology.dies();
  const double packages = static_cast<double>(energy.dies) / machine.topology.dies_per_package;
  Joules outside;  // packages
  const auto add = [&](const std::string& part, const Joules& joules, bool in_package) {
    auto found = std::ranges::find(energy.parts, part, &EnergyShare::part);
    if (found == energy.parts.end()) found = energy.parts.insert(energy.parts.end(), {part, {}});
    found->joules = found->joules + joules;
    Joules& sum = in_package ? energy.packages : outside;
    sum = sum + joules;
  };
  for (const EnergyTable::Action& action : table.actions) {
    double counted = 0;
    for (const std::string& pattern : action.counters) {
      const auto found = row.at("totals").find(pattern);
      if (found != row.at("totals").end()) counted += found->get<double>();
    }
    add(action.part,
        Joules{action.picojoules, action.least, action.most} * (counted * action.actions * 1e-12), true);
  }
  for (const EnergyTable::Power& power : table.powers) {
    const double number = static_cast<double>(count_for(power, table, counts)) * share;
    add(power.part, Joules{power.watts, power.least, power.most} * (number * energy.seconds),
        power.in_package);
  }
  const EnergyTable::Supply& supply = table.supply;
  const double rest = supply.not_allocated * packages * energy.seconds;
  const Joules drawn = energy.packages * (1 + supply.conversion) + outside;
  energy.all = drawn * ((1 + supply.fans) / supply.efficiency) + Joules{rest, rest, rest};
  energy.parts.push_back({"supply", energy.all + (energy.packages + outside) * -1.0});
  return energy;
}

Json Energy::to_json(const hw::Machine& machine, const EnergyTable& table) const {
  const double packages_taking_part = static_cast<double>(dies) / machine.topology.dies_per_package;
  const auto watts = [&](double joules) {
    return seconds > 0 && dies > 0 ? Json(joules / seconds / packages_taking_part) : Json();
  };
  Json shares = Json::object();
  for (const EnergyShare& share : parts)
    shares[share.part] = {{"J", share.joules.value}, {"interval", {share.joules.least, share.joules.most}}};
  return {{"dies", dies},
          {"simulated_us", seconds * 1e6},
          {"packages_J", packages.value},
          {"packages_J_interval", {packages.least, packages.most}},
          {"all_J", all.value},
          {"all_J_interval", {all.least, all.most}},
          {"package_W", watts(packages.value)},
          {"all_W_per_package", watts(all.value)},
          {"parts", std::move(shares)},
          {"table", table.name},
          {"note", table.note}};
}

std::string Energy::text(const hw::Machine& machine) const {
  std::string text;
  const auto line = [&](std::string_view name, const Joules& joules) {
    text += fmt::format("  {:<10}{:>14.6f} J  {:>14.6f} to {:.6f}{:>9.1f} %\n", name, joules.value,
                        joules.least, joules.most, all.value > 0 ? 100 * joules.value / all.value : 0);
  };
  for (const EnergyShare& share : parts) line(share.part, share.joules);
  line("all", all);
  const double taking_part = static_cast<double>(dies) / machine.topology.dies_per_package;
  if (seconds > 0 && dies > 0)
    text +=
        fmt::format("  {} {} over {:.3f} us: {:.0f} W per package, {:.0f} W with its share of the machine\n",
                    dies, dies == 1 ? "die" : "dies", seconds * 1e6, packages.value / seconds / taking_part,
                    all.value / seconds / taking_part);
  return text;
}

}  // namespace cm384::observe
