// The dies of a decode instance, which step together.
#pragma once

#include <cstdint>
#include <queue>
#include <unordered_set>
#include <utility>
#include <vector>

#include "workloads/service/deployment.h"

namespace cm384::service {

class DecodeInstance {
 public:
  // A request that decodes. Its tokens come evenly over its steps.
  struct Active {
    std::uint32_t request = 0;
    int die = 0;
    std::int32_t prompt = 0, tokens = 0, steps = 0;
    std::int64_t bytes = 0;  // of the die's room, that it holds
  };
  // What a step takes long for: requests per NPU of the fullest die, up to the next captured graph, and
  // tokens of each of its requests, up to the next block of 128.
  struct Load {
    int batch = 0, kv = 0;
  };

  DecodeInstance(const DecodeSpec& spec, std::uint64_t seed, int number);

  int dies() const { return static_cast<int>(dies_.size()); }
  int requests() const { return requests_; }
  bool stepping() const { return stepping_; }
  // Neither away nor paused.
  bool runs() const { return away_ == 0 && paused_ == 0; }
  std::uint32_t epoch() const { return epoch_; }  // another one after an outage
  // Slots and bytes of room that requests hold or are promised, dies that are not lost, and whether all are
  // away.
  struct Held {
    std::int64_t requests = 0, bytes = 0;
    int dies = 0;
    bool away = false;
  };
  Held held() const;
  double kv_peak() const;  // most of a die's room that was promised so far

  // The die with the fewest requests that has a slot and `bytes` of room, and how many it has; -1: none. One
  // that returns was of the instance before it closed.
  std::pair<int, std::int64_t> best_die(std::int64_t bytes, bool returns = false) const;
  void reserve(int die, std::int64_t bytes);
  void release(int die, std::int64_t bytes);
  // Steps in which `tokens` come, drawn for this attempt of the request.
  std::int32_t steps_for(std::int32_t tokens, std::uint32_t request, std::uint32_t attempt) const;

  void join(const Active& active) { joining_.push_back(active); }
  // Requests that take part from the next step on.
  const std::vector<Active>& joining() const { return joining_; }
  struct Lost {
    std::uint32_t request = 0;
    std::int64_t tokens = 0;  // that it had been given here
    int die = 0;
    std::int64_t bytes = 0;  // of room that it had there
    bool swapped = false;    // these went to host memory
    Time last_token{};       // of one that is preempted
  };
  // Steps from here on where somebody is there. With growing room requests get the blocks that their tokens
  // of the step need; where a die has no more, the last ones that came to it leave it and their room, and are
  // returned.
  std::vector<Lost> begin_step();
  Load load(int least_batch, double least_kv) const;
  // Of a step that has begun, by die: tokens of each of its requests.
  std::vector<std::vector<std::int32_t>> lengths() const;
  // Those that had their last step.
  std::vector<Active> end_step();
  // An outage: the requests that were here.
  std::vector<Lost> lose_all();
  void end_outage() { --away_; }
  // A die is lost for good, with its requests; the step under way does not count.
  std::vector<Lost> lose_die(int die);
  // The die with the fewest requests that is not lost.
  int idlest() const;
  void pause();
  void resume() { --paused_; }
  // It takes no further requests.
  void close() { closed_ = true; }
  // It takes none, has none and has none on the way; and neither an outage nor a fault is under way.
  bool is_drained() const;

 private:
  static constexpr int kFraction = 20;  // bits behind the point of a rate of tokens
  struct Die {
    std::int32_t requests = 0, promised = 0;
    std::int64_t bytes = 0;
    std::int64_t base = 0, rate = 0;  // tokens in the cache are base + rate x step, in fractions
    bool lost = false;
  };
  Lost lost_of(const Active& active, std::int64_t last_step) const;

  struct Leaving {
    std::int64_t step;
    std::uint64_t order;
    Active active;
    std::int64_t base, rate;
    bool operator<(const Leaving& o) const { return step != o.step ? step > o.step : order > o.order; }
  };
  std::vector<Lost> grow();
  void leave(const Leaving& leaving);
  bool was_preempted(const Leaving& leaving) const {
    return !preempted_.empty() && preempted_.contains(leaving.order);
  }
  // With growing room: the step that a request needs its next block for.
  struct Growth {
    std::int64_t step;
    std::uint64_t order;
    int die;
    bool operator<(const Growth& o) const { return step != o.step ? step > o.step : order > o.order; }
  };
  bool grows() const { return !residents_.empty(); }
  std::vector<Leaving>& residents(int die) { return residents_[static_cast<std::size_t>(die)]; }
  void schedule_growth(const Leaving& resident);

  DecodeSpec spec_;
  std::uint64_t seed_;
  std::vector<Die> dies_;
  std::vector<Active> joining_;
  std::priority_queue<Leaving> leaving_;
  std::unordered_set<std::uint64_t> preempted_;  // that stand in leaving_ still, by order
  std::vector<std::vector<Leaving>> residents_;  // with growing room, by die: in the order in which they came
  std::priority_queue<Growth> growing_;
  std::int64_t step_ = 0;
  std::uint64_t order_ = 0;
  std::int64_t most_bytes_ = 0;
  int requests_ = 0;
  bool stepping_ = false, closed_ = false;
  int away_ = 0, paused_ = 0;
  std::uint32_t epoch_;  // of no other instance
};

}  // namespace cm384::service
