#include "app/cli/commands.h"
#include "base/engine/host_heap.h"

int main(int count, char** words) {
  using namespace cm384;
  cli::open_standard_streams();
  sim::use_huge_pages();
  cli::watch_signals();
  return cli::run_command_line({studies::registry(), studies::predictors(), {}, studies::study_groups()},
                               {words + 1, words + count});
}
