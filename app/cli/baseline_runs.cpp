#include "app/cli/baseline_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/commands.h"
#include "base/text/run_program.h"
#include "system/machine/workers.h"
#include "workloads/frame/result_json.h"

namespace cm384::cli {
namespace {

// The words of a run, and the host's threads that it may take.
std::vector<std::string> arguments_of(const report::BaselineRun& run, int threads) {
  std::vector<std::string> words = run.arguments;
  if (!run.time_limit.empty()) words.push_back("--time-limit=" + run.time_limit);
  const bool has_threads = std::ranges::any_of(
      words, [](const std::string& word) { return word == "--threads" || word.starts_with("--threads="); });
  if (threads > 0 && !has_threads) words.push_back(fmt::format("--threads={}", threads));
  return words;
}

// What a program prints; nothing: it failed.
std::optional<std::string> output_of(const std::vector<std::string>& words) {
  auto end = cm384::run_program(words, {.output = Printed::kept, .errors = Printed::dropped});
  return end && end->done() ? std::optional(std::move(end->output)) : std::nullopt;
}

}  // namespace

void run_baseline(const std::vector<report::BaselineRun>& baseline, const std::filesystem::path& folder,
                  int jobs, const std::function<void(std::size_t, runs::EndedRun)>& ended) {
  const int cores = static_cast<int>(supernode::host_cores());
  const int at_a_time = jobs == 0 ? cores : jobs;
  const int threads = at_a_time == 1 ? 0 : std::max(1, cores / at_a_time);
  std::vector<runs::LimitedRun> limited;
  for (const report::BaselineRun& run : baseline)
    limited.push_back({run.name, arguments_of(run, threads), run.wall_limit_s});
  runs::run_limited(limited, folder, at_a_time, interrupted(), ended);
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
