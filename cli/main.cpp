#include "cli/commands.h"

int main(int count, char** words) {
  using namespace cm384;
  cli::watch_signals();
  return cli::run_command_line({studies::registry(), studies::predictors()}, {words + 1, words + count});
}
