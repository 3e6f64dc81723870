#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "base/text/json.h"
#include "system/machine/bisection.h"
#include "system/machine/inventory.h"
#include "system/machine/prices.h"
#include "system/machine/statistics.h"
#include "system/machine/supernode.h"

namespace cm384::cli {
namespace {

struct ShowOptions {
  MachineOptions machine;
  bool json = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    MachineOptions::describe(self.machine, visit);
    visit("format", self.json, studies::Either{"toml", "json"}, "of what is shown");
  }
};

int list(const Program&, const NoOptions&, const studies::Given&) {
  for (const std::string& name : hw::preset_names()) {
    fmt::print("{:<22}{}{}\n", name, hw::load_machine(name).description,
               name == hw::kDefaultMachine ? " (default)" : "");
  }
  return kDone;
}

int show(const Program&, const ShowOptions& options, const studies::Given&) {
  const hw::Machine machine = options.machine.load();
  fmt::print("{}", options.json ? hw::to_json(machine) : hw::to_toml(machine));
  return kDone;
}

// Builds its fabric and one of its dies: what does not fit together is found here as a run would find it. Of
// more supernodes than a simulation can name so many.
void build_fabric(hw::Machine machine) {
  machine.topology.supernodes =
      std::min(machine.topology.supernodes, supernode::most_supernodes(machine.topology));
  supernode::SupernodeOptions one;
  one.dies = {0};
  if (machine.topology.sockets() > 0) one.sockets = {0};
  const supernode::Supernode built(machine, one);
}

int check(const Program&, const MachineOptions& options, const studies::Given&) {
  const hw::Machine machine = options.load();
  build_fabric(machine);
  supernode::inventory(machine);
  const int most = supernode::most_supernodes(machine.topology);
  if (machine.topology.supernodes > most)
    fmt::print(stderr,
               "cm384: note: topology.supernodes: packets name the dies and sockets of {} supernodes, so "
               "studies simulate at most that many as one machine; `machine count` counts all, and `run "
               "jobs`, `reliability` and `train` use all\n",
               most);
  fmt::print("{}: good, {} parameters", machine.name, machine.provenance.size());
  if (machine.preset.empty()) {
    fmt::print(", of no preset\n");
    return kDone;
  }
  fmt::print(", {} of them not as in {}\n", machine.overrides.size(), machine.preset);
  const hw::Machine preset = hw::load_machine(machine.preset);
  for (const auto& [key, value] : machine.overrides)
    fmt::print("  {} = {} (was {})\n", key, value, hw::value_of(preset, key));
  return kDone;
}

struct CountOptions {
  MachineOptions machine;
  bool json = false;
  std::string prices;
  studies::Texts metrics;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    MachineOptions::describe(self.machine, visit);
    visit("format", self.json, studies::Either{"table", "json"}, "of what is shown");
    visit("prices", self.prices, studies::Form{"default|FILE"},
          "what its parts cost by a table of prices, all of them assumed (hw/prices/); in json beside the "
          "counts");
    visit("metrics", self.metrics, studies::OneOf{{"diameter", "bisection", "cost"}},
          "these in place of the counts: links between the two dies farthest apart, the smallest cut between "
          "halves of the dies, dollars by --prices");
  }
};

Json range_of(const supernode::Ranged& range) {
  return {{"value", range.value}, {"interval", {range.least, range.most}}};
}

Json to_json(const supernode::Priced& priced, const supernode::PriceTable& table) {
  Json lines = Json::array();
  for (const supernode::PricedLine& line : priced.lines)
    lines.push_back({{"name", line.name},
                     {"count", line.count},
                     {"each", range_of(line.each)},
                     {"all", range_of(line.all)},
                     {"source", line.source}});
  return {{"lines", std::move(lines)},     {"machine", range_of(priced.machine)},
          {"hour", range_of(priced.hour)}, {"watts", range_of(priced.watts)},
          {"table", table.name},           {"note", table.note}};
}

