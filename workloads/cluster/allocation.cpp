#include "workloads/cluster/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <optional>
#include <queue>
#include <utility>

#include "base/text/error.h"

namespace cm384::cluster {
namespace {

class Allocation {
 public:
  Allocation(const std::vector<Job>& jobs, const PoolShape& shape, Fit fit, Order order)
      : jobs_(jobs), pool_(shape), fit_(fit), order_(order) {
    result_.jobs.resize(jobs.size());
  }

  AllocationResult run(const std::function<bool(std::size_t, std::int64_t)>& tell) {
    now_ = jobs_.empty() ? 0 : jobs_.front().submit_ms;
    const std::int64_t begin = now_;
    std::size_t next = 0;
    while (next < jobs_.size() || !running_.empty()) {
      std::int64_t at = running_.empty() ? jobs_[next].submit_ms : running_.top().first;
      if (next < jobs_.size()) at = std::min(at, jobs_[next].submit_ms);
      advance(at);
      // NPUs that are given back at a time are there for who comes then.
      for (; !running_.empty() && running_.top().first == at; running_.pop()) {
        for (const Place& place : result_.jobs[running_.top().second].blocks) pool_.release_block(place);
      }
      for (; next < jobs_.size() && jobs_[next].submit_ms == at; ++next) waiting_.push_back(next);
      start_those_that_fit();
      if (tell && !tell(started_, now_)) {
        result_.complete = false;
        break;
      }
    }
    result_.end_ms = now_;
    const auto all = static_cast<double>(pool_.shape().npus());
    const auto span = static_cast<double>(now_ - begin);
    if (span > 0) result_.utilisation = held_ / span / all;
    if (span > 0) result_.waiting_share = waited_ / span;
    if (waited_ > 0) result_.allocation_rate = held_while_waiting_ / waited_ / all;
    if (free_while_waiting_ > 0) result_.fragmentation = apart_ / free_while_waiting_;
    return std::move(result_);
  }

 private:
  void advance(std::int64_t to) {
    const auto step = static_cast<double>(to - now_);
    const auto held = static_cast<double>(pool_.allocated());
    held_ += step * held;
    if (!waiting_.empty() && step > 0) {
      const double free = static_cast<double>(pool_.shape().npus()) - held;
      waited_ += step;
      held_while_waiting_ += step * held;
      free_while_waiting_ += step * free;
      apart_ += step * (free - pool_.largest_place());
    }
    now_ = to;
  }

  void start_those_that_fit() {
    std::size_t looked_at = 0;
    for (auto job = waiting_.begin(); job != waiting_.end() && looked_at < kLookedAt;) {
      if (start(*job)) {
        job = waiting_.erase(job);
      } else if (order_ == Order::fcfs) {
        return;
      } else {
        ++job;
        ++looked_at;
      }
    }
  }

  // All its blocks, or none.
  bool start(std::size_t number) {
    const Job& job = jobs_[number];
    Placed& placed = result_.jobs[number];
    for (int block = 0; block < job.blocks; ++block) {
      std::optional<Place> place = pool_.place_block(job.block, fit_);
      if (!place) {
        for (const Place& taken : placed.blocks) pool_.release_block(taken);
        placed.blocks.clear();
        return false;
      }
      placed.blocks.push_back(std::move(*place));
    }
    placed.start_ms = now_;
    placed.end_ms = now_ + job.duration_ms;
    running_.emplace(placed.end_ms, number);
    ++started_;
    return true;
  }

  const std::vector<Job>& jobs_;
  NpuPool pool_;
  Fit fit_;
  Order order_;
  AllocationResult result_;
  std::int64_t now_ = 0;
  std::size_t started_ = 0;
  std::list<std::size_t> waiting_;
  using End = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> running_;
  double held_ = 0, waited_ = 0, held_while_waiting_ = 0, free_while_waiting_ = 0,
         apart_ = 0;  // NPU x ms, ms
};

}  // namespace

AllocationResult allocate(const std::vector<Job>& jobs, const PoolShape& shape, Fit fit, Order order,
                          const std::function<bool(std::size_t started, std::int64_t now_ms)>& tell) {
  for (const Job& job : jobs) {
    const std::int64_t place = shape.whole(job.block);
    if (place > shape.supernode_npus() || job.blocks > shape.npus() / place)
      throw InputError(fmt::format("job {}: {} x {} NPUs; allowed: blocks of at most {}, all within {}",
                                   job.id, job.blocks, job.block, shape.supernode_npus(), shape.npus()));
    const std::int64_t in_each = shape.one_node && place <= shape.node_npus
                                     ? std::int64_t{shape.nodes} * (shape.node_npus / place)
                                     : shape.supernode_npus() / place;
    if (job.blocks > in_each * shape.supernodes)
      throw InputError(
          fmt::format("job {}: {} blocks of {} NPUs; allowed: at most {} in each of {} supernodes", job.id,
                      job.blocks, job.block, in_each, shape.supernodes));
  }
  return Allocation(jobs, shape, fit, order).run(tell);
}

}  // namespace cm384::cluster
