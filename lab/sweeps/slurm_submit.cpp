// Which points go into which tasks, and how Slurm gets them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <tuple>
#include <utility>

#include "base/text/error.h"
#include "lab/sweeps/slurm_runner.h"
#include "workloads/frame/result_json.h"

namespace cm384::sweeps {
namespace {

std::string unique_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kJobPrefix, random(), random());
}

// sbatch may succeed later: the fault is the controller's, not the job's.
bool is_passing(const std::string& refusal) {
  static constexpr std::array<std::string_view, 7> kSigns{
      "Unable to contact", "timed out",  "temporarily",       "Connection refused",
      "not responding",    "Zero Bytes", "Transport endpoint"};
  return std::ranges::any_of(kSigns,
                             [&](std::string_view sign) { return refusal.find(sign) != std::string::npos; });
}

}  // namespace

std::string script_text(const std::string& program, const std::string& array_folder, int cpus,
                        int processes) {
  return fmt::format(
      "#!/bin/bash\n"
      "# Points of a sweep, a chunk for each task of the array.\n"
      "exec {} --task \"$SLURM_ARRAY_TASK_ID\" --cpus {}{}\n",
      studies::shell_command({program, "sweep", "task", array_folder}), cpus,
      processes == 1 ? "" : fmt::format(" --processes {}", processes));
}

bool SlurmRunner::is_unsent(const std::string& array) const {
  return std::ranges::find(unsent_, array, &Submission::name) != unsent_.end();
}

bool SlurmRunner::has_estimates() const {
  const bool given = options_.chunk > 0 && options_.memory_MB > 0 && !options_.limit.empty();
  return given || estimates_.known();
}

// Not before the points are done from which the size of the others is estimated.
bool SlurmRunner::is_ready_to_submit() const {
  if (ready_.empty() || !queue_.empty()) return false;
  if (!has_estimates()) return tasks_.empty();
  return std::ranges::none_of(tasks_, [&](const auto& task) { return task.first.first == probes_; });
}

void SlurmRunner::submit() {
  if (!has_estimates() && probes_.empty()) {
    submit_probes();
    return;
  }
  // Points that want the same go together.
  std::map<std::tuple<bool, double, int>, std::vector<Point>> groups;
  for (Point& point : std::exchange(ready_, {}))
    groups[{point.alone, point.memory_MB, point.minutes}].push_back(std::move(point));
  for (auto& [wants, points] : groups) {
    const auto [alone, memory_MB, minutes] = wants;
    const int chunk = alone ? 1 : options_.chunk > 0 ? options_.chunk : estimates_.chunk(points.size());
    submit(std::move(points), std::max(memory_MB, estimates_.memory_MB()),
           std::max(minutes, estimates_.minutes(chunk)), chunk);
  }
}

// The first, the last and the one between, each on its own, with what the partition gives by default.
void SlurmRunner::submit_probes() {
  std::vector<Point> probes;
  std::vector<std::size_t> places{0, ready_.size() / 2, ready_.size() - 1};
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    probes.insert(probes.begin(), std::move(ready_[*place]));
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(*place));
  }
  if (!ready_.empty()) say(fmt::format("{} points run first to estimate the others", probes.size()));
  const std::string key = probes.front().job.key;
  submit(std::move(probes), 0, 0, 1);
  probes_ = where_.at(key).first;
}

void SlurmRunner::submit(std::vector<Point> points, double memory_MB, int minutes, int chunk) {
  if (options_.memory_MB > 0) memory_MB = options_.memory_MB;
  const std::string limit = !options_.limit.empty() ? options_.limit
                            : minutes > 0           ? std::to_string(minutes)
                                                    : "";
  std::vector<std::vector<Point>> chunks;
  for (Point& point : points) {
    if (chunks.empty() || static_cast<int>(chunks.back().size()) == chunk) chunks.emplace_back();
    chunks.back().push_back(std::move(point));
  }
  const auto most = static_cast<std::size_t>(slurm_.most_tasks());
  for (std::size_t begin = 0; begin < chunks.size(); begin += most) {
    const std::size_t end = std::min(begin + most, chunks.size());
    const std::string name = unique_name();
    const std::string folder = spool_.array(name).string();
    std::vector<std::vector<SpooledPoint>> spooled;
    for (std::size_t i = begin; i < end; ++i) {
      const TaskName task_name{name, static_cast<int>(i - begin)};
      Task& task = tasks_[task_name];
      task.memory_MB = memory_MB;
      task.minutes = minutes;
      spooled.emplace_back();
      for (Point& point : chunks[i]) {
        const std::string key = point.job.key;
        spooled.back().push_back({point.job, point.losses});
        task.order.push_back(key);
        where_[key] = task_name;
        task.open.emplace(key, std::move(point));
      }
    }
    spool_.add(name, spooled, script_text(options_.program, folder, options_.cpus, options_.processes));
    send({.name = name,
          .script = folder + "/script",
          .log = folder + "/task-%a.log",
          .folder = std::filesystem::current_path().string(),
          .tasks = static_cast<int>(end - begin),
          .at_a_time = options_.at_a_time,
          .cpus = options_.cpus,
          .memory_MB = memory_MB,
          .limit = limit,
          .partition = options_.partition,
          .after = options_.after,
          .options = options_.sbatch});
  }
}

void SlurmRunner::send(const Submission& submission) {
  const std::string& name = submission.name;
  std::string refusal;
  std::optional<std::string> job = slurm_.submit(submission, refusal);
  if (!job) {
    // It may have been taken all the same.
    const auto states = slurm_.tasks();
    if (states) {
      const auto task = states->lower_bound({name, 0});
      if (task != states->end() && task->first.first == name) job = task->second.job;
    }
  }
  if (job) {
    spool_.note_job(name, *job);
    std::erase_if(unsent_, [&](const Submission& other) { return other.name == name; });
    std::size_t points = 0;
    for (int task = 0; task < submission.tasks; ++task) points += tasks_[{name, task}].open.size();
    std::string line = fmt::format("Slurm job {}: points: {}, tasks: {}", *job, points, submission.tasks);
    if (submission.memory_MB > 0) line += fmt::format(", each with {:.0f} MB", submission.memory_MB);
    if (!submission.limit.empty()) line += fmt::format(", time limit {}", submission.limit);
    say(line);
    return;
  }
  const bool others = std::ranges::any_of(
      tasks_, [&](const auto& task) { return task.first.first != name && !is_unsent(task.first.first); });
  if (is_passing(refusal) || others) {
    if (is_unsent(name)) return;
    say(fmt::format("Slurm accepts no job now; it is tried again: {}", refusal));
    unsent_.push_back(submission);
    return;
  }
  for (int task = 0; task < submission.tasks; ++task) spool_.revoke(name, task);
  spool_.tidy(name);
  throw InputError(fmt::format("--slurm: {}", refusal.empty() ? "sbatch failed" : refusal));
}

}  // namespace cm384::sweeps
