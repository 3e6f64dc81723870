// Runs of a study under many settings, by the executor of sweeps: what the store has is not run again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/sweeps/executor.h"
#include "lab/sweeps/plan.h"
#include "workloads/frame/row.h"

namespace cm384::uncertainty {

using Settings = std::vector<sweeps::Setting>;

// How a run ended.
struct PointRun {
  studies::Rows rows;    // nested as the study gave them
  std::string failed;    // why it has none; empty: it has
  bool missing = false;  // interrupted before
  std::string document;  // its result.json
};

class PointRuns {
 public:
  // How many runs have ended, of how many.
  using Progress = std::function<void(std::size_t done, std::size_t known)>;

  PointRuns(sweeps::Subject& subject, sweeps::Executor& executor, Progress progress = {})
      : subject_(subject), executor_(executor), progress_(std::move(progress)) {}

  // A study with options, a point each; points that are alike are run once. Results in the order of the
  // points. Throws OutputError. A point that is refused is one that failed.
  struct Request {
    std::string study;
    Settings settings;
  };
  std::vector<PointRun> run(const std::vector<Request>& requests);
  // Whether an interrupt left runs out; what follows has no meaning then.
  bool interrupted() const { return interrupted_; }

 private:
  sweeps::Subject& subject_;
  sweeps::Executor& executor_;
  Progress progress_;
  std::size_t done_ = 0, known_ = 0;
  bool interrupted_ = false;
};

// The number in a run's only row, by its flattened name. NaN: the run failed. Throws InputError if a run has
// several rows, or no such number.
double metric_of(const PointRun& run, const std::string& metric);

}  // namespace cm384::uncertainty
