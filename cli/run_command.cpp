#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/study_run.h"
#include "hw/error.h"

namespace cm384::cli {
namespace {

using studies::Study;

std::string list_of(std::span<const Study> all) {
  std::string text =
      "cm384 run STUDY [options]; studies (`cm384 run STUDY --help` lists a study's options):\n";
  for (const Study& study : all) text += fmt::format("  {:<12}{}\n", study.name, study.summary);
  return text;
}

void print_result(const FinishedRun& run, const std::string& format) {
  if (format == "json") {
    fmt::print("{}\n", run.document.dump(2));
    return;
  }
  if (format == "csv") {
    fmt::print("{}", studies::to_csv(run.result.rows));
    return;
  }
  fmt::print("{}", studies::to_table(run.result.rows));
  for (const std::string& note : run.result.notes) fmt::print("{}\n", note);
}

}  // namespace

int run_command(std::span<const Study> all, const Arguments& arguments) {
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("{}", list_of(all));
    if (arguments.empty()) throw InputError("run: names no study");
    return kDone;
  }
  const StudyRun run(all, arguments);
  if (run.wants_help()) {
    fmt::print("{}", run.help());
    return kDone;
  }
  const FinishedRun finished = run.run();
  print_result(finished, run.format());
  const int code = exit_code_of(finished.result);
  if (code == kInterrupted) fmt::print(stderr, "cm384: interrupted; the rows are what is known so far\n");
  return code;
}

}  // namespace cm384::cli
