// Runs points as processes of their own, as many at a time as cores and memory allow, and keeps their results
// in a store. What the store has is not run again.
#pragma once

#include <csignal>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lab/runs/executor.h"

namespace cm384::runs {

struct RunnerOptions {
  std::string program{};  // cm384, such as kThisProgram
  std::string scratch{};  // folder for what is under way
  int jobs = 1;           // points at a time
  int processes = 1;      // of a point, by mpirun
  double memory_MB = 0;   // of all of them together; 0: what the host has free
  bool lookup = false;    // run nothing: what the store lacks is missing
  bool retry = true;      // points that failed for a reason that may have gone
  const volatile std::sig_atomic_t* interrupted = nullptr;
};

class Runner final : public Executor {
 public:
  // Throws OutputError if there is no writing in `scratch`.
  Runner(Store& store, RunnerOptions options);
  ~Runner() override;  // stops what is under way and gives it up

  void add(std::size_t ticket, Job job) override;
  std::optional<Finished> next(const std::function<void()>& idle = {}) override;
  std::size_t running() const override { return running_.size(); }
  double seconds_per_point() const override;

 private:
  struct Waiting {
    std::size_t ticket;
    Job job;
  };
  struct Process;

  void start(Waiting waiting);
  std::optional<Finished> collect();
  std::optional<Finished> look_up(Waiting& waiting);
  bool has_room() const;
  void make_room();
  bool is_interrupted() const;
  void beat();

  Store& store_;
  RunnerOptions options_;
  std::deque<Waiting> queue_;       // not looked at, or to be run
  std::vector<Waiting> elsewhere_;  // another process works on them
  std::vector<std::unique_ptr<Process>> running_;
  double largest_MB_ = 0;  // of the points that have finished
  double wall_s_ = 0;
  double next_beat_ = 0, next_look_ = 0;
  std::size_t serial_ = 0;
};

}  // namespace cm384::runs
