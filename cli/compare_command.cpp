#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "hw/error.h"
#include "report/comparison.h"
#include "report/junit.h"
#include "sim/output_file.h"
#include "studies/options.h"

namespace cm384::cli {
namespace {

namespace po = boost::program_options;
using report::ResultComparison;

void add_options(po::options_description& options) {
  options.add_options()("result", po::value<std::vector<std::string>>()->value_name("FILE|DIR"),
                        "two of them: result.json files, or folders of runs");
  options.add_options()("tolerance", studies::required_text_option("FILE"),
                        "how far a field may move (TOML, see docs); without it, nothing may");
  options.add_options()("same-conditions", po::bool_switch(),
                        "fail where options, machine, seed or inputs differ, too");
  options.add_options()("junit", studies::required_text_option("FILE"), "write the verdicts as JUnit XML");
  options.add_options()("format", studies::choice_option("table", {"table", "json", "csv"}),
                        "of what moved, on standard output");
  add_help_option(options);
}

void print_changes(const ResultComparison& comparison, const std::string& format) {
  const Json rows = report::change_rows(comparison);
  if (format == "json") {
    fmt::print("{}\n", rows.dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (format == "csv") {
    fmt::print("{}", studies::to_csv(rows));
  } else {
    fmt::print("{}{}\n", studies::to_table(rows), report::summary_line(comparison));
  }
}

}  // namespace

void write_junit(const std::string& path, const std::vector<report::JunitSuite>& suites) {
  write_file(path, report::to_junit(suites));
}

int compare_command(const Arguments& arguments) {
  po::options_description options("options of `compare`", 110);
  add_options(options);
  const po::variables_map values = studies::parse_options(options, arguments, "result", 2);
  if (values["help"].as<bool>()) {
    fmt::print("cm384 compare A B [options]: what moved from one result to another\n\n{}", help_of(options));
    return kDone;
  }
  const auto paths =
      values.count("result") != 0 ? values["result"].as<std::vector<std::string>>() : Arguments();
  if (paths.size() != 2) throw InputError("compare: takes two results: files or folders of runs");
  report::Tolerances tolerances;
  if (values.count("tolerance") != 0)
    tolerances = report::read_tolerances(values["tolerance"].as<std::string>());
  const bool same_conditions = values["same-conditions"].as<bool>();
  const ResultComparison comparison =
      report::compare_results(report::read_result(paths[0]), report::read_result(paths[1]), tolerances);
  if (values.count("junit") != 0)
    write_junit(values["junit"].as<std::string>(), {{comparison.study, comparison, same_conditions}});
  print_changes(comparison, values["format"].as<std::string>());
  const bool held = comparison.within() && (!same_conditions || comparison.same_conditions());
  return held ? kDone : kCheckFailed;
}

}  // namespace cm384::cli
