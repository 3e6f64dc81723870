#include "workloads/cluster/pool_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

namespace cm384::studies {
namespace {

// A curve from its changes.
void write_curve(LaneTimeline& timeline, const char* name,
                 std::vector<std::pair<double, std::int64_t>> changes) {
  std::ranges::sort(changes);
  std::int64_t value = 0;
  for (std::size_t n = 0; n < changes.size(); ++n) {
    value += changes[n].second;
    if (n + 1 == changes.size() || changes[n + 1].first > changes[n].first)
      timeline.counter(0, name, time_of_seconds(changes[n].first), value);
  }
}

// The NPUs of a node over time.
class NodeLanes {
 public:
  explicit NodeLanes(int npus)
      : free_from_(static_cast<std::size_t>(npus), -std::numeric_limits<double>::infinity()) {}

  // Of those that are free then, at first those that the job had before.
  std::vector<int> assign(std::size_t job, int npus, double from, double to) {
    std::vector<int> taken;
    const auto add = [&](int npu) {
      double& free = free_from_[static_cast<std::size_t>(npu)];
      if (static_cast<int>(taken.size()) == npus || free > from) return;
      free = to;
      taken.push_back(npu);
    };
    std::vector<int>& before = of_job_[job];
    std::ranges::for_each(before, add);
    for (int npu = 0; npu < static_cast<int>(free_from_.size()); ++npu) add(npu);
    if (static_cast<int>(taken.size()) < npus) throw std::logic_error("jobs have more NPUs than a node");
    before = taken;
    return taken;
  }

 private:
  std::vector<double> free_from_;
  std::map<std::size_t, std::vector<int>> of_job_;
};

}  // namespace

PoolTimeline::PoolTimeline(LaneTimeline& timeline, const cluster::PoolShape& shape)
    : timeline_(timeline), shape_(shape) {
  watch_.held = [this](std::size_t job, const cluster::Place& place, std::string_view doing, double from,
                       double to) {
    for (const auto& [node, npus] : place.nodes) {
      npus_.emplace_back(from, npus);
      npus_.emplace_back(to, -npus);
      if (shown(from, to))
        held_.push_back({static_cast<std::size_t>(place.supernode) * static_cast<std::size_t>(shape_.nodes) +
                             static_cast<std::size_t>(node),
                         job, npus, doing, from, to});
    }
  };
  watch_.waited = [this](std::size_t, double from, double to) {
    if (to <= from) return;
    waiting_.emplace_back(from, 1);
    waiting_.emplace_back(to, -1);
  };
  watch_.away = [this](std::size_t node, const std::string& part, double from, double to) {
    if (shown(from, to)) away_.push_back({node, part, from, to});
  };
}

void PoolTimeline::name_lanes() {
  std::set<std::size_t> with_jobs, without;
  for (const Held& one : held_) with_jobs.insert(one.node);
  for (const Away& one : away_) without.insert(one.node);
  timeline_.process(0, "pool");
  for (int supernode = 0; supernode < shape_.supernodes; ++supernode)
    timeline_.process(1 + supernode, fmt::format("supernode {}", supernode));
  for (const std::size_t node : without)
    timeline_.lane(process(node), lane(node, -1),
                   fmt::format("node {} away", static_cast<int>(node) % shape_.nodes));
  for (const std::size_t node : with_jobs) {
    for (int npu = 0; npu < shape_.node_npus; ++npu)
      timeline_.lane(process(node), lane(node, npu),
                     fmt::format("node {} NPU {}", static_cast<int>(node) % shape_.nodes, npu));
  }
}

void PoolTimeline::write_held(const std::function<std::string(std::size_t)>& name_of_job) {
  std::ranges::sort(held_, {}, [](const Held& one) { return std::tuple(one.node, one.from, one.job); });
  std::map<std::size_t, NodeLanes> nodes;
  for (const Held& one : held_) {
    NodeLanes& node = nodes.try_emplace(one.node, shape_.node_npus).first->second;
    const bool runs = one.doing == "runs";
    const std::string name =
        fmt::format("job {}{}{}", name_of_job(one.job), runs ? "" : " ", runs ? "" : one.doing);
    for (const int npu : node.assign(one.job, one.npus, one.from, one.to))
      timeline_.slice(process(one.node), lane(one.node, npu), name, time_of_seconds(one.from),
                      time_of_seconds(one.to), fmt::format(R"("number":{})", one.job));
  }
}

void PoolTimeline::write(const std::function<std::string(std::size_t)>& name_of_job) {
  name_lanes();
  write_curve(timeline_, "NPUs that jobs hold", std::move(npus_));
  write_curve(timeline_, "jobs that wait", std::move(waiting_));
  for (const Away& one : away_)
    timeline_.slice(process(one.node), lane(one.node, -1), one.part, time_of_seconds(one.from),
                    time_of_seconds(one.to));
  write_held(name_of_job);
}

CourseTimeline::CourseTimeline(LaneTimeline& timeline, const cluster::ReliabilityCase& of)
    : timeline_(timeline), of_(of), failures_(of.hazards.size()) {
  timeline_.process(0, "run");
  timeline_.lane(0, 0, "run");
  watch_.did = [this](std::string_view doing, double from, double to) {
    timeline_.slice(0, 0, doing, time_of_seconds(from), time_of_seconds(to));
  };
  watch_.failed = [this](std::size_t hazard, int supernode, bool stops, double from, double to) {
    failures_[hazard].push_back({supernode, stops, from, std::min(to, of_.wall)});
  };
}

void CourseTimeline::write() {
  timeline_.process(1, "failures, until repaired");
  int tid = 0;
  for (std::size_t hazard = 0; hazard < failures_.size(); ++hazard) {
    // Of one part several may be away at a time.
    std::vector<std::pair<int, double>> lanes;  // and when it is free
    for (const Failure& one : failures_[hazard]) {
      auto lane = std::ranges::find_if(lanes, [&](const auto& known) { return known.second <= one.from; });
      if (lane == lanes.end()) {
        timeline_.lane(1, tid, of_.hazards[hazard].name);
        lane = lanes.insert(lane, {tid++, 0});
      }
      lane->second = one.to;
      timeline_.slice(1, lane->first, fmt::format("supernode {}", one.supernode), time_of_seconds(one.from),
                      time_of_seconds(one.to), fmt::format(R"("stops_the_run":{})", one.stops));
    }
  }
}

}  // namespace cm384::studies
