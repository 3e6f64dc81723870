#include "app/cli/study_settings.h"

#include <algorithm>

#include "app/cli/commands.h"
#include "lab/runs/run_process.h"
#include "system/machine/workers.h"

namespace cm384::cli {

int ManyRunsOptions::threads() const {
  const int cores = static_cast<int>(supernode::host_cores());
  return jobs == 0 ? 1 : std::max(1, cores / jobs);
}

runs::RunnerOptions ManyRunsOptions::runner(const std::string& store_path) const {
  return {.program = runs::kThisProgram,
          .scratch = store_path + ".under-way",
          .jobs = jobs == 0 ? static_cast<int>(supernode::host_cores()) : jobs,
          .memory_MB = static_cast<double>(memory.count) * 1e-6,
          .interrupted = &interrupted()};
}

Settings settings_of(const studies::OptionGroup& of_study, const studies::Given& given,
                     const MachineOptions& machine, const SeedOption& seed) {
  Settings settings;
  for (const hw::Parameter& option : of_study.options) {
    if (!given.contains(option.key)) continue;
    if (hw::is_repeated(option)) {
      for (const std::string& text : **std::get_if<studies::Texts*>(&option.value))
        settings.emplace_back(option.key, text);
    } else {
      settings.emplace_back(option.key, hw::value_text(option));
    }
  }
  if (given.contains("machine")) settings.emplace_back("machine", machine.machine);
  for (const std::string& assignment : machine.set) {
    const std::size_t equals = assignment.find('=');
    settings.emplace_back(assignment.substr(0, equals),
                          equals == std::string::npos ? "" : assignment.substr(equals + 1));
  }
  if (given.contains("seed")) settings.emplace_back("seed", std::to_string(seed.seed));
  return settings;
}

}  // namespace cm384::cli
