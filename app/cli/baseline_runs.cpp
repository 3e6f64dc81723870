#include "app/cli/baseline_runs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <list>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "base/text/error.h"
#include "lab/sweeps/point_process.h"
#include "system/machine/workers.h"
#include "workloads/frame/result_json.h"

namespace cm384::cli {
namespace {

using sweeps::PointProcess;

// How long a run that is asked to end may take for writing what it knows.
constexpr double kGrace_s = 10;

// The words of a run, and the host's threads that it may take.
std::vector<std::string> arguments_of(const report::BaselineRun& run, int threads) {
  std::vector<std::string> words = run.arguments;
  if (!run.time_limit.empty()) words.push_back("--time-limit=" + run.time_limit);
  const bool has_threads = std::ranges::any_of(
      words, [](const std::string& word) { return word == "--threads" || word.starts_with("--threads="); });
  if (threads > 0 && !has_threads) words.push_back(fmt::format("--threads={}", threads));
  return words;
}

struct Running {
  std::size_t index;
  std::string folder;
  double wall_limit_s;
  std::unique_ptr<PointProcess> process;
  bool asked_to_end = false, killed = false;
};

// What an earlier night left there is no part of this one. Anything else is not ours to remove: throws
// OutputError.
void clear_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  if (!std::filesystem::exists(folder, failure)) return;
  if (!std::filesystem::exists(folder / "errors", failure) ||
      !std::filesystem::exists(folder / "output", failure))
    throw OutputError(fmt::format("{}: is there already, and nothing that a run has left", folder.string()));
  std::filesystem::remove_all(folder, failure);
}

// Past its limit it is asked to end, then made to.
void hold_to_limit(Running& run) {
  const double age = run.process->age_s();
  if (age > run.wall_limit_s && !run.asked_to_end) {
    run.asked_to_end = true;
    run.process->interrupt();
  } else if (age > run.wall_limit_s + kGrace_s && !run.killed) {
    run.killed = true;
    run.process->kill_now();
  }
}

EndedRun ended_run(const Running& run, const sweeps::Outcome& outcome) {
  EndedRun ended;
  ended.end = {outcome.exit_code, outcome.reason, run.asked_to_end};
  ended.folder = run.folder;
  ended.wall_s = run.process->age_s();
  ended.peak_MB = outcome.peak_MB;
  ended.document = Json::parse(outcome.document, nullptr, false);
  if (ended.document.is_discarded()) ended.document = nullptr;
  return ended;
}

// What a program prints, its first line; nothing: it failed.
std::optional<std::string> output_of(const std::vector<std::string>& words) {
  std::FILE* pipe = popen((studies::shell_command(words) + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> block;
  for (std::size_t got = 0; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    text.append(block.data(), got);
  return pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

}  // namespace

BaselineRuns::BaselineRuns(std::filesystem::path folder, int jobs)
    : folder_(std::move(folder)), jobs_(jobs == 0 ? static_cast<int>(supernode::host_cores()) : jobs) {}

void BaselineRuns::run(const std::vector<report::BaselineRun>& runs,
                       const std::function<void(std::size_t, EndedRun)>& ended) const {
  const int cores = static_cast<int>(supernode::host_cores());
  const int threads = jobs_ == 1 ? 0 : std::max(1, cores / jobs_);
  std::list<Running> running;
  for (std::size_t next = 0; (next < runs.size() || !running.empty()) && interrupted() == 0;) {
    while (next < runs.size() && static_cast<int>(running.size()) < jobs_) {
      const std::filesystem::path folder = folder_ / runs[next].name;
      const std::size_t index = next++;
      try {
        clear_folder(folder);
        running.push_back(
            {index, folder.string(), runs[index].wall_limit_s,
             std::make_unique<PointProcess>(sweeps::kThisProgram, folder, arguments_of(runs[index], threads),
                                            std::vector<std::string>{}, PointProcess::Leaves::folder)});
      } catch (const OutputError& error) {
        EndedRun never;
        never.end = {kOutputFailed, error.what(), false};
        ended(index, std::move(never));
      }
    }
    bool any = false;
    for (auto run = running.begin(); run != running.end();) {
      if (const auto outcome = run->process->poll()) {
        ended(run->index, ended_run(*run, *outcome));
        run = running.erase(run);
        any = true;
      } else {
        hold_to_limit(*run);
        ++run;
      }
    }
    if (!any) usleep(5'000);
  }
}

std::string command_of(const report::BaselineRun& run) {
  std::vector<std::string> words = arguments_of(run, 0);
  words.insert(words.begin(), {"cm384", "run"});
  return studies::shell_command(words);
}

TestedCommit tested_commit(const std::string& folder) {
  TestedCommit tested;
  const auto head = output_of({"git", "-C", folder, "log", "-1", "--format=%h%n%s"});
  if (!head) return tested;
  const std::size_t end = head->find('\n');
  tested.commit = head->substr(0, end);
  if (end != std::string::npos) tested.subject = head->substr(end + 1, head->find('\n', end + 1) - end - 1);
  const auto changed = output_of({"git", "-C", folder, "status", "--porcelain", "--untracked-files=no"});
  if (changed && !changed->empty()) tested.commit += "+changes";
  return tested;
}

std::vector<std::string> commits_between(const std::string& folder, const std::string& old,
                                         const std::string& young) {
  const auto name = [](const std::string& commit) { return commit.substr(0, commit.find('+')); };
  std::vector<std::string> commits;
  if (old.empty() || young.empty() || old.starts_with('-') || young.starts_with('-')) return commits;
  const auto log = output_of({"git", "-C", folder, "log", "--max-count=200", "--format=%h %s",
                              fmt::format("{}..{}", name(old), name(young))});
  if (!log) return commits;
  for (std::size_t at = 0; at < log->size();) {
    const std::size_t end = std::min(log->find('\n', at), log->size());
    commits.push_back(log->substr(at, end - at));
    at = end + 1;
  }
  return commits;
}

}  // namespace cm384::cli
