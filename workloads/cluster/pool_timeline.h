// Timelines of months: who had which NPUs of a pool (`run jobs`, `run reliability` with jobs), and what a run
// did while parts failed (`run reliability`).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/cluster/pool_watch.h"
#include "workloads/cluster/reliability.h"
#include "workloads/frame/lane_timeline.h"

namespace cm384::studies {

// A lane for each NPU, one for each node that was away, and curves of NPUs that jobs hold and of jobs that
// wait. Which NPUs of a node a job has is not known: those that are free, by number.
class PoolTimeline {
 public:
  // `timeline` outlives it.
  PoolTimeline(LaneTimeline& timeline, const cluster::PoolShape& shape);

  const cluster::PoolWatch& watch() const { return watch_; }
  void write(const std::function<std::string(std::size_t job)>& name_of_job);

 private:
  struct Held {
    std::size_t node = 0, job = 0;  // of the pool
    int npus = 0;
    std::string_view doing;
    double from = 0, to = 0;
  };
  struct Away {
    std::size_t node = 0;
    std::string part;
    double from = 0, to = 0;
  };
  int process(std::size_t node) const { return 1 + static_cast<int>(node) / shape_.nodes; }
  // Lane of an NPU; the first lane of a node shows its absence.
  int lane(std::size_t node, int npu) const {
    return static_cast<int>(node) % shape_.nodes * (shape_.node_npus + 1) + npu + 1;
  }
  bool shown(double from, double to) const {
    return time_of_seconds(to) > timeline_.from() && time_of_seconds(from) < timeline_.to();
  }
  void name_lanes();
  void write_held(const std::function<std::string(std::size_t job)>& name_of_job);

  LaneTimeline& timeline_;
  const cluster::PoolShape shape_;
  cluster::PoolWatch watch_;
  std::vector<Held> held_;
  std::vector<Away> away_;
  std::vector<std::pair<double, std::int64_t>> npus_, waiting_;  // changes
};

// A lane of what the run did, and lanes of each part's failures.
class CourseTimeline {
 public:
  // Both outlive it.
  CourseTimeline(LaneTimeline& timeline, const cluster::ReliabilityCase& of);

  const cluster::CourseWatch& watch() const { return watch_; }
  void write();

 private:
  struct Failure {
    int supernode = 0;
    bool stops = false;
    double from = 0, to = 0;
  };
  LaneTimeline& timeline_;
  const cluster::ReliabilityCase& of_;
  cluster::CourseWatch watch_;
  std::vector<std::vector<Failure>> failures_;  // of each hazard
};

}  // namespace cm384::studies
