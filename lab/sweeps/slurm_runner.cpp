#include "lab/sweeps/slurm_runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text/error.h"
#include "lab/runs/host.h"

namespace cm384::sweeps {
namespace {

constexpr double kCollect_s = 0.5;      // between looks at outcomes
constexpr std::size_t kTogether = 200;  // points in one transaction
}  // namespace

SlurmRunner::SlurmRunner(runs::Store& store, Slurm slurm, SlurmOptions options)
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
  // As numbers.
  std::ranges::sort(jobs, {}, [](const std::string& job) { return std::pair(job.size(), job); });
  return jobs;
}

void SlurmRunner::add(std::size_t ticket, runs::Job job) {
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

// Moves outcomes into the store: a file goes when the store has what it holds.
void SlurmRunner::collect() {
  due_.collect = runs::seconds() + std::min(kCollect_s, options_.poll_s);
  const std::vector<std::string> keys = spool_.outcomes();
  for (std::size_t begin = 0; begin < keys.size(); begin += kTogether) {
    std::vector<SpooledOutcome> outcomes;
    for (std::size_t i = begin; i < std::min(begin + kTogether, keys.size()); ++i) {
      if (auto spooled = spool_.read(keys[i])) outcomes.push_back(std::move(*spooled));
    }
    store_.together([&] {
      for (const SpooledOutcome& spooled : outcomes) {
        const auto known = store_.find(spooled.key);
        if (!known || known->worth_another())
          store_.put(spooled.key, spooled.study, spooled.arguments, spooled.outcome);
      }
    });
    for (SpooledOutcome& spooled : outcomes) {
      spool_.remove(spooled.key);
      record(std::move(spooled));
    }
  }
}

void SlurmRunner::record(SpooledOutcome spooled) {
  const std::string& key = spooled.key;
  if (const auto at = where_.find(key); at != where_.end()) {
    const TaskName name = at->second;
    Task& task = tasks_.at(name);
    end(task.open.at(key), std::move(spooled.outcome));
    task.open.erase(key);
    where_.erase(at);
    if (task.open.empty()) close(name);
    return;
  }
  // Of a task that was taken for lost.
  const auto late = std::ranges::find(ready_, key, [](const Point& point) { return point.job.key; });
  if (late == ready_.end()) return;
  end(*late, std::move(spooled.outcome));
  ready_.erase(late);
}

void SlurmRunner::end(const Point& point, runs::Outcome outcome) {
  estimates_.learn(outcome);
  ++counts_.run;
  if (outcome.failed()) ++counts_.failed;
  ended_.push_back({point.ticket, std::move(outcome)});
}

void SlurmRunner::give_up(const Point& point, std::string reason) {
  runs::Outcome outcome{runs::kNotRun, std::move(reason), "", "", 0, 0};
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

// Through the next points of the queue.
void SlurmRunner::look_up_next() {
  store_.together([&] {
    for (std::size_t i = 0; i < kTogether && !queue_.empty(); ++i) {
      Point point = std::move(queue_.front());
      queue_.pop_front();
      look_up(std::move(point));
    }
  });
}

void SlurmRunner::look_up(Point point) {
  const std::string key = point.job.key;
  if (auto known = store_.find(key); known && !(options_.retry && known->worth_another())) {
    ++counts_.stored;
    if (known->failed()) ++counts_.failed;
    estimates_.learn(*known);
    ended_.push_back({point.ticket, std::move(known)});
    return;
  }
  switch (store_.claim(key, options_.retry)) {
    case runs::Store::Claim::finished:
      queue_.push_front(std::move(point));
      return;
    case runs::Store::Claim::busy:
      elsewhere_.push_back(std::move(point));
      return;
    case runs::Store::Claim::taken:
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

void SlurmRunner::look_up_claimed_elsewhere() {
  if (elsewhere_.empty() || runs::seconds() < due_.look) return;
  due_.look = runs::seconds() + runs::kLook_s;
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

std::optional<runs::Executor::Finished> SlurmRunner::next(const std::function<void()>& idle) {
  while (options_.interrupted == nullptr || *options_.interrupted == 0) {
    if (runs::seconds() >= due_.beat) {
      store_.beat();
      due_.beat = runs::seconds() + runs::kHeartbeat_s;
    }
    if (runs::seconds() >= due_.collect) collect();
    if (ended_.empty() && !queue_.empty()) look_up_next();
    if (!ended_.empty()) {
      Finished finished = std::move(ended_.front());
      ended_.pop_front();
      return finished;
    }
    if (is_ready_to_submit()) submit();
    if (runs::seconds() >= due_.poll) poll();
    look_up_claimed_elsewhere();
    if (queue_.empty() && elsewhere_.empty() && ready_.empty() && tasks_.empty() && ended_.empty())
      return std::nullopt;
    if (idle) idle();
    if (queue_.empty()) std::this_thread::sleep_for(runs::kTick);
  }
  return std::nullopt;
}

}  // namespace cm384::sweeps
