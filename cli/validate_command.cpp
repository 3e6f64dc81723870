#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "cli/progress.h"
#include "studies/options.h"

namespace cm384::cli {

namespace po = boost::program_options;

int validate_command(std::span<const studies::Predictor> predictors, const Arguments& arguments) {
  po::options_description options("options of `validate`", 110);
  add_machine_options(options);
  add_seed_option(options);
  options.add_options()("only", studies::text_option("", "PREFIX"),
                        "figures whose id begins so, such as t1-");
  options.add_options()("format", studies::choice_option("table", {"table", "json", "csv"}), "of the rows");
  options.add_options()("markdown", po::bool_switch(), "the page docs/validation.md instead of rows");
  add_help_option(options);
  const po::variables_map values = studies::parse_options(options, arguments);
  if (values["help"].as<bool>()) {
    fmt::print("cm384 validate [options]: predicted against published, figure by figure\n\n{}",
               help_of(options));
    return kDone;
  }
  const hw::Machine machine = machine_of(values);
  std::vector<studies::Comparison> comparisons;
  {
    ConsoleProgress progress;
    comparisons = studies::compare_with_published(
        {.machine = machine, .seed = seed_of(values), .progress = progress, .interrupted = interrupted()},
        predictors, values["only"].as<std::string>());
  }
  const Json rows = studies::to_rows(comparisons);
  const std::string& format = values["format"].as<std::string>();
  if (values["markdown"].as<bool>()) {
    fmt::print("{}", studies::to_markdown(comparisons, machine));
  } else if (format == "json") {
    fmt::print("{}\n", rows.dump(2));
  } else {
    fmt::print("{}", format == "csv" ? studies::to_csv(rows) : studies::to_table(rows));
  }
  if (interrupted() != 0) return kInterrupted;
  return studies::holds(comparisons) ? kDone : kCheckFailed;
}

}  // namespace cm384::cli
