#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "hw/error.h"
#include "hw/nearest_name.h"
#include "studies/options.h"
#include "supernode/statistics.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kUsage =
    "cm384 machine list                                   the presets\n"
    "cm384 machine show  [PRESET|FILE] [--set KEY=VALUE]  every value and where it comes from (TOML; "
    "--format json)\n"
    "cm384 machine check [PRESET|FILE] [--set KEY=VALUE]  whether a machine is whole and in range\n"
    "cm384 machine reference                              the page docs/machine.md\n"
    "cm384 machine statistics                             what is counted: the page docs/statistics.md\n";

void list() {
  for (const std::string& name : hw::preset_names()) {
    fmt::print("{:<22}{}{}\n", name, hw::load_machine(name).description,
               name == hw::kDefaultMachine ? " (default)" : "");
  }
}

}  // namespace

int machine_command(const Arguments& arguments) {
  const std::vector<std::string> actions = {"list", "show", "check", "reference", "statistics"};
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("{}", kUsage);
    if (arguments.empty())
      throw InputError("machine: says not what to do; allowed: list, show, check, reference, statistics");
    return kDone;
  }
  const std::string& action = arguments.front();
  if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
    throw InputError(fmt::format("machine {}: unknown{}; allowed: {}", action,
                                 hw::suggestion(action, actions), fmt::join(actions, ", ")));
  }
  po::options_description options("options of `machine`", 110);
  add_machine_options(options);
  options.add_options()("format", studies::choice_option("toml", {"toml", "json"}), "of `machine show`");
  add_help_option(options);
  const po::variables_map values =
      studies::parse_options(options, Arguments(arguments.begin() + 1, arguments.end()), "machine");
  if (values["help"].as<bool>()) {
    fmt::print("{}\n{}", kUsage, help_of(options));
    return kDone;
  }
  if (action == "list") {
    list();
    return kDone;
  }
  const hw::Machine machine = machine_of(values);
  if (action == "show") {
    fmt::print("{}",
               values["format"].as<std::string>() == "json" ? hw::to_json(machine) : hw::to_toml(machine));
  } else if (action == "reference") {
    fmt::print("{}", hw::reference_page(machine));
  } else if (action == "statistics") {
    fmt::print("{}", supernode::statistics_page(machine));
  } else {
    fmt::print("{}: good, {} parameters, {} of them changed\n", machine.name, machine.provenance.size(),
               machine.overrides.size());
  }
  return kDone;
}

}  // namespace cm384::cli
