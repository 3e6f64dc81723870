#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "hw/error.h"
#include "report/page.h"
#include "sim/output_file.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;
using studies::Form;

struct Options {
  std::string run, to, figures;
  bool png = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("run", self.run, Form{"DIR|FILE"}, "the folder of a run, or its result.json");
    visit("to", self.to, Form{"FILE"}, "the page; default: report.html in the folder");
    visit("figures", self.figures, Form{"DIR"},
          "write every figure there as SVG instead of the page; requires node");
    visit("png", self.png, "and as PNG; requires rsvg-convert", studies::Needs{"figures", {}});
  }
};

int report_run(const Program& program, const Options& options, const studies::Given&) {
  if (options.run.empty()) throw InputError("report: no run given; allowed: the folder of a run");
  const Json data = report::page_data(options.run, program.studies);
  if (!options.figures.empty()) {
    for (const std::string& name : report::write_figures(data, options.figures, options.png))
      fmt::print("{}\n", (fs::path(options.figures) / name).string());
    return kDone;
  }
  fs::path page =
      (fs::is_directory(options.run) ? fs::path(options.run) : fs::path(options.run).parent_path()) /
      "report.html";
  if (!options.to.empty()) page = options.to;
  write_file(page.string(), report::to_page(data));
  fmt::print("{}\n", page.string());
  return kDone;
}

}  // namespace

constinit const Command kReportCommand = make_command<Options, report_run>(
    "report", "DIR", "pictures and tables of a finished run, in one HTML page", "run");

}  // namespace cm384::cli
