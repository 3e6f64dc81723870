#include "workloads/cluster/reliability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "traces/fixed_math.h"
#include "traces/random.h"
#include "workloads/cluster/progress.h"

namespace cm384::cluster {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Repair {
  double end = 0;
  int supernode = -1;  // whose node comes back; -1: a slow part
  double slows = 0;
  bool operator>(const Repair& other) const { return end > other.end; }
};

// One course of the pool and the run on it, from event to event.
class Course {
 public:
  Course(const ReliabilityCase& of, std::uint64_t seed, const CourseWatch* watch)
      : of_(of), watch_(watch), random_(seed, 1), away_(static_cast<std::size_t>(of.supernodes)) {
    run_.failures.resize(of.hazards.size());
    run_.interruptions.resize(of.hazards.size());
    run_.lost.resize(of.hazards.size());
    for (const Hazard& hazard : of.hazards) rate_ += hazard.per_second;
  }

  ReliabilityRun run(const std::function<bool()>& go_on) {
    double failure = next_failure();
    for (std::int64_t events = 0; now_ < of_.wall; ++events) {
      if (events % 4096 == 0 && go_on && !go_on()) {
        run_.complete = false;
        return run_;
      }
      const double repaired = repairs_.empty() ? kNever : repairs_.top().end;
      advance(std::min({failure, repaired, now_ + until_phase_ends(), of_.wall}));
      if (now_ >= of_.wall) break;
      if (now_ == failure) {
        fail();
        failure = next_failure();
      } else if (now_ == repaired) {
        repair();
      } else {
        end_phase();
      }
    }
    report_phase();
    // Work that is not saved yet has been done.
    count(progress_.finish());
    if (phase_ == Phase::kCheckpoint) run_.shares.checkpoint += elapsed_;
    ReliabilityShares& s = run_.shares;
    for (double* share : {&s.useful, &s.redo, &s.checkpoint, &s.detection, &s.restart, &s.waiting, &s.slow})
      *share /= of_.wall;
    run_.short_of_spares /= of_.wall;
    return run_;
  }

 private:
  enum class Phase { kWork, kCheckpoint, kDetection, kRestart, kWaiting };
  static std::string_view name_of(Phase phase) {
    switch (phase) {
      case Phase::kWork:
      case Phase::kCheckpoint:
        break;
      case Phase::kDetection:
        return "has failed";
      case Phase::kRestart:
        return "restarts";
      case Phase::kWaiting:
        return "waits for a node";
    }
    return "works";
  }

  void report_phase() {
    const double from = std::exchange(reported_until_, now_);
    if (watch_ != nullptr && now_ > from) watch_->did(name_of(phase_), from, now_);
  }

  double next_failure() {
    if (rate_ == 0) return kNever;
    return now_ - traces::natural_log(std::max(random_.real(), 0x1p-53)) / rate_;
  }

  double speed() const { return 1 - slowest_; }

  // At the present speed.
  double until_phase_ends() const {
    switch (phase_) {
      case Phase::kWork:
        return (of_.interval - progress_.since_checkpoint()) / speed();
      case Phase::kCheckpoint:
        return of_.write - elapsed_;
      case Phase::kDetection:
        return detection_ - elapsed_;
      case Phase::kRestart:
        return restart_ - elapsed_;
      case Phase::kWaiting:
        break;
    }
    return kNever;
  }

  void advance(double to) {
    const double time = std::max(0.0, to - now_);
    now_ = to;
    elapsed_ += time;
    if (short_) run_.short_of_spares += time;
    switch (phase_) {
      case Phase::kWork:
        progress_.work(time, speed());
        break;
      case Phase::kCheckpoint:
        break;
      case Phase::kDetection:
        run_.shares.detection += time;
        run_.lost[cause_] += time;
        break;
      case Phase::kRestart:
        run_.shares.restart += time;
        run_.lost[cause_] += time;
        break;
      case Phase::kWaiting:
        run_.shares.waiting += time;
        break;
    }
  }

  void enter(Phase phase) {
    if (name_of(phase) != name_of(phase_)) report_phase();
    phase_ = phase;
    elapsed_ = 0;
  }

  void count(const Done& done) {
    run_.shares.useful += done.work;
    run_.shares.slow += done.wall - done.work;
    run_.shares.checkpoint += done.stopped;
  }

  void end_phase() {
    switch (phase_) {
      case Phase::kWork:
        return enter(Phase::kCheckpoint);
      case Phase::kCheckpoint:
        count(progress_.settle(now_));
        progress_.save(elapsed_, now_ + of_.beside);
        count(progress_.settle(now_));
        return enter(Phase::kWork);
      case Phase::kDetection:
        return enter(short_ ? Phase::kWaiting : Phase::kRestart);
      case Phase::kRestart:
        return enter(Phase::kWork);
      case Phase::kWaiting:
        return;
    }
  }

