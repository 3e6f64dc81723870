#include "app/cli/commands.h"
#include "testbenches/hw/stand_in_studies.h"

int main(int count, char** words) {
  using namespace cm384;
  cli::watch_signals();
  return cli::run_command_line({studies::stand_in_studies(), {}}, {words + 1, words + count});
}
