#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/exit_code.h"
#include "hw/error.h"
#include "report/page.h"
#include "sim/output_file.h"
#include "studies/options.h"

namespace cm384::cli {

namespace po = boost::program_options;
namespace fs = std::filesystem;

int report_command(const Arguments& arguments) {
  po::options_description options("options of `report`", 110);
  options.add_options()("run", studies::required_text_option("DIR|FILE"),
                        "the folder of a run, or its result.json");
  options.add_options()("to", studies::required_text_option("FILE"),
                        "the page; default: report.html in the folder");
  options.add_options()("figures", studies::required_text_option("DIR"),
                        "write every figure there as SVG instead of the page; needs node");
  options.add_options()("png", po::bool_switch(), "and as PNG; needs rsvg-convert");
  add_help_option(options);
  const po::variables_map values = studies::parse_options(options, arguments, "run");
  if (values["help"].as<bool>()) {
    fmt::print("cm384 report DIR [options]: pictures and tables of a finished run, in one HTML page\n\n{}",
               help_of(options));
    return kDone;
  }
  if (values.count("run") == 0) throw InputError("report: names no run; allowed: the folder of a run");
  if (values["png"].as<bool>() && values.count("figures") == 0)
    throw InputError("--png: is of --figures DIR, which is not given");
  const std::string run = values["run"].as<std::string>();
  const Json data = report::page_data(run);
  if (values.count("figures") != 0) {
    const std::string folder = values["figures"].as<std::string>();
    for (const std::string& name : report::write_figures(data, folder, values["png"].as<bool>()))
      fmt::print("{}\n", (fs::path(folder) / name).string());
    return kDone;
  }
  fs::path page = (fs::is_directory(run) ? fs::path(run) : fs::path(run).parent_path()) / "report.html";
  if (values.count("to") != 0) page = values["to"].as<std::string>();
  write_file(page.string(), report::to_page(data));
  fmt::print("{}\n", page.string());
  return kDone;
}

}  // namespace cm384::cli
