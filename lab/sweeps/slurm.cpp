#include "lab/sweeps/slurm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/text/error.h"
#include "base/text/number.h"
#include "base/text/run_program.h"

namespace cm384::sweeps {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto value = hw::number_of<std::int64_t>(text);
  return value && *value >= 0 && *value <= 1'000'000 ? value : std::nullopt;
}

// "500M", "1.5G"; in MB of 10^6 B. 0: something else.
double memory_MB(const std::string& text) {
  std::istringstream field(text);
  double value = 0;
  char unit = 'M';
  field >> value >> unit;
  constexpr std::string_view kUnits = "KMGT";
  const auto at = kUnits.find(unit);
  if (at == std::string_view::npos) return 0;
  return value * std::pow(1024.0, static_cast<double>(at) + 1) * 1e-6;
}

}  // namespace

std::vector<std::string> sbatch_words(const Submission& submission) {
  // What a user may choose otherwise comes first: of two options with one name the later one counts.
  std::vector<std::string> words{"sbatch", "--no-requeue", "--ntasks=1",
                                 fmt::format("--cpus-per-task={}", submission.cpus)};
  if (submission.memory_MB > 0)
    words.push_back(fmt::format("--mem={:.0f}M", std::ceil(submission.memory_MB * 1e6 / 1048576)));
  if (!submission.limit.empty()) words.push_back("--time=" + submission.limit);
  if (!submission.partition.empty()) words.push_back("--partition=" + submission.partition);
  if (!submission.after.empty()) words.push_back("--dependency=afterok:" + submission.after);
  words.insert(words.end(), submission.options.begin(), submission.options.end());
  words.insert(words.end(), {"--parsable", "--job-name=" + submission.name,
                             fmt::format("--array=0-{}", submission.tasks - 1), "--output=" + submission.log,
                             "--open-mode=append", "--chdir=" + submission.folder, submission.script});
  if (submission.at_a_time > 0) words[words.size() - 5] += fmt::format("%{}", submission.at_a_time);
  return words;
}

bool TaskState::ended() const {
  static constexpr std::array<std::string_view, 10> kEnds{
      "BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
      "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::ranges::find(kEnds, state) != kEnds.end();
}

TaskStates parse_tasks(std::string_view text) {
  TaskStates states;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(kJobPrefix)) continue;
    const std::vector<std::string> fields = split(line, '|');
    if (fields.size() != 7) continue;
    TaskState state{.job = fields[1],
                    .state = fields[3],
                    .reason = fields[4] == "None" ? "" : fields[4],
                    .nodes = fields[5],
                    .memory_MB = memory_MB(fields[6])};
    // Of an array that was cancelled as a whole, "[2-6]" and "1,3-5%2" stand for several tasks.
    std::string tasks = fields[2].substr(0, fields[2].find('%'));
    std::erase_if(tasks, [](char c) { return c == '[' || c == ']'; });
    for (const std::string& part : split(tasks, ',')) {
      const std::size_t dash = part.find('-');
      const auto first = whole_number(part.substr(0, dash));
      const auto last = dash == std::string::npos ? first : whole_number(part.substr(dash + 1));
      if (!first || !last) continue;
      for (std::int64_t task = *first; task <= *last; ++task)
        states[{fields[0], static_cast<int>(task)}] = state;
    }
  }
  return states;
}

std::optional<std::int64_t> parse_limit(std::string_view text) {
  const std::size_t dash = text.find('-');
  std::int64_t days = 0;
  const bool has_days = dash != std::string_view::npos;
  if (has_days) {
    const auto number = whole_number(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (const std::string& part : split(text, ':')) {
    const auto number = whole_number(part);
    if (!number) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.size() > 3) return std::nullopt;
  // After days: hours, minutes, seconds. Without: minutes, seconds, or with all three hours first.
  if (!has_days && parts.size() < 3) parts.insert(parts.begin(), 0);
  parts.resize(3);
  return ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
}

Answer ask(const std::vector<std::string>& words) {
  auto end = run_program(words, {.output = Printed::kept, .errors = Printed::kept, .apart = true});
  if (!end) return {127, "", "cannot be started"};
  return {end->signal != 0 ? 128 + end->signal : end->exit_code, std::move(end->output),
          std::move(end->errors)};
}

Slurm::Slurm() {
  const Answer answer = ask({"scontrol", "show", "config"});
  if (answer.exit_code == 127)
    throw InputError(
        "--slurm: no Slurm on this host (scontrol is not found); without --slurm the points run here");
  if (answer.exit_code != 0)
    throw InputError(fmt::format("--slurm: Slurm does not answer: {}", last_line(answer.errors)));
  static constexpr std::string_view kKey = "MaxArraySize";
  most_tasks_ = 1000;
  for (const std::string& line : split(answer.output, '\n')) {
    if (!line.starts_with(kKey)) continue;
    const std::string value = line.substr(line.find('=') + 1);
    if (const auto number = whole_number(value.substr(std::min(value.find_first_not_of(' '), value.size()))))
      most_tasks_ = static_cast<int>(std::clamp<std::int64_t>(*number, 1, 10'000));
  }
}

std::optional<std::string> Slurm::submit(const Submission& submission, std::string& refusal) {
  const Answer answer = ask(sbatch_words(submission));
  if (answer.exit_code == 0) {
    const std::string line = first_line(answer.output);
    return line.substr(0, line.find(';'));  // "12;cluster"
  }
  refusal = last_line(answer.errors);
  return std::nullopt;
}

std::optional<TaskStates> Slurm::tasks() {
  std::vector<std::string> words{"squeue", "--noheader", "--array", "--states=all"};
  words.push_back(fmt::format("--user={}", getuid()));
  words.push_back(fmt::format("--format={}", kTaskFormat));
  const Answer answer = ask(words);
  if (answer.exit_code != 0) return std::nullopt;
  return parse_tasks(answer.output);
}

void Slurm::cancel(const std::string& name) {
  ask({"scancel", "--name=" + name});
}

}  // namespace cm384::sweeps
