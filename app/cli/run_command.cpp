#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/help.h"
#include "app/cli/study_run.h"
#include "base/engine/peers.h"
#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

// What is left to print once the rows of a table have been.
void print_rest(const StudyRun& run, const FinishedRun& finished) {
  if (run.rows().format == "json") {
    print_now(finished.document.dump(2) + "\n");
  } else if (run.rows().format == "csv") {
    print_now(studies::to_csv(finished.result.rows));
  } else if (!run.hung()) {
    for (const std::string& note : finished.result.notes) print_now(note + "\n");
    for (const observe::Explanation& why : finished.explanations) print_now("\n" + why.text());
    for (const std::string& lines : finished.lines) print_now("\n" + lines);
    for (const std::string& energy : finished.energies) print_now("\n" + energy);
  }
}

int run(const Command&, const Program& program, const Arguments& arguments) {
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("{}", list_of_studies(program));
    if (arguments.empty()) throw InputError("run: no study given");
    return kDone;
  }
  StudyRun run(program.studies, arguments);
  if (run.wants_help()) {
    fmt::print("{}", help_of_study(run.study()));
    return kDone;
  }
  if (run.line().run.on_ensemble.ensemble > 0 && !sim::peers().several()) {
    if (program.on_ensemble == nullptr)
      throw InputError("--ensemble: this program runs a machine once; allowed: the whole cm384");
    return program.on_ensemble(program, run, arguments);
  }
  const bool table = run.rows().format == "table";
  studies::TablePrinter printer(run.study().fields, run.rows().columns);
  const FinishedRun finished = run.run([&](const studies::Row& row) {
    if (table) print_now(printer.add(row));
  });
  print_rest(run, finished);
  run.write(finished);
  run.rethrow();
  const int code = exit_code_of(finished.result);
  if (code == kInterrupted) print_error("cm384: interrupted; the rows are what is known so far\n");
  return code;
}

std::vector<hw::Parameter> no_options() {
  return {};
}

}  // namespace

constinit const Command kRunCommand{"run", "STUDY", "run a study of the machine", "", 0, no_options, run};

}  // namespace cm384::cli
