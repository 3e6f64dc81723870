#include "app/cli/commands.h"
#include "app/cli/ensemble_run.h"
#include "testbenches/hw/stand_in_studies.h"

int main(int count, char** words) {
  using namespace cm384;
  cli::watch_signals();
  return cli::run_command_line({.commands = cli::all_commands(),
                                .studies = studies::stand_in_studies(),
                                .on_ensemble = cli::run_on_ensemble},
                               {words + 1, words + count});
}
