#include "lab/sweeps/slurm_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/text/error.h"
#include "lab/runs/host.h"
#include "lab/runs/run_process.h"

namespace cm384::sweeps {
namespace {

// Why the point is not the one that was submitted; empty: it is.
std::string changed(const runs::Job& job, Subject& subject) {
  try {
    subject.choose(job.study);
    if (subject.identity(job.settings) == job.key) return "";
    return "the program or an input file has changed since the point was submitted";
  } catch (const InputError& error) {
    return fmt::format("since the point was submitted: {}", error.what());
  }
}

}  // namespace

TaskReport run_task(const Spool& spool, const std::string& array, int task, Subject& subject,
                    const volatile std::sig_atomic_t& interrupted, int processes) {
  if (!std::filesystem::is_directory(spool.folder()))
    throw InputError(fmt::format(
        "{}: does not exist on {}; the sweep's folder has to be on a file system that all nodes share",
        spool.folder().string(), runs::host_name()));
  const auto points = spool.points(array, task);
  if (!points) return {};
  const std::vector<std::string> done = spool.done(array, task);
  for (const SpooledPoint& point : *points) {
    const runs::Job& job = point.job;
    if (std::ranges::find(done, job.key) != done.end() || spool.has_outcome(job.key)) continue;
    if (!spool.points(array, task)) return {};  // it has been given to another task
    std::optional<runs::Outcome> outcome;
    if (std::string why = changed(job, subject); !why.empty()) {
      outcome = runs::Outcome{runs::kNotRun, std::move(why), "", "", 0, 0};
    } else {
      runs::RunProcess process(
          runs::kThisProgram,
          spool.array(array) / fmt::format("point-{}-{}-{}", task, runs::host_name(), getpid()),
          subject.arguments(job.settings), runs::srun(processes));
      while (!(outcome = process.poll()) && interrupted == 0) std::this_thread::sleep_for(runs::kTick);
    }
    if (interrupted != 0) return {TaskEnd::interrupted, ""};
    if (outcome->exit_code == 128 + SIGKILL || outcome->exit_code == 128 + SIGTERM)
      return {TaskEnd::killed, fmt::format("{}: {}", fmt::join(job.arguments, " "), outcome->reason)};
    spool.write({job.key, job.study, fmt::format("{}", fmt::join(job.arguments, " ")), *outcome});
    spool.note_done(array, task, job.key);
  }
  return {};
}

}  // namespace cm384::sweeps
