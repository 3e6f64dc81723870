#include "workloads/cluster/job_mix.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "traces/fixed_math.h"
#include "traces/random.h"
#include "workloads/cluster/progress.h"

namespace cm384::cluster {
namespace {

constexpr double kNoEvent = std::numeric_limits<double>::infinity();

enum class Phase : std::uint8_t { kQueued, kWaiting, kDetection, kRestart, kWork, kCheckpoint, kDone };

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::kDetection:
      return "has failed";
    case Phase::kRestart:
      return "restarts";
    case Phase::kWork:
    case Phase::kCheckpoint:
      return "runs";
    case Phase::kQueued:
    case Phase::kWaiting:
    case Phase::kDone:
      break;
  }
  return "";  // holds nothing
}

// A job from its submission on.
struct Running {
  Phase phase = Phase::kQueued;
  std::vector<Place> blocks;
  Progress progress;
  SaveTimes save;
  double durable = 0;            // work that no fault takes away, s
  double since = 0;              // up to which its times are counted
  double begin = 0;              // of the phase
  double told = 0;               // up to which who watches knows of it
  double detected = 0;           // when the last fault is known
  std::set<std::size_t> failed;  // nodes of the pool that it leaves then
  double restart = 0;            // after the last fault
  std::size_t cause = 0;         // of the last interruption
  std::vector<double> slow;      // what slow parts take
  std::uint64_t version = 0;     // of its next event: those with others are out of date
  bool ends = false;             // the phase's end is the job's

  double speed() const { return slow.empty() ? 1 : 1 - *std::ranges::max_element(slow); }
};

struct Event {
  double at = 0;
  enum class What : std::uint8_t { kJob, kNodeRepaired, kPartRepaired } what = What::kJob;
  std::size_t who = 0;        // job, or node of the pool
  std::uint64_t version = 0;  // of the job
  double slows = 0;
  bool operator>(const Event& other) const { return at > other.at; }
};

// A node of the pool that is not in use, or soon not.
struct Closed {
  double repair = 0;  // s
  double begin = 0;
  std::size_t cause = 0;
  bool under_repair = false;
};

class MixCourse {
 public:
  MixCourse(const std::vector<Job>& jobs, const JobMixCase& of, std::uint64_t seed, const PoolWatch* watch)
      : jobs_(jobs),
        of_(of),
        watch_(watch),
        random_(seed, 1),
        pool_(of.shape, of.traffic),
        all_(jobs.size()),
        holders_(static_cast<std::size_t>(of.shape.supernodes) * static_cast<std::size_t>(of.shape.nodes)),
        away_(static_cast<std::size_t>(of.shape.supernodes)) {
    run_.failures.resize(of.hazards.size());
    run_.interruptions.resize(of.hazards.size());
    run_.lost.resize(of.hazards.size());
    for (const Hazard& hazard : of.hazards) rate_ += hazard.per_second;
    for (int s = 0; s < of.shape.supernodes; ++s) keep_spares(s);
  }

  JobMixRun run(const std::function<bool()>& go_on) {
    double failure = next_failure();
    std::size_t next = 0;
    for (std::int64_t steps = 0;; ++steps) {
      if (steps % 4096 == 0 && go_on && !go_on()) {
        run_.complete = false;
        return std::move(run_);
      }
      drop_outdated();
      const double submit =
          next < jobs_.size() ? static_cast<double>(jobs_[next].submit_ms) * 1e-3 : kNoEvent;
      const double event = events_.empty() ? kNoEvent : events_.top().at;
      advance(std::min({failure, submit, event, of_.wall}));
      if (now_ >= of_.wall) break;
      if (now_ == failure) {
        fail();
        failure = next_failure();
      } else if (now_ == event) {
        const Event top = events_.top();
        events_.pop();
        handle(top);
      } else {
        waiting_.insert(next++);
        may_start_ = true;
      }
      if (may_start_) start_those_that_fit();
    }
    finish();
    return std::move(run_);
  }

 private:
  double next_failure() {
    if (rate_ == 0) return kNoEvent;
    return now_ - traces::natural_log(std::max(random_.real(), 0x1p-53)) / rate_;
  }

  void advance(double to) {
    const double time = std::max(0.0, to - now_);
    run_.away += time * static_cast<double>(pool_.withheld());
    run_.idle += time * static_cast<double>(of_.shape.npus() - pool_.allocated() - pool_.withheld());
    now_ = to;
  }

  MixClass& class_of(std::size_t job) {
    const int npus = static_cast<int>(std::bit_ceil(static_cast<std::uint32_t>(jobs_[job].npus())));
    MixClass& of = classes_[npus];
    of.npus = npus;
    return of;
  }
  // That it holds.
  double npus_of(std::size_t job) const {
    return static_cast<double>(jobs_[job].blocks) * of_.shape.whole(jobs_[job].block);
  }
  std::size_t node_of(int supernode, int node) const {
    return static_cast<std::size_t>(supernode) * static_cast<std::size_t>(of_.shape.nodes) +
           static_cast<std::size_t>(node);
  }

