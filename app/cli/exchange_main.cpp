// The exchange of a Mixture of Experts alone: the first that `./dev demo` builds and runs.
#include <array>

#include "app/cli/commands.h"
#include "base/engine/host_heap.h"
#include "workloads/studies.h"

int main(int count, char** words) {
  using namespace cm384;
  cli::open_standard_streams();
  sim::use_huge_pages();
  cli::watch_signals();
  static constexpr std::array kCommands{&cli::kRunCommand};
  static constexpr std::array kGroups{cli::CommandGroup{"Run the machine", kCommands}};
  static const std::array kStudies{studies::kDispatchStudy, studies::kCombineStudy};
  return cli::run_command_line({.commands = kGroups, .studies = kStudies}, {words + 1, words + count});
}
