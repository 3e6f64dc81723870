#include "app/cli/commands.h"
#include "app/cli/ensemble_run.h"
#include "base/engine/host_heap.h"

int main(int count, char** words) {
  using namespace cm384;
  cli::open_standard_streams();
  sim::use_huge_pages();
  cli::watch_signals();
  return cli::run_command_line({.commands = cli::all_commands(),
                                .studies = studies::registry(),
                                .predictors = studies::predictors(),
                                .groups = studies::study_groups(),
                                .on_ensemble = cli::run_on_ensemble},
                               {words + 1, words + count});
}