  void drop_outdated() {
    while (!events_.empty() && events_.top().what == Event::What::kJob &&
           events_.top().version != all_[events_.top().who].version)
      events_.pop();
  }

  // Counts a job's time up to now.
  void count(std::size_t job) {
    Running& of = all_[job];
    const double time = now_ - of.since, npus = npus_of(job);
    of.since = now_;
    switch (of.phase) {
      case Phase::kDetection:
        class_of(job).detection += time * npus;
        run_.lost[of.cause] += time * npus;
        break;
      case Phase::kRestart:
        class_of(job).restart += time * npus;
        run_.lost[of.cause] += time * npus;
        break;
      case Phase::kWaiting:
        class_of(job).waiting += time * npus;
        break;
      case Phase::kWork:
        of.progress.work(time, of.speed());
        break;
      case Phase::kQueued:
      case Phase::kCheckpoint:
      case Phase::kDone:
        break;
    }
  }

  void count_done(std::size_t job, const Done& done) {
    MixClass& of = class_of(job);
    all_[job].durable += done.work;
    of.useful += done.work * npus_of(job);
    of.slow += (done.wall - done.work) * npus_of(job);
    of.checkpoint += done.stopped * npus_of(job);
  }

  // What it had and did since the last notification.
  void report_held(std::size_t job) {
    Running& of = all_[job];
    const double from = std::exchange(of.told, now_);
    if (watch_ == nullptr || now_ <= from) return;
    for (const Place& place : of.blocks) watch_->held(job, place, name_of(of.phase), from, now_);
  }
  void report_away(std::size_t node, const Closed& closed) const {
    if (watch_ != nullptr) watch_->away(node, of_.hazards[closed.cause].name, closed.begin, now_);
  }

  // Schedules the end of the phase, from now.
  void enter(std::size_t job, Phase phase) {
    Running& of = all_[job];
    of.phase = phase;
    of.begin = of.since = now_;
    schedule(job);
  }

  void schedule(std::size_t job) {
    Running& of = all_[job];
    double end = kNoEvent;
    of.ends = false;
    switch (of.phase) {
      case Phase::kDetection:
        end = of.detected;
        break;
      case Phase::kRestart:
        end = of.begin + of.restart;
        break;
      case Phase::kWork: {
        const double left = static_cast<double>(jobs_[job].duration_ms) * 1e-3 - of.durable -
                            of.progress.unsettled_work(),
                     interval = of.save.interval - of.progress.since_checkpoint();
        of.ends = left <= interval;
        end = now_ + std::max(0.0, std::min(left, interval)) / of.speed();
        break;
      }
      case Phase::kCheckpoint:
        end = of.begin + of.save.stops;
        break;
      case Phase::kQueued:
      case Phase::kWaiting:
      case Phase::kDone:
        break;
    }
    ++of.version;
    if (end < kNoEvent) events_.push({end, Event::What::kJob, job, of.version, 0});
  }

  void handle(const Event& event) {
    switch (event.what) {
      case Event::What::kJob:
        return end_phase(event.who);
      case Event::What::kNodeRepaired:
        return bring_back(event.who);
      case Event::What::kPartRepaired: {
        Running& of = all_[event.who];
        count(event.who);
        of.slow.erase(std::ranges::find(of.slow, event.slows));
        if (of.phase == Phase::kWork) schedule(event.who);
        return;
      }
    }
  }

  void end_phase(std::size_t job) {
    Running& of = all_[job];
    count(job);
    switch (of.phase) {
      case Phase::kDetection:
        report_held(job);
        if (replace(job)) return enter(job, Phase::kRestart);
        release(job);
        waiting_.insert(job);
        return enter(job, Phase::kWaiting);
      case Phase::kRestart:
        report_held(job);
        return enter(job, Phase::kWork);
      case Phase::kWork:
        if (!of.ends) return enter(job, Phase::kCheckpoint);
        report_held(job);
        count_done(job, of.progress.finish());
        ++class_of(job).finished;
        release(job);
        return enter(job, Phase::kDone);
      case Phase::kCheckpoint:
        count_done(job, of.progress.settle(now_));
        of.progress.save(now_ - of.begin, now_ + of.save.beside);
        count_done(job, of.progress.settle(now_));
        return enter(job, Phase::kWork);
      case Phase::kQueued:
      case Phase::kWaiting:
      case Phase::kDone:
        return;
    }
  }

