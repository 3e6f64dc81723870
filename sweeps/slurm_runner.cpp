#include "sweeps/slurm_runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "hw/error.h"
#include "studies/result_json.h"

namespace cm384::sweeps {
namespace {

constexpr double kBeat = 10, kCollect = 0.5,
                 kLook = 0.5;  // s between heartbeats, looks at outcomes, at other processes
constexpr auto kTick = std::chrono::milliseconds(20);

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

std::string script_text(const std::string& program, const std::string& array_folder, int cpus) {
  return fmt::format(
      "#!/bin/bash\n"
      "# Points of a sweep, a chunk for each task of the array.\n"
      "exec {} --task \"$SLURM_ARRAY_TASK_ID\" --cpus {}\n",
      studies::shell_command({program, "sweep", "task", array_folder}), cpus);
}

SlurmRunner::SlurmRunner(Store& store, Slurm slurm, SlurmOptions options)
    : store_(store), options_(std::move(options)), spool_(options_.folder), slurm_(slurm) {
  spool_.open();
  adopt();
  collect();
}

SlurmRunner::~SlurmRunner() {
  try {
    for (const Submission& submission : unsent_) {
      for (const int task : spool_.tasks(submission.name)) spool_.revoke(submission.name, task);
      spool_.tidy(submission.name);
    }
    for (const auto& [key, task] : where_) store_.release(key);
    for (const Point& point : ready_) store_.release(point.job.key);
    for (const auto& [name, task] : earlier_) {
      if (!is_in_store(task)) continue;
      spool_.revoke(name.first, name.second);
      spool_.tidy(name.first);
    }
  } catch (const std::exception&) {
    // The claims are void as soon as this process has ended.
  }
  spool_.close();
}

void SlurmRunner::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

std::vector<std::string> SlurmRunner::jobs() const {
  std::vector<std::string> jobs;
  for (const auto& [name, task] : tasks_) {
    const std::string job = spool_.job_of(name.first);
    if (!job.empty() && std::ranges::find(jobs, job) == jobs.end()) jobs.push_back(job);
  }
  return jobs;
}

void SlurmRunner::add(std::size_t ticket, Job job) {
  queue_.push_back({.ticket = ticket, .job = std::move(job)});
}

// What earlier processes have submitted. Their outcomes are read afterwards: what a task has marked as done
// is then in the store.
void SlurmRunner::adopt() {
  for (const std::string& array : spool_.arrays()) {
    for (const int number : spool_.tasks(array)) {
      const auto points = spool_.points(array, number);
      if (!points) continue;
      const TaskName name{array, number};
      const std::vector<std::string> done = spool_.done(array, number);
      Task& task = earlier_[name];
      task.adopted = true;
      for (const SpooledPoint& point : *points) {
        task.order.push_back(point.job.key);
        if (std::ranges::find(done, point.job.key) == done.end())
          known_[point.job.key] = {name, point.losses};
      }
    }
  }
}

// Moves outcomes into the store.
void SlurmRunner::collect() {
  next_collect_ = seconds() + std::min(kCollect, options_.poll_s);
  for (const std::string& key : spool_.outcomes()) {
    auto spooled = spool_.read(key);
    if (!spooled) continue;
    const auto known = store_.find(key);
    if (!known || known->worth_another())
      store_.put(key, spooled->study, spooled->arguments, spooled->outcome);
    spool_.remove(key);
    if (const auto at = where_.find(key); at != where_.end()) {
      const TaskName name = at->second;
      Task& task = tasks_.at(name);
      end(task.open.at(key), std::move(spooled->outcome));
      task.open.erase(key);
      where_.erase(at);
      if (task.open.empty()) close(name);
      continue;
    }
    // Of a task that was taken for lost.
    const auto late = std::ranges::find(ready_, key, [](const Point& point) { return point.job.key; });
    if (late == ready_.end()) continue;
    end(*late, std::move(spooled->outcome));
    ready_.erase(late);
  }
}

void SlurmRunner::end(const Point& point, Outcome outcome) {
  estimates_.learn(outcome);
  ++counts_.run;
  if (outcome.failed()) ++counts_.failed;
  ended_.push_back({point.ticket, std::move(outcome)});
}

void SlurmRunner::give_up(const Point& point, std::string reason) {
  Outcome outcome{kNotRun, std::move(reason), "", "", 0, 0};
  store_.put(point.job.key, point.job.study, fmt::format("{}", fmt::join(point.job.arguments, " ")), outcome);
  end(point, std::move(outcome));
}

bool SlurmRunner::is_in_store(const Task& task) {
  return std::ranges::all_of(task.order,
                             [&](const std::string& key) { return store_.find(key).has_value(); });
}

// None of its points is open here; another process may still wait for one.
void SlurmRunner::close(const TaskName& name) {
  const bool of_others = earlier_.contains(name) && !is_in_store(earlier_.at(name));
  tasks_.erase(name);
  if (of_others) return;
  earlier_.erase(name);
  spool_.revoke(name.first, name.second);
  spool_.tidy(name.first);
}

void SlurmRunner::look(Point point) {
  const std::string key = point.job.key;
  if (auto known = store_.find(key); known && !(options_.retry && known->worth_another())) {
    ++counts_.stored;
    if (known->failed()) ++counts_.failed;
    estimates_.learn(*known);
    ended_.push_back({point.ticket, std::move(known)});
    return;
  }
  switch (store_.claim(key, options_.retry)) {
    case Store::Claim::finished:
      queue_.push_front(std::move(point));
      return;
    case Store::Claim::busy:
      elsewhere_.push_back(std::move(point));
      return;
    case Store::Claim::taken:
      break;
  }
  const auto known = known_.find(key);
  if (known == known_.end() || !earlier_.contains(known->second.task)) {
    ready_.push_back(std::move(point));
    return;
  }
  point.losses = known->second.losses;
  const TaskName name = known->second.task;
  known_.erase(known);
  tasks_.try_emplace(name, earlier_.at(name)).first->second.open.emplace(key, std::move(point));
  where_[key] = name;
}

bool SlurmRunner::is_unsent(const std::string& array) const {
  return std::ranges::find(unsent_, array, &Submission::name) != unsent_.end();
}

bool SlurmRunner::has_estimates() const {
  const bool given = options_.chunk > 0 && options_.memory_MB > 0 && !options_.limit.empty();
  return given || estimates_.known();
}

// Not before the points are known from which to tell what the others take.
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
  if (!ready_.empty()) say(fmt::format("{} points tell what the others take", probes.size()));
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
    spool_.add(name, spooled, script_text(options_.program, folder, options_.cpus));
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
    say(fmt::format("Slurm takes no job now, which is tried again: {}", refusal));
    unsent_.push_back(submission);
    return;
  }
  for (int task = 0; task < submission.tasks; ++task) spool_.revoke(name, task);
  spool_.tidy(name);
  throw InputError(fmt::format("--slurm: {}", refusal.empty() ? "sbatch failed" : refusal));
}

