#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/report_points.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "lab/report/page.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;
using studies::Form;

struct ReportOptions {
  studies::Texts run;
  std::string to, figures;
  bool png = false, points = true;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("run", self.run, Form{"DIR|FILE"},
          "the folder of a run or of a sweep, or its result.json; several runs of one study are put side by "
          "side");
    visit("to", self.to, Form{"FILE"},
          "the page; default: report.html in the folder, of several runs comparison.html");
    visit("figures", self.figures, Form{"DIR"},
          "write every figure there as SVG instead of the page; requires node");
    visit("points", self.points,
          "of a sweep, write a page for each point as well, into the folder points beside the page");
    visit("png", self.png, "and as PNG; requires rsvg-convert", studies::Needs{"figures", {}});
  }
};

fs::path folder_of(const fs::path& run) {
  return fs::is_directory(run) ? run : run.parent_path();
}

fs::path page_of(const ReportOptions& options) {
  if (!options.to.empty()) return options.to;
  if (options.run.size() > 1) return "comparison.html";
  return folder_of(options.run.front()) / "report.html";
}

int report_run(const Program& program, const ReportOptions& options, const studies::Given& given) {
  if (options.run.empty()) throw InputError("report: no run given; allowed: folders of runs");
  Json data = report::page_data(options.run, program.studies);
  const bool sweep = is_sweep(data);
  if (given.contains("points") && !(sweep && options.figures.empty()))
    throw InputError("--points: has no effect here; allowed: with the page of a sweep");
  if (!options.figures.empty()) {
    const std::vector<std::string> names = report::write_figures(data, options.figures, options.png);
    for (const std::string& name : names) fmt::print("{}\n", (fs::path(options.figures) / name).string());
    if (names.empty())
      print_error("cm384: nothing in {} has a figure: none is written\n", options.run.front());
    return kDone;
  }
  const std::string page = page_of(options).string();
  if (sweep && options.points) write_point_pages(data, folder_of(options.run.front()), page, program.studies);
  write_file(page, report::to_page(data));
  fmt::print("{}\n", page);
  return kDone;
}

}  // namespace

constinit const Command kReportCommand = make_command<ReportOptions, report_run>(
    "report", "DIR..", "pictures and tables of a finished run, of several, or of a sweep, in one HTML page",
    "run", -1);

}  // namespace cm384::cli