  void start_those_that_fit() {
    may_start_ = false;
    std::size_t looked_at = 0;
    for (auto job = waiting_.begin(); job != waiting_.end() && looked_at < kLookedAt;) {
      if (start(*job)) {
        job = waiting_.erase(job);
      } else if (of_.order == Order::fcfs) {
        return;
      } else {
        ++job;
        ++looked_at;
      }
    }
  }

  bool start(std::size_t number) {
    const Job& job = jobs_[number];
    std::vector<Place> places;
    for (int block = 0; block < job.blocks; ++block) {
      std::optional<Place> place = pool_.place_block(job.block, of_.fit);
      if (!place) {
        for (const Place& taken : places) pool_.release_block(taken);
        return false;
      }
      places.push_back(std::move(*place));
    }
    Running& of = all_[number];
    count(number);
    if (watch_ != nullptr)
      watch_->waited(
          number, of.phase == Phase::kWaiting ? of.begin : static_cast<double>(job.submit_ms) * 1e-3, now_);
    of.blocks = std::move(places);
    of.told = now_;
    for (const Place& place : of.blocks) hold(number, place);
    if (of.phase == Phase::kWaiting) {
      enter(number, Phase::kRestart);
      return true;
    }
    MixClass& kind = class_of(number);
    ++kind.started;
    kind.queued += now_ - static_cast<double>(job.submit_ms) * 1e-3;
    of.save = of_.save(job);
    enter(number, Phase::kWork);
    return true;
  }

  void hold(std::size_t job, const Place& place) {
    for (const auto& [node, npus] : place.nodes) holders_[node_of(place.supernode, node)][job] += npus;
  }

  void release(std::size_t job) {
    for (const Place& place : all_[job].blocks) release(job, place);
    all_[job].blocks.clear();
  }
  void release(std::size_t job, const Place& place) {
    pool_.release_block(place);
    may_start_ = true;
    for (const auto& [node, npus] : place.nodes) {
      auto& held = holders_[node_of(place.supernode, node)];
      const auto own = held.find(job);
      if ((own->second -= npus) == 0) held.erase(own);
      if (held.empty()) repair_if_empty(node_of(place.supernode, node));
    }
  }

  void keep_spares(int supernode) {
    const int left = std::max(0, of_.spares - away_[static_cast<std::size_t>(supernode)]);
    pool_.keep_free(supernode, left * of_.shape.node_npus);
  }

  void remove_node(std::size_t node, std::size_t cause) {
    const double repair = of_.hazards[cause].repair;
    const int supernode = static_cast<int>(node) / of_.shape.nodes;
    const auto [closed, is_new] = closed_.try_emplace(node);
    closed->second.repair = std::max(closed->second.repair, repair);
    if (!is_new) return;
    closed->second.begin = now_;
    closed->second.cause = cause;
    pool_.close_node(supernode, static_cast<int>(node) % of_.shape.nodes);
    ++away_[static_cast<std::size_t>(supernode)];
    keep_spares(supernode);
    may_start_ = true;  // what is kept free may have become less than what is lost
  }

  void repair_if_empty(std::size_t node) {
    const auto closed = closed_.find(node);
    if (closed == closed_.end() || closed->second.under_repair || !holders_[node].empty()) return;
    closed->second.under_repair = true;
    events_.push({now_ + closed->second.repair, Event::What::kNodeRepaired, node, 0, 0});
  }

  void bring_back(std::size_t node) {
    const int supernode = static_cast<int>(node) / of_.shape.nodes;
    report_away(node, closed_.at(node));
    closed_.erase(node);
    pool_.open_node(supernode, static_cast<int>(node) % of_.shape.nodes);
    --away_[static_cast<std::size_t>(supernode)];
    keep_spares(supernode);
    may_start_ = true;
  }

  void fail() {
    double at = random_.real() * rate_;
    std::size_t n = 0;
    while (n + 1 < of_.hazards.size() && at >= of_.hazards[n].per_second) at -= of_.hazards[n++].per_second;
    const Hazard& hazard = of_.hazards[n];
    const auto node = static_cast<std::size_t>(random_.real() * static_cast<double>(holders_.size()));
    int npu = static_cast<int>(random_.real() * of_.shape.node_npus);
    const bool stops = random_.real() < hazard.interrupts;
    const auto closed = closed_.find(node);
    if (closed != closed_.end() && closed->second.under_repair) return;
    ++run_.failures[n];
    std::vector<std::size_t> hit;
    for (const auto& [job, npus] : holders_[node]) {
      if (!hazard.of_npu || (npu >= 0 && npu < npus)) hit.push_back(job);
      npu -= npus;
    }
    if (!stops) {
      if (hazard.slows == 0 || hazard.repair == 0) return;
      for (const std::size_t job : hit) {
        count(job);
        all_[job].slow.push_back(hazard.slows);
        events_.push({now_ + hazard.repair, Event::What::kPartRepaired, job, 0, hazard.slows});
        if (all_[job].phase == Phase::kWork) schedule(job);
      }
      return;
    }
    if (hazard.repair > 0) remove_node(node, n);
    for (const std::size_t job : hit) interrupt(job, n, node);
    if (hazard.repair > 0) repair_if_empty(node);
  }

