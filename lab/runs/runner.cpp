#include "lab/runs/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/text/error.h"
#include "lab/runs/host.h"
#include "lab/runs/run_process.h"

namespace cm384::runs {
namespace {

namespace fs = std::filesystem;

constexpr double kReserve = 0.05;  // of the host's memory, below which the youngest process makes room
constexpr double kMargin = 1.2;    // of the largest point so far, that the next one is expected to take

// A line of /proc/meminfo in MB (10^6 B).
double meminfo(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double value = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    fields >> key >> value >> unit;
    if (key == name) return value * 1024e-6;
  }
  return 0;
}

}  // namespace

struct Runner::Process {
  Waiting waiting;
  RunProcess process;
};

Runner::Runner(Store& store, RunnerOptions options) : store_(store), options_(std::move(options)) {
  if (options_.lookup) return;
  const fs::path scratch = options_.scratch;
  std::error_code failure;
  fs::create_directories(scratch, failure);
  if (access(scratch.c_str(), W_OK) != 0)
    throw OutputError(
        fmt::format("{}: cannot be written: {}", scratch.string(), std::generic_category().message(errno)));
  // What processes that were killed have left.
  for (const fs::directory_entry& entry : fs::directory_iterator(scratch)) {
    const std::string name = entry.path().filename().string();
    const pid_t owner = static_cast<pid_t>(std::atol(name.c_str()));
    if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), failure);
  }
}

Runner::~Runner() {
  for (auto& process : running_) {
    const std::string key = process->waiting.job.key;
    process.reset();  // ends it
    try {
      store_.release(key);
    } catch (const std::exception&) {
      // The claim is void as soon as this process has ended.
    }
  }
  std::error_code ignored;
  running_.clear();
  fs::remove(options_.scratch, ignored);  // if nobody else uses it
}

void Runner::add(std::size_t ticket, Job job) {
  queue_.push_back({ticket, std::move(job)});
}

double Runner::seconds_per_point() const {
  return counts_.run == 0 ? 0 : wall_s_ / static_cast<double>(counts_.run);
}

bool Runner::is_interrupted() const {
  return options_.interrupted != nullptr && *options_.interrupted != 0;
}

// Unless the store has some, the first point runs alone: it says what points take.
bool Runner::has_room() const {
  if (running_.empty()) return true;
  if (static_cast<int>(running_.size()) >= options_.jobs || largest_MB_ == 0) return false;
  double used = 0, expected = 0;
  for (const auto& process : running_) {
    const double now = process->process.resident_MB();
    used += now;
    expected += std::max(now, largest_MB_ * kMargin);
  }
  const double all = options_.memory_MB > 0 ? options_.memory_MB : used + meminfo("MemAvailable:");
  return expected + largest_MB_ * kMargin <= all;
}

// Too little memory left for what runs: the youngest gives way, and runs again later.
void Runner::make_room() {
  if (running_.size() < 2 || meminfo("MemAvailable:") > kReserve * meminfo("MemTotal:")) return;
  largest_MB_ = std::max(largest_MB_, running_.front()->process.resident_MB());
  Waiting youngest = std::move(running_.back()->waiting);
  running_.pop_back();
  store_.release(youngest.job.key);
  queue_.push_front(std::move(youngest));
  options_.jobs = std::max(1, static_cast<int>(running_.size()));
  ++counts_.requeued;
}

// What the store has, or another process works on, needs no process here.
std::optional<Runner::Finished> Runner::look_up(Waiting& waiting) {
  if (auto known = store_.find(waiting.job.key);
      known && (options_.lookup || !(options_.retry && known->worth_another()))) {
    ++counts_.stored;
    if (known->failed()) ++counts_.failed;
    largest_MB_ = std::max(largest_MB_, known->peak_MB);
    return Finished{waiting.ticket, std::move(known)};
  }
  if (options_.lookup) return Finished{waiting.ticket, std::nullopt};
  return std::nullopt;
}

void Runner::start(Waiting waiting) {
  const fs::path folder = fs::path(options_.scratch) / fmt::format("{}-{}", getpid(), serial_++);
  try {
    auto process = std::unique_ptr<Process>(
        new Process{waiting, {options_.program, folder, waiting.job.arguments, mpirun(options_.processes)}});
    running_.push_back(std::move(process));
  } catch (const OutputError&) {
    store_.release(waiting.job.key);
    throw;
  }
}

std::optional<Runner::Finished> Runner::collect() {
  for (auto process = running_.begin(); process != running_.end(); ++process) {
    std::optional<Outcome> how = (*process)->process.poll();
    if (!how) continue;
    Outcome& outcome = *how;
    std::unique_ptr<Process> ended = std::move(*process);
    running_.erase(process);
    const Job& job = ended->waiting.job;
    if (is_interrupted() && outcome.exit_code >= 128) {
      store_.release(job.key);
      return std::nullopt;
    }
    store_.put(job.key, job.study, fmt::format("{}", fmt::join(job.arguments, " ")), outcome);
    largest_MB_ = std::max(largest_MB_, std::max(outcome.peak_MB, 1.0));
    wall_s_ += ended->process.age_s();
    ++counts_.run;
    if (outcome.failed()) ++counts_.failed;
    return Finished{ended->waiting.ticket, std::move(outcome)};
  }
  return std::nullopt;
}

void Runner::beat() {
  if (running_.empty() || seconds() < next_beat_) return;
  store_.beat();
  next_beat_ = seconds() + kHeartbeat_s;
}

std::optional<Runner::Finished> Runner::next(const std::function<void()>& idle) {
  while (!is_interrupted()) {
    if (auto finished = collect()) return finished;
    beat();
    make_room();
    // Points that another process has: finished by now, or given up.
    if (seconds() >= next_look_ && !elsewhere_.empty()) {
      next_look_ = seconds() + kLook_s;
      for (auto waiting = elsewhere_.begin(); waiting != elsewhere_.end(); ++waiting) {
        if (store_.busy(waiting->job.key)) continue;
        queue_.push_front(std::move(*waiting));
        elsewhere_.erase(waiting);
        break;
      }
    }
    if (!queue_.empty()) {
      if (auto known = look_up(queue_.front())) {
        queue_.pop_front();
        return known;
      }
      if (has_room()) {
        Waiting waiting = std::move(queue_.front());
        queue_.pop_front();
        switch (store_.claim(waiting.job.key, options_.retry)) {
          case Store::Claim::taken:
            start(std::move(waiting));
            break;
          case Store::Claim::busy:
            elsewhere_.push_back(std::move(waiting));
            break;
          case Store::Claim::finished:
            queue_.push_front(std::move(waiting));
            break;
        }
        continue;
      }
    }
    if (queue_.empty() && elsewhere_.empty() && running_.empty()) return std::nullopt;
    if (idle) idle();
    std::this_thread::sleep_for(kTick);
  }
  return std::nullopt;
}

}  // namespace cm384::runs
