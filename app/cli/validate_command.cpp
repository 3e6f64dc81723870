#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/ensemble_validation.h"
#include "app/cli/exit_code.h"
#include "app/cli/progress.h"
#include "base/text/standard_error.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

struct ValidateOptions {
  MachineOptions machine;
  SeedOption seed;
  RowOptions rows;
  std::string only;
  bool markdown = false, with_long = false;
  EnsembleOptions on_ensemble;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    MachineOptions::describe(self.machine, visit);
    SeedOption::describe(self.seed, visit);
    visit("only", self.only, studies::Form{"PREFIX"}, "only figures whose id begins with this, such as t1-");
    visit(
        "long", self.with_long,
        "also figures whose runs take half an hour; without it they are left out unless --only names one in "
        "full");
    RowOptions::describe(self.rows, visit);
    visit("markdown", self.markdown,
          "the page docs/validation.md instead of rows; with --ensemble the table of docs/uncertainty.md");
    EnsembleOptions::describe(self.on_ensemble, visit);
  }
};

// Who tunes a machine wants to see how far it is off; the figures are still those of another one.
void note_other_machine(const hw::Machine& machine) {
  const std::string published = studies::machine_of_figures(machine);
  if (machine.name == published && machine.overrides.empty()) return;
  print_error(
      "cm384: the published figures hold for the unchanged machine {}; this is {}, "
      "parameters changed: {}\n",
      published, machine.name, machine.overrides.size());
}

int validate(const Program& program, const ValidateOptions& options, const studies::Given&) {
  const hw::Machine machine = options.machine.load();
  note_other_machine(machine);
  if (options.on_ensemble.ensemble > 0)
    return validate_on_ensemble(program, options.on_ensemble, options.machine, options.rows, options.only,
                                options.with_long, options.markdown);
  studies::TablePrinter printer(studies::kValidationFields, options.rows.columns);
  std::vector<studies::Comparison> comparisons;
  {
    ConsoleProgress progress;
    comparisons = studies::compare_with_published({.machine = machine,
                                                   .seed = options.seed.value(),
                                                   .progress = progress,
                                                   .interrupted = interrupted()},
                                                  program.predictors, options.only, options.with_long);
  }
  const studies::Rows rows = studies::to_rows(comparisons);
  if (options.markdown) {
    fmt::print("{}", studies::to_markdown(comparisons, machine));
  } else if (options.rows.format == "json") {
    fmt::print("{}\n", studies::to_json(rows).dump(2));
  } else if (options.rows.format == "csv") {
    fmt::print("{}", studies::to_csv(rows));
  } else {
    for (const studies::Row& row : rows) fmt::print("{}", printer.add(row));
  }
  if (interrupted() != 0) return kInterrupted;
  return studies::holds(comparisons) ? kDone : kCheckFailed;
}

}  // namespace

constinit const Command kValidateCommand =
    make_command<ValidateOptions, validate>("validate", "", "predicted against published, figure by figure");

}  // namespace cm384::cli
