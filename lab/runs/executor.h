// Carries out points: on this host (runner.h), or as jobs of Slurm (lab/sweeps/slurm_runner.h).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/runs/store.h"
#include "lab/runs/subject.h"

namespace cm384::runs {

struct Job {
  std::string key;  // Subject::identity()
  std::string study;
  std::vector<std::string> arguments{};  // what follows `cm384 run`
  std::vector<Setting> settings{};       // what `key` and `arguments` were made from
};

struct RunnerCounts {
  std::size_t stored = 0;    // taken from the store
  std::size_t run = 0;       // by this process, or by others for it
  std::size_t failed = 0;    // of all of these
  std::size_t requeued = 0;  // stopped because memory ran short, and run again
  std::size_t lost = 0;      // taken from Slurm tasks that were lost, and submitted again
};

class Executor {
 public:
  Executor() = default;
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Adds a point; `ticket` comes back with its outcome.
  virtual void add(std::size_t ticket, Job job) = 0;

  struct Finished {
    std::size_t ticket = 0;
    std::optional<Outcome> outcome;  // nothing: missing (of one that only looks up)
  };
  // The next point to finish; waits for it. Nothing: none is left, or interrupted. `idle` is called a few
  // times per second while it waits. Throws OutputError, InputError.
  virtual std::optional<Finished> next(const std::function<void()>& idle = {}) = 0;

  virtual std::size_t running() const = 0;  // at a time
  // Mean wall time of the points that have been run, seconds; 0: none yet.
  virtual double seconds_per_point() const = 0;
  const RunnerCounts& counts() const { return counts_; }

 protected:
  RunnerCounts counts_;
};

}  // namespace cm384::runs
