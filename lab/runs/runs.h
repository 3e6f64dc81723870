// Runs of studies, each our own command as a child: points in, rows out. An executor runs them as many at a
// time as the host has room for; what the store has is not run again, so an interrupted list goes on where it
// stopped.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "lab/runs/executor.h"
#include "lab/runs/subject.h"
#include "workloads/frame/row.h"

namespace cm384::runs {

// How a run ended.
struct Run {
  studies::Rows rows;    // nested as the study gave them; also of a run whose check failed
  std::string failed;    // why it is not as it should be; empty: it is
  bool missing = false;  // interrupted before, or not in the store
  std::string text;      // its result.json

  bool good() const { return !missing && failed.empty(); }
  // Its result.json; null where it wrote none.
  Json document() const;
};

// What an outcome says; nothing: missing. A result that cannot be read is one that failed.
Run run_of(const std::optional<Outcome>& outcome);

class Runs {
 public:
  // How many runs have ended, of how many.
  using Progress = std::function<void(std::size_t done, std::size_t known)>;

  Runs(Subject& subject, Executor& executor, Progress progress = {})
      : subject_(subject), executor_(executor), progress_(std::move(progress)) {}

  // A study with options, a point each; points that are alike are run once. Results in the order of the
  // points. Throws OutputError. A point that is refused is one that failed.
  struct Request {
    std::string study;
    Settings settings;
  };
  std::vector<Run> run(const std::vector<Request>& requests);
  // Whether an interrupt left runs out; what follows has no meaning then.
  bool interrupted() const { return interrupted_; }

 private:
  Subject& subject_;
  Executor& executor_;
  Progress progress_;
  std::size_t done_ = 0, known_ = 0;
  bool interrupted_ = false;
};

// The number in a run's only row, by its flattened name. NaN: the run failed. Throws InputError if a run has
// several rows, or no such number.
double metric_of(const Run& run, const std::string& metric);

}  // namespace cm384::runs
