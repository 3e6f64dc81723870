#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "hw/error.h"
#include "report/comparison.h"
#include "report/junit.h"
#include "sim/output_file.h"
#include "studies/result_json.h"
#include "studies/table.h"

namespace cm384::cli {
namespace {

using report::ResultComparison;
using studies::Form;

struct CompareOptions {
  studies::Texts result;
  std::string tolerance, junit;
  bool same_conditions = false;
  std::string format = "table";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("result", self.result, Form{"FILE|DIR"}, "two of them: result.json files, or folders of runs");
    visit("tolerance", self.tolerance, Form{"FILE"},
          "how far a field may move (TOML, see docs/cli.md); default: not at all");
    visit("same-conditions", self.same_conditions, "also fail if options, machine, seed or inputs differ");
    visit("junit", self.junit, Form{"FILE"}, "write the verdicts as JUnit XML");
    visit("format", self.format, studies::OneOf{{"table", "json", "csv"}},
          "of what moved, on standard output");
  }
};

void print_changes(const ResultComparison& comparison, const std::string& format) {
  const studies::Rows rows = report::change_rows(comparison);
  if (format == "json") {
    fmt::print("{}\n", studies::to_json(rows).dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (format == "csv") {
    fmt::print("{}", studies::to_csv(rows));
  } else {
    fmt::print("{}{}\n", studies::to_table(rows), report::summary_line(comparison));
  }
}

int compare(const Program&, const CompareOptions& options, const studies::Given&) {
  if (options.result.size() != 2) throw InputError("compare: takes two results: files or folders of runs");
  report::Tolerances tolerances;
  if (!options.tolerance.empty()) tolerances = report::read_tolerances(options.tolerance);
  const ResultComparison comparison = report::compare_results(
      report::read_result(options.result[0]), report::read_result(options.result[1]), tolerances);
  print_changes(comparison, options.format);
  if (!options.junit.empty())
    write_file(options.junit, report::to_junit({{comparison.study, comparison, options.same_conditions}}));
  const bool held = comparison.within() && (!options.same_conditions || comparison.same_conditions());
  return held ? kDone : kCheckFailed;
}

}  // namespace

constinit const Command kCompareCommand = make_command<CompareOptions, compare>(
    "compare", "A B", "what moved from one result to another, and whether it may", "result", 2);

}  // namespace cm384::cli
