#include "workloads/prefill/prefill_schedule.h"

#include <algorithm>
#include <cstddef>

namespace cm384::studies {
namespace {

class Microbatches {
 public:
  Microbatches(const std::vector<std::vector<PlannedPart>>& chains, const Slowdowns& slowdowns)
      : chains_(chains), slowdowns_(slowdowns), running_(chains.size()) {
    made_.starts.resize(chains.size());
    made_.ends.resize(chains.size());
  }

  Schedule run() {
    for (;;) {
      while (start_one()) {
      }
      if (!std::ranges::any_of(running_, &Running::on)) return std::move(made_);
      pace_all();
      end_next();
    }
  }

 private:
  // The part under way of a microbatch: it ends at `end` if its pace stays.
  struct Running {
    bool on = false;
    double end = 0, pace = 1;  // times as long as alone
  };
  const PlannedPart& part(std::size_t m) const { return chains_[m][made_.ends[m].size()]; }
  // Since when the next part has waited.
  double ready(std::size_t m) const { return made_.ends[m].empty() ? 0 : made_.ends[m].back(); }

  bool start_one() {
    std::size_t next = chains_.size();
    for (std::size_t m = 0; m < chains_.size(); ++m) {
      if (running_[m].on || made_.ends[m].size() == chains_[m].size() || (part(m).units & taken_) != 0)
        continue;
      if (next == chains_.size() || ready(m) < ready(next)) next = m;
    }
    if (next == chains_.size()) return false;
    made_.starts[next].push_back(now_);
    running_[next] = {true, now_ + part(next).us, 1};
    taken_ |= part(next).units;
    return true;
  }

  // What is left of each part takes as much longer as those beside it make it.
  void pace_all() {
    for (std::size_t m = 0; m < chains_.size(); ++m) {
      if (!running_[m].on) continue;
      double pace = 1;
      for (std::size_t other = 0; other < chains_.size(); ++other) {
        if (other != m && running_[other].on) pace *= slowdowns_.of(part(m).kind, part(other).kind);
      }
      if (pace == running_[m].pace) continue;  // ends stay those of exact sums
      running_[m].end = now_ + (running_[m].end - now_) / running_[m].pace * pace;
      running_[m].pace = pace;
    }
  }

  // All that end next, in the same moment.
  void end_next() {
    bool first = true;
    for (const Running& one : running_) {
      if (one.on && (first || one.end < now_)) now_ = one.end;
      if (one.on) first = false;
    }
    for (std::size_t m = 0; m < chains_.size(); ++m) {
      if (!running_[m].on || running_[m].end != now_) continue;
      running_[m].on = false;
      taken_ &= ~part(m).units;
      made_.ends[m].push_back(now_);
    }
  }

  const std::vector<std::vector<PlannedPart>>& chains_;
  const Slowdowns& slowdowns_;
  std::vector<Running> running_;
  unsigned taken_ = 0;
  double now_ = 0;
  Schedule made_;
};

}  // namespace

std::string_view name_of(PartKind kind) {
  constexpr std::array<std::string_view, kPartKinds> kNames{"product", "attention", "row operator",
                                                            "network of experts", "exchange"};
  return kNames[static_cast<std::size_t>(kind)];
}

Schedule schedule_of(const std::vector<std::vector<PlannedPart>>& microbatches, const Slowdowns& slowdowns) {
  return Microbatches(microbatches, slowdowns).run();
}

}  // namespace cm384::studies
