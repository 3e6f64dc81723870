#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "lab/report/comparison.h"
#include "lab/report/junit.h"
#include "lab/report/line_comparison.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

using report::ResultComparison;
using studies::Form;

struct CompareOptions {
  studies::Texts result;
  std::string tolerance, junit;
  bool same_conditions = false, lines = false;
  std::string sort = "rows", field, row, status = "all";
  int top = 0;
  std::string format = "table";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("result", self.result, Form{"FILE|DIR"}, "two of them: result.json files, or folders of runs");
    visit("tolerance", self.tolerance, Form{"FILE"},
          "how far a field may move (TOML, see docs/cli.md); default: not at all");
    visit("same-conditions", self.same_conditions, "also fail if options, machine, seed or inputs differ");
    visit("junit", self.junit, Form{"FILE"}, "write the verdicts as JUnit XML");
    visit("lines", self.lines,
          "of two profiles by source line (folders of --profile, or results with one): cycles per line, the "
          "largest change first, even where the source was edited");
    visit("sort", self.sort, studies::OneOf{{"rows", "change"}},
          "of what is shown: as in the results, or the largest change first");
    visit("field", self.field, Form{"PATTERN"}, "show only these fields, such as latency_us.*");
    visit("row", self.row, Form{"PATTERN"}, "show only these rows, such as *op=read*");
    visit("status", self.status, studies::OneOf{{"all", "past"}},
          "show everything that moved, or only what moved past its tolerance");
    visit("top", self.top, studies::Range{0, 1'000'000}, "show at most this many, the first ones; 0: all");
    visit("format", self.format, studies::OneOf{{"table", "json", "csv"}},
          "of what moved, on standard output");
  }
};

// Share by which a row of the list moved; what is no number, or came from 0, is more than any.
double size_of(const studies::Row& change) {
  const std::string* text = change["change"].text();
  return text == nullptr ? std::numeric_limits<double>::infinity()
                         : std::abs(std::strtod(text->c_str(), nullptr));
}

bool is_shown(const studies::Row& change, const CompareOptions& options) {
  const auto matches = [&](const std::string& pattern, const char* name) {
    const std::string* text = change[name].text();
    return pattern.empty() || report::fits(pattern, text == nullptr ? "" : *text);
  };
  return matches(options.field, "field") && matches(options.row, "row") &&
         (options.status == "all" || *change["status"].text() == options.status);
}

// What is left of the changes, in the order asked for.
studies::Rows shown_changes(const ResultComparison& comparison, const CompareOptions& options,
                            std::size_t& hidden) {
  studies::Rows rows = report::change_rows(comparison);
  const std::size_t all = rows.size();
  std::erase_if(rows, [&](const studies::Row& change) { return !is_shown(change, options); });
  if (options.sort == "change") std::ranges::stable_sort(rows, std::greater{}, size_of);
  if (options.top > 0 && rows.size() > static_cast<std::size_t>(options.top))
    rows.resize(static_cast<std::size_t>(options.top));
  hidden = all - rows.size();
  return rows;
}

std::string text_at(const Json& document, const char* pointer) {
  const Json value = document.value(Json::json_pointer(pointer), Json());
  return value.is_string() ? value.get<std::string>() : "";
}

// "before: a/result.json: cm384 1.2.0 8e5a85e, 2026-05-04T12:00:00Z": by which build a result is, where it
// says.
std::string line_of(const char* side, const std::string& path, const Json& document) {
  const std::string version = text_at(document, "/simulator/build/version"),
                    commit = text_at(document, "/simulator/build/commit"),
                    date = text_at(document, "/invocation/date");
  return fmt::format(
      "{} {}: {}{}{}\n", side, path,
      version.empty() ? "does not say which build wrote it" : fmt::format("cm384 {} {}", version, commit),
      date.empty() ? "" : ", ", date);
}

// A result of a build that did not write its conditions has those that its study declares now.
void declare_conditions(Json& document, std::span<const studies::Study> all) {
  if (document.contains("conditions")) return;
  const auto study = std::ranges::find(all, document["study"].get<std::string>(), &studies::Study::name);
  if (study != all.end()) document["conditions"] = studies::condition_names(study->fields);
}

void print_changes(const ResultComparison& comparison, const CompareOptions& options,
                   const std::string& builds) {
  std::size_t hidden = 0;
  const studies::Rows rows = shown_changes(comparison, options, hidden);
  if (options.format == "json") {
    fmt::print("{}\n", studies::to_json(rows).dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (options.format == "csv") {
    fmt::print("{}", studies::to_csv(rows));
  } else {
    fmt::print("{}{}", builds, studies::to_table(rows));
    if (hidden > 0) fmt::print("({} more that moved are not shown)\n", hidden);
    fmt::print("{}\n", report::summary_line(comparison));
  }
}

// --top and --format alone of what is shown have a say here.
int compare_by_line(const CompareOptions& options, const studies::Given& given) {
  for (const char* other : {"tolerance", "same-conditions", "junit", "sort", "field", "row", "status"}) {
    if (given.contains(other)) throw InputError(fmt::format("--{}: not together with --lines", other));
  }
  studies::Rows rows =
      report::compare_lines(report::read_lines(options.result[0]), report::read_lines(options.result[1]));
  const std::size_t all = rows.size();
  if (options.top > 0 && all > static_cast<std::size_t>(options.top))
    rows.resize(static_cast<std::size_t>(options.top));
  if (options.format == "json") {
    fmt::print("{}\n", studies::to_json(rows).dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (options.format == "csv") {
    fmt::print("{}", studies::to_csv(rows));
  } else {
    fmt::print("{}", studies::to_table(rows));
    if (rows.size() < all) fmt::print("({} more lines are not shown)\n", all - rows.size());
  }
  return kDone;
}

int compare(const Program& program, const CompareOptions& options, const studies::Given& given) {
  if (options.result.size() != 2) throw InputError("compare: takes two results: files or folders of runs");
  if (options.lines) return compare_by_line(options, given);
  report::Tolerances tolerances;
  if (!options.tolerance.empty()) tolerances = report::read_tolerances(options.tolerance);
  Json before = report::read_result(options.result[0]), after = report::read_result(options.result[1]);
  for (Json* document : {&before, &after}) declare_conditions(*document, program.studies);
  const ResultComparison comparison = report::compare_results(before, after, tolerances);
  print_changes(comparison, options,
                line_of("before:", options.result[0], before) + line_of("after: ", options.result[1], after));
  if (!options.junit.empty())
    write_file(options.junit, report::to_junit({{comparison.study, comparison, options.same_conditions}}));
  const bool held = comparison.within() && (!options.same_conditions || comparison.same_conditions());
  return held ? kDone : kCheckFailed;
}

}  // namespace

constinit const Command kCompareCommand = make_command<CompareOptions, compare>(
    "compare", "A B", "what moved from one result to another, and whether it may", "result", 2);

}  // namespace cm384::cli