void SlurmRunner::look_elsewhere() {
  if (elsewhere_.empty() || seconds() < next_look_) return;
  next_look_ = seconds() + kLook;
  std::vector<Point> still;
  for (Point& point : elsewhere_) {
    if (store_.busy(point.job.key)) {
      still.push_back(std::move(point));
    } else {
      queue_.push_back(std::move(point));
    }
  }
  elsewhere_ = std::move(still);
}

std::optional<Executor::Finished> SlurmRunner::next(const std::function<void()>& idle) {
  while (options_.interrupted == nullptr || *options_.interrupted == 0) {
    if (seconds() >= next_beat_) {
      store_.beat();
      next_beat_ = seconds() + kBeat;
    }
    if (seconds() >= next_collect_) collect();
    while (ended_.empty() && !queue_.empty()) {
      Point point = std::move(queue_.front());
      queue_.pop_front();
      look(std::move(point));
    }
    if (!ended_.empty()) {
      Finished finished = std::move(ended_.front());
      ended_.pop_front();
      return finished;
    }
    if (is_ready_to_submit()) submit();
    if (seconds() >= next_poll_) poll();
    look_elsewhere();
    if (queue_.empty() && elsewhere_.empty() && ready_.empty() && tasks_.empty() && ended_.empty())
      return std::nullopt;
    if (idle) idle();
    std::this_thread::sleep_for(kTick);
  }
  return std::nullopt;
}

}  // namespace cm384::sweeps
