// Runs points as processes of their own, as many at a time as cores and memory allow, and keeps their results
// in a store. What the store has is not run again.
#pragma once

#include <csignal>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/store.h"

namespace cm384::sweeps {

struct Job {
  std::string key;  // Subject::identity()
  std::string study;
  std::vector<std::string> arguments;  // what follows `cm384 run`
};

struct RunnerOptions {
  std::string program{};  // cm384
  std::string scratch{};  // folder for what is under way
  int jobs = 1;           // processes at a time
  double memory_MB = 0;   // of all of them together; 0: what the host has free
  bool lookup = false;    // run nothing: what the store lacks is missing
  bool retry = true;      // points that failed for a reason that may have gone
  const volatile std::sig_atomic_t* interrupted = nullptr;
};

struct RunnerCounts {
  std::size_t stored = 0;    // taken from the store
  std::size_t run = 0;       // by this process
  std::size_t failed = 0;    // of all of these
  std::size_t requeued = 0;  // stopped because memory ran short, and run again
};

class Runner {
 public:
  // Throws OutputError if there is no writing in `scratch`.
  Runner(Store& store, RunnerOptions options);
  ~Runner();  // stops what is under way and gives it up
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Adds a point; `ticket` comes back with its outcome.
  void add(std::size_t ticket, Job job);

  struct Finished {
    std::size_t ticket = 0;
    std::optional<Outcome> outcome;  // nothing: missing (with `lookup`)
  };
  // The next point to finish; waits for it. Nothing: none is left, or interrupted. `idle` is called a few
  // times a second while it waits. Throws OutputError.
  std::optional<Finished> next(const std::function<void()>& idle = {});

  const RunnerCounts& counts() const { return counts_; }
  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return queue_.size(); }
  // Mean wall time of the points that this process has run, seconds; 0: none yet.
  double seconds_per_point() const;

 private:
  struct Waiting {
    std::size_t ticket;
    Job job;
  };
  struct Process;

  void start(Waiting waiting);
  std::optional<Finished> collect();
  Outcome outcome_of(Process& process, int status) const;
  std::optional<Finished> look_up(Waiting& waiting);
  bool has_room() const;
  void make_room();
  bool is_interrupted() const;
  void beat();

  Store& store_;
  RunnerOptions options_;
  RunnerCounts counts_;
  std::deque<Waiting> queue_;       // not looked at, or to be run
  std::vector<Waiting> elsewhere_;  // another process works on them
  std::vector<std::unique_ptr<Process>> running_;
  double largest_MB_ = 0;  // of the points that have finished
  double wall_s_ = 0;
  double next_beat_ = 0, next_look_ = 0;
  std::size_t serial_ = 0;
};

}  // namespace cm384::sweeps
