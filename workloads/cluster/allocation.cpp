#include "workloads/cluster/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "base/text/error.h"
#include "workloads/cluster/migration.h"

namespace cm384::cluster {
namespace {

class Allocation {
 public:
  Allocation(const std::vector<Job>& jobs, const PoolShape& shape, const Policy& policy,
             const PoolWatch* watch)
      : jobs_(jobs), pool_(shape, policy.traffic), policy_(policy), watch_(watch) {
    result_.jobs.resize(jobs.size());
    if (watch_ != nullptr) reported_until_.resize(jobs.size());
  }

  AllocationResult run(const std::function<bool(std::size_t, std::int64_t)>& tell) {
    now_ = jobs_.empty() ? 0 : jobs_.front().submit_ms;
    const std::int64_t begin = now_;
    std::size_t next = 0;
    for (drop_outdated(); next < jobs_.size() || !running_.empty(); drop_outdated()) {
      std::int64_t at = running_.empty() ? jobs_[next].submit_ms : running_.top().first;
      if (next < jobs_.size()) at = std::min(at, jobs_[next].submit_ms);
      advance(at);
      // NPUs that are released at a time can be used by a job that comes then.
      for (; !running_.empty() && running_.top().first == at; drop_outdated()) {
        const std::size_t job = running_.top().second;
        running_.pop();
        report_held(job, "runs", at);
        for (const Place& place : result_.jobs[job].blocks) pool_.release_block(place);
        held_by_.erase(job);
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
    if (span > 0) result_.moving_share = result_.moving_ms / span / all;
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

  // What it had and did since the last notification.
  void report_held(std::size_t job, std::string_view doing, std::int64_t until) {
    if (watch_ == nullptr) return;
    if (until > reported_until_[job])
      for (const Place& place : result_.jobs[job].blocks)
        watch_->held(job, place, doing, static_cast<double>(reported_until_[job]) * 1e-3,
                     static_cast<double>(until) * 1e-3);
    reported_until_[job] = until;
  }

  void start_those_that_fit() {
    std::size_t looked_at = 0;
    for (auto job = waiting_.begin(); job != waiting_.end() && looked_at < kLookedAt;) {
      if (start(*job) || (job == waiting_.begin() && make_room(*job))) {
        job = waiting_.erase(job);
      } else if (policy_.order == Order::fcfs) {
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
      std::optional<Place> place = pool_.place_block(job.block, policy_.fit);
      if (!place) {
        for (const Place& taken : placed.blocks) pool_.release_block(taken);
        placed.blocks.clear();
        return false;
      }
      placed.blocks.push_back(std::move(*place));
    }
    begin(number, now_);
    return true;
  }

  void begin(std::size_t number, std::int64_t at) {
    Placed& placed = result_.jobs[number];
    placed.start_ms = at;
    placed.end_ms = at + jobs_[number].duration_ms;
    if (watch_ != nullptr) {
      reported_until_[number] = now_;
      watch_->waited(number, static_cast<double>(jobs_[number].submit_ms) * 1e-3,
                     static_cast<double>(now_) * 1e-3);
    }
    report_held(number, "waits for a move", at);
    running_.emplace(placed.end_ms, number);
    if (policy_.migrate_ms) held_by_.emplace(number, at);
    ++started_;
  }

  // A job that was moved ends later than it was to.
  void drop_outdated() {
    while (!running_.empty() && running_.top().first != result_.jobs[running_.top().second].end_ms)
      running_.pop();
  }

  // By moving blocks of others; all blocks of the job find a place, or nothing is moved.
  bool make_room(std::size_t number) {
    const Job& job = jobs_[number];
    const std::int64_t free = pool_.shape().npus() - pool_.allocated();
    if (!policy_.migrate_ms || free < std::int64_t{job.blocks} * pool_.shape().whole(job.block)) return false;
    const NpuPool before = pool_;
    std::vector<Owner> owners;
    std::vector<MovableBlock> movable;
    for (const auto& [owner, settled] : held_by_) {
      // Who stands still, stands still.
      if (settled > now_) continue;
      for (std::size_t block = 0; block < result_.jobs[owner].blocks.size(); ++block) {
        movable.push_back({owners.size(), result_.jobs[owner].blocks[block]});
        owners.push_back({owner, block});
      }
    }
    std::set<std::size_t> moved;  // of movable
    std::vector<Place> places;
    for (int block = 0; block < job.blocks; ++block) {
      std::optional<Place> place = pool_.place_block(job.block, policy_.fit);
      if (!place) {
        std::optional<Room> room = cluster::make_room(pool_, job.block, movable);
        if (!room) {
          pool_ = before;
          return false;
        }
        for (Room::Move& move : room->moves) {
          movable[move.block].place = std::move(move.to);
          moved.insert(move.block);
        }
        place = std::move(room->place);
      }
      places.push_back(std::move(*place));
    }
    result_.jobs[number].blocks = std::move(places);
    stand_still(number, owners, movable, moved);
    return true;
  }

  struct Owner {
    std::size_t job, block;
  };
  void stand_still(std::size_t number, const std::vector<Owner>& owners,
                   const std::vector<MovableBlock>& movable, const std::set<std::size_t>& moved) {
    const std::int64_t cost = *policy_.migrate_ms;
    std::set<std::size_t> jobs;
    for (const std::size_t block : moved) {
      report_held(owners[block].job, "runs", now_);
      result_.jobs[owners[block].job].blocks[owners[block].block] = movable[block].place;
      jobs.insert(owners[block].job);
    }
    result_.moves += static_cast<std::int64_t>(moved.size());
    double npus = static_cast<double>(jobs_[number].npus());
    for (const std::size_t job : jobs) {
      npus += static_cast<double>(jobs_[job].npus());
      Placed& placed = result_.jobs[job];
      placed.end_ms += cost;
      report_held(job, "is moved", now_ + cost);
      held_by_[job] = now_ + cost;
      if (cost > 0) running_.emplace(placed.end_ms, job);
    }
    result_.moving_ms += npus * static_cast<double>(cost);
    begin(number, now_ + cost);
  }

  const std::vector<Job>& jobs_;
  NpuPool pool_;
  const Policy policy_;
  const PoolWatch* watch_;
  std::vector<std::int64_t> reported_until_;  // ms up to which `watch_` knows of a job
  AllocationResult result_;
  std::int64_t now_ = 0;
  std::size_t started_ = 0;
  std::list<std::size_t> waiting_;
  using End = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> running_;
  std::map<std::size_t, std::int64_t> held_by_;  // jobs that run, and when they do not stand still any more
  double held_ = 0, waited_ = 0, held_while_waiting_ = 0, free_while_waiting_ = 0,
         apart_ = 0;  // NPU x ms, ms
};

}  // namespace

void check_jobs(const std::vector<Job>& jobs, const PoolShape& shape) {
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
}

AllocationResult allocate(const std::vector<Job>& jobs, const PoolShape& shape, const Policy& policy,
                          const std::function<bool(std::size_t started, std::int64_t now_ms)>& tell,
                          const PoolWatch* watch) {
  check_jobs(jobs, shape);
  return Allocation(jobs, shape, policy, watch).run(tell);
}

}  // namespace cm384::cluster