  void fail() {
    double at = random_.real() * rate_;
    std::size_t n = 0;
    while (n + 1 < of_.hazards.size() && at >= of_.hazards[n].per_second) at -= of_.hazards[n++].per_second;
    const Hazard& hazard = of_.hazards[n];
    // Of all nodes one, by its number; those that are away come last in their supernode, spares before them.
    const double node = random_.real() * of_.nodes;
    const auto supernode = static_cast<std::size_t>(random_.real() * of_.supernodes);
    const bool stops = random_.real() < hazard.interrupts;
    int& away = away_[supernode];
    if (node >= of_.nodes - away) return;
    ++run_.failures[n];
    const bool of_run = node < std::min(of_.nodes - of_.spares, of_.nodes - away);
    if (watch_ != nullptr)
      watch_->failed(n, static_cast<int>(supernode), of_run && stops, now_,
                     now_ + std::max(hazard.repair, hazard.detection));
    if (!stops) {
      if (of_run && hazard.slows > 0 && hazard.repair > 0) {
        repairs_.push({now_ + hazard.repair, -1, hazard.slows});
        slow_.push_back(hazard.slows);
        slowest_ = *std::ranges::max_element(slow_);
      }
      return;
    }
    if (hazard.repair > 0) {
      ++away;
      repairs_.push({now_ + hazard.repair, static_cast<int>(supernode), 0});
      find_short();
    }
    if (!of_run) return;
    ++run_.interruptions[n];
    count(progress_.settle(now_));
    const Done lost = progress_.finish();
    const double thrown = lost.wall + lost.stopped + (phase_ == Phase::kCheckpoint ? elapsed_ : 0);
    run_.shares.redo += thrown;
    run_.lost[n] += thrown;
    cause_ = n;
    detection_ = hazard.detection;
    restart_ = hazard.restart;
    enter(Phase::kDetection);
  }

  void repair() {
    const Repair done = repairs_.top();
    repairs_.pop();
    if (done.supernode < 0) {
      slow_.erase(std::ranges::find(slow_, done.slows));
      slowest_ = slow_.empty() ? 0 : *std::ranges::max_element(slow_);
      return;
    }
    --away_[static_cast<std::size_t>(done.supernode)];
    find_short();
    if (phase_ == Phase::kWaiting && !short_) enter(Phase::kRestart);
  }

  void find_short() {
    short_ = std::ranges::any_of(away_, [&](int away) { return away > of_.spares; });
  }

  const ReliabilityCase& of_;
  const CourseWatch* watch_;
  traces::Random random_;
  std::vector<int> away_;  // nodes of each supernode under repair
  std::vector<double> slow_;
  double slowest_ = 0;
  bool short_ = false;
  std::priority_queue<Repair, std::vector<Repair>, std::greater<>> repairs_;
  double rate_ = 0, now_ = 0;
  Phase phase_ = Phase::kWork;
  double elapsed_ = 0;         // of the phase
  double reported_until_ = 0;  // up to which `watch_` knows what the run did
  Progress progress_;
  double detection_ = 0, restart_ = 0;  // of the last interruption
  std::size_t cause_ = 0;
  ReliabilityRun run_;
};

}  // namespace

ReliabilityTable ReliabilityTable::load(const std::string& name_or_file) {
  if (name_or_file != "default") return parse(read_input(name_or_file), name_or_file);
  const hw::EmbeddedText& text = hw::embedded_reliability().front();
  return parse(text.text, std::string(text.name));
}

ReliabilityTable ReliabilityTable::parse(std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  ReliabilityTable table;
  file.read(table);
  for (const FailingPart& part : table.parts) {
    if (std::ranges::find(table.levels, part.level, &RecoveryLevel::name) == table.levels.end())
      part.place.refuse("level", fmt::format("'{}': allowed: the name of a [[level]]", part.level));
    if (part.least > part.fit || (part.most > 0 && part.most < part.fit))
      part.place.refuse("fit", fmt::format("{}: allowed: from least to most", part.fit));
  }
  if (table.parts.empty()) throw InputError(fmt::format("{}: has no [[part]]", name));
  return table;
}

ReliabilityRun run_reliability(const ReliabilityCase& of, std::uint64_t seed,
                               const std::function<bool()>& go_on, const CourseWatch* watch) {
  return Course(of, seed, watch).run(go_on);
}

double interruptions_per_second(const ReliabilityCase& of) {
  double rate = 0;
  for (const Hazard& hazard : of.hazards) rate += hazard.per_second * hazard.interrupts;
  return rate * (of.nodes - of.spares) / of.nodes;
}

double young_interval(double mtbf, double write) {
  return std::sqrt(2 * mtbf * write);
}

double best_interval(double mtbf, double write, double beside) {
  return std::max(young_interval(mtbf, write), beside);
}

double daly_goodput(double mtbf, double interval, double write, double restart, double beside) {
  // Nothing comes through; what `exponential` takes ends there.
  if ((restart + interval + write + beside) / mtbf > 700) return 0;
  return interval / (mtbf * traces::exponential((restart + beside) / mtbf) *
                     (traces::exponential((interval + write) / mtbf) - 1));
}

}  // namespace cm384::cluster
