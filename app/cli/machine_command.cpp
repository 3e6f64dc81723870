#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "base/text/json.h"
#include "system/machine/inventory.h"
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

// Builds its fabric and one of its dies: what does not fit together is found here as a run would find it.
void build_fabric(const hw::Machine& machine) {
  supernode::SupernodeOptions one;
  one.dies = {0};
  if (machine.topology.sockets() > 0) one.sockets = {0};
  const supernode::Supernode built(machine, one);
}

int check(const Program&, const MachineOptions& options, const studies::Given&) {
  const hw::Machine machine = options.load();
  build_fabric(machine);
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

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    MachineOptions::describe(self.machine, visit);
    visit("format", self.json, studies::Either{"table", "json"}, "of what is shown");
  }
};

int count(const Program&, const CountOptions& options, const studies::Given&) {
  const hw::Machine machine = options.machine.load();
  const std::vector<supernode::Counted> all = supernode::inventory(machine);
  if (options.json) {
    Json counts = Json::object();
    for (const supernode::Counted& one : all) counts[one.name] = one.count;
    fmt::print("{}\n", Json{{"machine", machine.name}, {"count", counts}}.dump(2));
    return kDone;
  }
  fmt::print("{}\n", machine.name);
  for (const supernode::Counted& one : all) fmt::print("{:<22}{:>16}  {}\n", one.name, one.count, one.what);
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
    "machine count", "[PRESET|FILE]", "how many dies, cores, switch chips, links it takes", "machine");
constinit const Command kMachineReferenceCommand = make_command<MachineOptions, reference>(
    "machine reference", "[PRESET|FILE]", "the page docs/machine.md", "machine");
constinit const Command kMachineStatisticsCommand = make_command<MachineOptions, statistics>(
    "machine statistics", "[PRESET|FILE]", "what is counted: the page docs/statistics.md", "machine");

}  // namespace cm384::cli
