// What becomes of tasks: which of them are gone, and what is done about their points.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/text/error.h"
#include "lab/runs/host.h"
#include "lab/sweeps/slurm_runner.h"

namespace cm384::sweeps {
namespace {

// Tasks with a point that may be lost before it is given up: by its own doing, or by that of nodes and
// scheduler.
constexpr int kLosses = 3, kLossesFromOutside = 10;
// Looks at the queue for which the outcome of a task that ended well may be on its way through a network file
// system.
constexpr double kSlurmWatchPatience = 3;
constexpr double kUntoldMemory_MB = 4000;  // of a task for which Slurm tells none

constexpr double kMemoryMargin = 1.5, kMemoryFloor_MB = 200;
constexpr double kTimeMargin = 3, kTimeFloor_s = 10;
constexpr double kTaskSeconds = 300;  // of work that a task is to have
constexpr std::size_t kTasks = 32;    // so many at least, where there are points for them

bool from_outside(const TaskState* state) {
  static constexpr std::array<std::string_view, 4> kStates{"BOOT_FAIL", "NODE_FAIL", "PREEMPTED", "REVOKED"};
  return state == nullptr || std::ranges::find(kStates, state->state) != kStates.end();
}

// "ended as NODE_FAIL (NodeDown) on n1"
std::string how(const TaskState* state) {
  if (state == nullptr) return "is no longer known to Slurm";
  std::string text = "ended as " + state->state;
  if (!state->reason.empty()) text += fmt::format(" ({})", state->reason);
  if (!state->nodes.empty()) text += " on " + state->nodes;
  return text;
}

}  // namespace

void Estimates::learn(const runs::Outcome& outcome) {
  if (outcome.document.empty()) return;
  ++points_;
  sum_s_ += outcome.wall_s;
  longest_s_ = std::max(longest_s_, outcome.wall_s);
  largest_MB_ = std::max(largest_MB_, outcome.peak_MB);
}

double Estimates::memory_MB() const {
  if (!known()) return 0;
  // In steps, so that points with nearly the same need get the same.
  return std::ceil((largest_MB_ * kMemoryMargin + kMemoryFloor_MB) / 100) * 100;
}

int Estimates::minutes(int points) const {
  if (!known()) return 0;
  return 1 + static_cast<int>(std::ceil((longest_s_ * kTimeMargin + kTimeFloor_s) * points / 60));
}

int Estimates::chunk(std::size_t points) const {
  if (!known()) return 1;
  const double by_time = kTaskSeconds / std::max(mean_s(), 0.01);
  const double by_tasks = std::ceil(static_cast<double>(points) / static_cast<double>(kTasks));
  return std::max(1, static_cast<int>(std::min(by_time, by_tasks)));
}

void SlurmRunner::poll() {
  due_.poll = runs::seconds() + options_.poll_s;
  for (const Submission& submission : std::vector<Submission>(unsent_)) send(submission);
  const auto states = slurm_.tasks();
  if (!states) {
    if (!silent_) say("Slurm does not answer; waiting for it");
    silent_ = true;
    return;
  }
  if (silent_) say("Slurm answers again");
  silent_ = false;
  std::vector<TaskName> names;
  for (const auto& [name, task] : tasks_) names.push_back(name);
  running_ = static_cast<std::size_t>(std::ranges::count_if(names, [&](const TaskName& name) {
    const auto state = states->find(name);
    return state != states->end() && state->second.state == "RUNNING";
  }));
  for (const TaskName& name : names) account(name, *states);
  report_lost_tasks();
  report_waiting_tasks(*states);
  drop_forgotten(*states);
}

void SlurmRunner::refuse_dependency() {
  std::set<std::string> arrays;
  for (const auto& [name, task] : tasks_) {
    arrays.insert(name.first);
    spool_.revoke(name.first, name.second);
  }
  for (const std::string& array : arrays) {
    slurm_.cancel(array);
    spool_.tidy(array);
  }
  throw InputError(
      fmt::format("--after={}: this job did not succeed, so Slurm runs nothing after it", options_.after));
}

void SlurmRunner::account(const TaskName& name, const TaskStates& states) {
  if (!tasks_.contains(name) || is_unsent(name.first)) return;
  Task& task = tasks_.at(name);
  const auto found = states.find(name);
  const TaskState* state = found == states.end() ? nullptr : &found->second;
  if (state != nullptr && !state->ended()) {
    if (state->reason == "DependencyNeverSatisfied") refuse_dependency();
    task.gone_since = 0;
    task.adopted = false;
    return;
  }
  // Its last outcomes may not be visible yet.
  if (task.gone_since == 0) {
    task.gone_since = runs::seconds();
    return;
  }
  const bool well = state != nullptr && state->state == "COMPLETED";
  if (well && runs::seconds() - task.gone_since < kSlurmWatchPatience * options_.poll_s) return;
  collect();
  if (tasks_.contains(name)) lose(name, state);
}

void SlurmRunner::lose(const TaskName& name, const TaskState* state) {
  const auto& [array, number] = name;
  Task task = std::move(tasks_.at(name));
  tasks_.erase(name);
  earlier_.erase(name);
  const std::string label =
      fmt::format("Slurm task {}_{}", state != nullptr ? state->job : spool_.job_of(array), number);
  std::string what = how(state);
  if (const std::string words = spool_.last_words(array, number); !words.empty()) what += ": " + words;
  const std::string why = fmt::format("{} {}", label, what);
  const bool progressed = task.open.size() < task.order.size();
  const std::string ended_as = state != nullptr ? state->state : "";
  const bool cancelled = ended_as == "CANCELLED";
  spool_.revoke(array, number);
  spool_.tidy(array);

  std::size_t again = 0;
  bool suspect = true;  // the first that has no outcome was under way
  for (const std::string& key : task.order) {
    const auto open = task.open.find(key);
    if (open == task.open.end()) continue;
    Point point = std::move(open->second);
    where_.erase(key);
    if (auto known = store_.find(key); known && !known->worth_another()) {  // by another process
      end(point, std::move(*known));
      continue;
    }
    const bool first = std::exchange(suspect, false);
    if (task.adopted && (state == nullptr || cancelled)) {
      // Ended while nobody watched.
    } else if (cancelled) {
      give_up(point, why);
      continue;
    } else if (first || !progressed) {
      ++point.losses;
      point.alone = first;
      const bool fixed = (state != nullptr && state->reason == "BadConstraints") ||
                         (ended_as == "OUT_OF_MEMORY" && options_.memory_MB > 0) ||
                         (ended_as == "TIMEOUT" && !options_.limit.empty() && !progressed);
      if (first && fixed) {
        give_up(point, why);
        continue;
      }
      if (point.losses >= (from_outside(state) ? kLossesFromOutside : kLosses)) {
        give_up(point, fmt::format("lost {} times, last: {}", point.losses, why));
        continue;
      }
      const double had_MB = std::max(task.memory_MB, state != nullptr ? state->memory_MB : 0);
      if (first && ended_as == "OUT_OF_MEMORY")
        point.memory_MB = 2 * (had_MB > 0 ? had_MB : kUntoldMemory_MB);
      if (first && ended_as == "TIMEOUT") point.minutes = 2 * std::max(task.minutes, estimates_.minutes(1));
    }
    ready_.push_back(std::move(point));
    ++again;
  }
  counts_.lost += again;
  Loss& loss = losses_[what];
  if (loss.tasks++ == 0) loss.first = label;
  loss.again += again;
}

// Tasks that were lost in the same way share one line.
void SlurmRunner::report_lost_tasks() {
  for (const auto& [what, loss] : std::exchange(losses_, {})) {
    std::string line = loss.first;
    if (loss.tasks > 1) line += fmt::format(" and {} more", loss.tasks - 1);
    line += " " + what;
    if (loss.again > 0) line += fmt::format("; points submitted again: {}", loss.again);
    say(line);
  }
}

// What keeps tasks from running, if it is not that others come first.
void SlurmRunner::report_waiting_tasks(const TaskStates& states) {
  static constexpr std::array<std::string_view, 6> kUsual{"",           "Priority",  "Resources",
                                                          "Dependency", "BeginTime", "JobArrayTaskLimit"};
  for (const auto& [name, task] : tasks_) {
    const auto state = states.find(name);
    if (state == states.end() || !state->second.pending()) continue;
    const std::string& reason = state->second.reason;
    if (std::ranges::find(kUsual, reason) != kUsual.end() || !reported_.insert(reason).second) continue;
    say(fmt::format("Slurm task {}_{} waits: {}", state->second.job, name.second, reason));
  }
}

// Tasks of earlier processes with points that are not of this sweep any more: what Slurm has forgotten, too,
// goes.
void SlurmRunner::drop_forgotten(const TaskStates& states) {
  for (auto task = earlier_.begin(); task != earlier_.end();) {
    const TaskName& name = task->first;
    const auto state = states.find(name);
    const bool alive = state != states.end() && !state->second.ended();
    if (alive || tasks_.contains(name) || spool_.job_of(name.first).empty() || !queue_.empty()) {
      ++task;
      continue;
    }
    spool_.revoke(name.first, name.second);
    spool_.tidy(name.first);
    task = earlier_.erase(task);
  }
}

}  // namespace cm384::sweeps