void print_prices(const supernode::Priced& priced, const supernode::PriceTable& table) {
  fmt::print("\n{:<42}{:>8}{:>12}{:>14}  {}\n", "dollars", "count", "each", "all", "range");
  const auto print = [](const std::string& name, const std::string& count, const std::string& each,
                        const supernode::Ranged& all) {
    fmt::print("{:<42}{:>8}{:>12}{:>14.0f}  {:.0f} to {:.0f}\n", name, count, each, all.value, all.least,
               all.most);
  };
  for (const supernode::PricedLine& line : priced.lines)
    print(line.name, std::to_string(line.count), fmt::format("{:.0f}", line.each.value), line.all);
  print("machine", "", "", priced.machine);
  fmt::print(
      "hourly cost of a package, written off over {:g} years with {:.0f} W at {:g} per kWh: {:.2f} ({:.2f} "
      "to {:.2f})\ntable {}: {}\n",
      table.years, priced.watts.value, table.kilowatt_hour, priced.hour.value, priced.hour.least,
      priced.hour.most, table.name, table.note);
}

// Of one supernode; the cost of all.
Json metrics_of(const hw::Machine& machine, const CountOptions& options) {
  Json made = Json::object();
  for (const std::string& metric : options.metrics) {
    if (metric == "diameter") made["diameter"] = supernode::counted(machine, "diameter");
    if (metric == "bisection") made["bisection_GBps"] = supernode::bisection_GBps(machine);
    if (metric != "cost") continue;
    const std::string table = options.prices.empty() ? "default" : options.prices;
    made["cost_dollars"] = supernode::priced(machine, supernode::PriceTable::load(table)).machine.value;
  }
  return made;
}

int show_metrics(const hw::Machine& machine, const CountOptions& options) {
  const Json metrics = metrics_of(machine, options);
  if (options.json) {
    fmt::print("{}\n", Json{{"machine", machine.name}, {"metrics", metrics}}.dump(2));
    return kDone;
  }
  fmt::print("{}\n", machine.name);
  for (const auto& [name, value] : metrics.items())
    fmt::print("{:<22}{:>16}\n", name,
               value.is_number_float() ? fmt::format("{:.0f}", value.get<double>()) : value.dump());
  return kDone;
}

int count(const Program&, const CountOptions& options, const studies::Given&) {
  const hw::Machine machine = options.machine.load();
  if (!options.metrics.empty()) return show_metrics(machine, options);
  const std::vector<supernode::Counted> all = supernode::inventory(machine);
  std::optional<supernode::PriceTable> table;
  std::optional<supernode::Priced> priced;
  if (!options.prices.empty()) {
    table = supernode::PriceTable::load(options.prices);
    priced = supernode::priced(machine, *table);
  }
  if (options.json) {
    Json counts = Json::object();
    for (const supernode::Counted& one : all) counts[one.name] = one.count;
    Json made = {{"machine", machine.name}, {"count", counts}};
    if (priced) made["prices"] = to_json(*priced, *table);
    fmt::print("{}\n", made.dump(2));
    return kDone;
  }
  fmt::print("{}\n", machine.name);
  for (const supernode::Counted& one : all) {
    if (!priced) fmt::print("{:<22}{:>16}  {}\n", one.name, one.count, one.what);
  }
  if (priced) print_prices(*priced, *table);
  return kDone;
}

int reference(const Program&, const MachineOptions& options, const studies::Given&) {
  fmt::print("{}", hw::reference_page(options.load()));
  return kDone;
}

int statistics(const Program&, const MachineOptions& options, const studies::Given&) {
  fmt::print("{}", supernode::statistics_page(options.load()));
  return kDone;
}

}  // namespace

constinit const Command kMachineListCommand =
    make_command<NoOptions, list>("machine list", "", "the presets");
constinit const Command kMachineShowCommand = make_command<ShowOptions, show>(
    "machine show", "[PRESET|FILE]", "every value and where it comes from", "machine");
constinit const Command kMachineCheckCommand = make_command<MachineOptions, check>(
    "machine check", "[PRESET|FILE]", "whether a machine is whole and in range", "machine");
constinit const Command kMachineCountCommand = make_command<CountOptions, count>(
    "machine count", "[PRESET|FILE]", "how many racks, dies, switch chips, links it takes", "machine");
constinit const Command kMachineReferenceCommand = make_command<MachineOptions, reference>(
    "machine reference", "[PRESET|FILE]", "the page docs/machine.md", "machine");
constinit const Command kMachineStatisticsCommand = make_command<MachineOptions, statistics>(
    "machine statistics", "[PRESET|FILE]", "what is counted: the page docs/statistics.md", "machine");

}  // namespace cm384::cli
