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
  studies::Texts run;
  std::string to, figures;
  bool png = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("run", self.run, Form{"DIR|FILE"},
          "the folder of a run, or its result.json; several of one study are put side by side");
    visit("to", self.to, Form{"FILE"},
          "the page; default: report.html in the folder, of several runs comparison.html");
    visit("figures", self.figures, Form{"DIR"},
          "write every figure there as SVG instead of the page; requires node");
    visit("png", self.png, "and as PNG; requires rsvg-convert", studies::Needs{"figures", {}});
  }
};

fs::path page_of(const Options& options) {
  if (!options.to.empty()) return options.to;
  if (options.run.size() > 1) return "comparison.html";
  const fs::path run = options.run.front();
  return (fs::is_directory(run) ? run : run.parent_path()) / "report.html";
}

int report_run(const Program& program, const Options& options, const studies::Given&) {
  if (options.run.empty()) throw InputError("report: no run given; allowed: folders of runs");
  const Json data = report::page_data(options.run, program.studies);
  if (!options.figures.empty()) {
    for (const std::string& name : report::write_figures(data, options.figures, options.png))
      fmt::print("{}\n", (fs::path(options.figures) / name).string());
    return kDone;
  }
  const std::string page = page_of(options).string();
  write_file(page, report::to_page(data));
  fmt::print("{}\n", page);
  return kDone;
}

}  // namespace

constinit const Command kReportCommand = make_command<Options, report_run>(
    "report", "DIR..", "pictures and tables of a finished run, or of several, in one HTML page", "run", -1);

}  // namespace cm384::cli