  void interrupt(std::size_t job, std::size_t cause, std::size_t node) {
    Running& of = all_[job];
    const Hazard& hazard = of_.hazards[cause];
    report_held(job);
    count(job);
    count_done(job, of.progress.settle(now_));
    const Done lost = of.progress.finish();
    const double thrown =
        (lost.wall + lost.stopped + (of.phase == Phase::kCheckpoint ? now_ - of.begin : 0)) * npus_of(job);
    MixClass& kind = class_of(job);
    kind.redo += thrown;
    ++kind.interruptions;
    ++run_.interruptions[cause];
    run_.lost[cause] += thrown;
    of.cause = cause;
    of.detected = now_ + hazard.detection;
    of.restart = hazard.restart;
    if (hazard.repair > 0) of.failed.insert(node);
    enter(job, Phase::kDetection);
  }

  // What the job holds of nodes that have failed, by others of their supernodes. False: there are none.
  bool replace(std::size_t job) {
    const std::set<std::size_t> failed = std::exchange(all_[job].failed, {});
    return std::ranges::all_of(failed, [&](std::size_t node) { return replace(job, node); });
  }
  bool replace(std::size_t job, std::size_t node) {
    const int supernode = static_cast<int>(node) / of_.shape.nodes,
              within = static_cast<int>(node) % of_.shape.nodes;
    for (Place& place : all_[job].blocks) {
      if (place.supernode != supernode) continue;
      int npus = 0;
      for (const auto& part : place.nodes) npus += part.first == within ? part.second : 0;
      if (npus == 0) continue;
      const std::optional<Place> other = pool_.place_in(supernode, npus);
      if (!other) return false;
      std::erase_if(place.nodes, [&](const auto& part) { return part.first == within; });
      place.nodes.insert(place.nodes.end(), other->nodes.begin(), other->nodes.end());
      hold(job, *other);
      release(job, {supernode, {{within, npus}}});
    }
    return true;
  }

  // What is not saved yet has been done.
  void finish() {
    for (std::size_t job = 0; job < all_.size(); ++job) {
      Running& of = all_[job];
      if (of.phase == Phase::kQueued || of.phase == Phase::kDone) continue;
      report_held(job);
      count(job);
      count_done(job, of.progress.finish());
      if (of.phase == Phase::kCheckpoint) class_of(job).checkpoint += (now_ - of.begin) * npus_of(job);
    }
    for (const auto& [node, closed] : closed_) report_away(node, closed);
    for (const auto& [npus, of] : classes_) run_.classes.push_back(of);
    const double whole = of_.wall * static_cast<double>(of_.shape.npus());
    run_.idle /= whole;
    run_.away /= whole;
  }

  const std::vector<Job>& jobs_;
  const JobMixCase& of_;
  const PoolWatch* watch_;
  traces::Random random_;
  NpuPool pool_;
  std::vector<Running> all_;
  std::vector<std::map<std::size_t, int>> holders_;  // NPUs of each node of the pool, by job
  std::vector<int> away_;                            // closed nodes of each supernode
  std::map<std::size_t, Closed> closed_;             // nodes of the pool
  std::set<std::size_t> waiting_;                    // by submission
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<int, MixClass> classes_;
  double rate_ = 0, now_ = 0;
  bool may_start_ = false;
  JobMixRun run_;
};

}  // namespace

JobMixRun run_job_mix(const std::vector<Job>& jobs, const JobMixCase& of, std::uint64_t seed,
                      const std::function<bool()>& go_on, const PoolWatch* watch) {
  PoolShape beside_spares = of.shape;
  beside_spares.nodes -= of.spares;
  check_jobs(jobs, beside_spares);
  return MixCourse(jobs, of, seed, watch).run(go_on);
}

double interruptions_per_second(const JobMixCase& of, const Job& job) {
  const PoolShape& shape = of.shape;
  const int nodes_of_block = (job.block + shape.node_npus - 1) / shape.node_npus;
  const double nodes = static_cast<double>(job.blocks) * nodes_of_block;
  double rate = 0;
  for (const Hazard& hazard : of.hazards) {
    const double share = hazard.of_npu ? static_cast<double>(job.npus()) / static_cast<double>(shape.npus())
                                       : nodes / (static_cast<double>(shape.supernodes) * shape.nodes);
    rate += hazard.per_second * hazard.interrupts * share;
  }
  return rate;
}

}  // namespace cm384::cluster
