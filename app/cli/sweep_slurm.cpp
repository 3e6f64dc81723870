#include "app/cli/sweep_slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options/parsers.hpp>
#include <csignal>
#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/sweep_subject.h"
#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "lab/sweeps/slurm_task.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;
using studies::Form;
using studies::Range;

std::vector<std::string> checked_words(const std::string& text) {
  // What the sweep sets itself, has options of its own for, or could not work with.
  static constexpr std::array<std::string_view, 25> kTaken{
      "--array",    "-a",         "--chdir",     "-D",           "--cpus-per-task",
      "-c",         "--clusters", "-M",          "--dependency", "-d",
      "--job-name", "-J",         "--mem",       "--open-mode",  "--output",
      "-o",         "--parsable", "--partition", "-p",           "--test-only",
      "--time",     "-t",         "--wait",      "-W",           "--wrap"};
  std::vector<std::string> words = boost::program_options::split_unix(text);
  for (const std::string& word : words) {
    for (const std::string_view ours : kTaken) {
      const bool is_long = ours.starts_with("--");
      const bool same = is_long ? word.substr(0, word.find('=')) == ours
                                : word.starts_with(ours) && !word.starts_with("--");
      if (same)
        throw InputError(
            fmt::format("--slurm-options: '{}' is not allowed here; `cm384 sweep --help` lists the options "
                        "to use instead",
                        word));
    }
  }
  return words;
}

struct TaskOptions {
  std::string array;
  int task = 0, cpus = 1, processes = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("array", self.array, Form{"DIR"}, "folder of a job array, which `cm384 sweep --slurm` has made");
    visit("task", self.task, Range{0, 1'000'000}, "of the array");
    visit("cpus", self.cpus, Range{1, 1024}, "threads of its runs");
    visit("processes", self.processes, Range{1, 1024}, "of MPI, that share them in each run");
  }
};

int run_task(const Program& program, const TaskOptions& options, const studies::Given&) {
  if (options.array.empty()) throw InputError("sweep task: no folder given; allowed: that of a job array");
  const fs::path array = fs::absolute(options.array).lexically_normal();
  StudySubject subject(program.studies, std::max(1, options.cpus / options.processes));
  const sweeps::TaskReport report =
      sweeps::run_task(sweeps::Spool(array.parent_path()), array.filename().string(), options.task, subject,
                       interrupted(), options.processes);
  if (report.end == sweeps::TaskEnd::done) return kDone;
  if (report.end == sweeps::TaskEnd::interrupted) return kInterrupted;
  print_error("cm384: {}\n", report.reason);
  return 128 + SIGKILL;
}

}  // namespace

sweeps::SlurmOptions SlurmSweepOptions::checked() const {
  if (!time_limit.empty() && time_limit != "UNLIMITED" && !sweeps::parse_limit(time_limit))
    throw InputError(fmt::format(
        "--time-limit: '{}'; allowed: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, UNLIMITED", time_limit));
  if (after.find_first_not_of("0123456789:") != std::string::npos)
    throw InputError(fmt::format("--after: '{}'; allowed: numbers of jobs, such as 17 or 17:18", after));
  return {.partition = partition,
          .sbatch = checked_words(slurm_options),
          .after = after,
          .chunk = chunk,
          .cpus = cpus,
          .limit = time_limit,
          .poll_s = static_cast<double>(poll.ps) * 1e-12};
}

std::string spool_folder(const std::string& sweep_folder) {
  return (fs::absolute(sweep_folder) / "slurm").lexically_normal().string();
}

constinit const Command kSweepTaskCommand = make_command<TaskOptions, run_task>(
    "sweep task", "DIR", "what a task of `sweep --slurm` runs on its node", "array");

}  // namespace cm384::cli
