// Decode instances that step, each by itself, over the requests whose contexts they have.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "workloads/service/decode_instance.h"
#include "workloads/service/host_memory.h"
#include "workloads/service/service_run.h"
#include "workloads/service/step_samples.h"

namespace cm384::service {

class DecodePool {
 public:
  using Lost = DecodeInstance::Lost;

  // Throws InputError where the library has no step of such an instance.
  DecodePool(ServiceRun& run, const Library& library, HostMemory& host);

  int dies_per_instance() const { return dies_; }
  std::uint32_t instance_of(int die) const { return static_cast<std::uint32_t>(die / dies_); }

  // Dies are numbered over all instances. The die with the fewest requests that has a slot and `bytes` of
  // room; nothing: there is none. No new request is admitted while others wait in host memory to return.
  // `returns`: the instance that one comes back to from there.
  std::optional<int> find_die(std::int64_t bytes, std::optional<std::uint32_t> returns = {}) const;
  // Room that a request is given for its context when it is sent.
  std::int64_t bytes_of(std::uint32_t request) const;
  void reserve(int die, std::int64_t bytes);
  void release(int die, std::int64_t bytes);
  // Steps that the answer of a request takes, drawn for it.
  std::int32_t steps_for(std::uint32_t request) const;

  // The context of the request has arrived at its die.
  void join(std::uint32_t request);
  // Nothing happens where the instance steps, does not run, or has no requests. With growing room: requests
  // that had to leave their die, with the tokens that they were given there; they decode still. The step
  // waits until those that are swapped out are in host memory.
  struct Begun {
    std::vector<Lost> preempted{};
    std::optional<Time> span{};  // nothing: no step
    std::uint32_t epoch = 0;
    int requests = 0;
  };
  Begun begin_step(std::uint32_t i);
  // The step that was begun ends so much later.
  void extend(std::uint32_t i, Time more);
  // Whether an event of a step is of the one under way.
  bool is_current(std::uint32_t i, std::uint32_t epoch) const { return instances_[i].dies.epoch() == epoch; }
  // Requests that had their last step.
  std::vector<DecodeInstance::Active> complete_step(std::uint32_t i);

  // The instance is away until end_outage(), without its requests.
  std::vector<Lost> lose_all(std::uint32_t i);
  // What comes back, resumes, or loses a die while it is paused.
  DecodeInstance& instance(std::uint32_t i) { return instances_[i].dies; }
  // A lost request: no step counts for it any more.
  void forget(std::uint32_t request);
  // The step under way is lost.
  void pause(std::uint32_t i);
  void set_lost_planes(std::size_t planes);

  void close(std::uint32_t i, std::size_t role_switch);
  // The role switch that the instance leaves with, if it is closed and has nothing left.
  std::optional<std::size_t> leave_if_drained(std::uint32_t i);
  void add_instance(Time since);
  struct PoolLoad {
    // In instances: slots or room for contexts, whichever is more, that requests hold; and dies that are not
    // lost, of instances that take requests.
    double used = 0, there = 0;
    int open = 0;                         // instances, those that are away too
    std::optional<std::uint32_t> idlest;  // of those that take requests: the last one with the fewest of them
  };
  // `waiting` contexts wait besides, of so many bytes.
  PoolLoad load(std::int64_t waiting, std::int64_t bytes) const;

  void set_occupancy(Occupancy& occupancy) const;
  void add_to(ServiceResult& result);  // result.end is known; drawn steps move there

 private:
  struct Instance {
    DecodeInstance dies;
    Membership member{};
    Time begin{}, end{};         // of the step under way
    EvidenceSum known{}, all{};  // of it; of all that have ended
    DecodeInstance::Load load{};
    int requests = 0;                     // of the step
    std::vector<std::uint32_t> joined{};  // of these, for their first step
    Time last_end{};                      // of the step before: all but those of `joined` took part in it
    StepGaps gaps{};
    std::int64_t count = 0;  // of steps so far
  };
  DecodeInstance& dies_of(int die) { return instances_[instance_of(die)].dies; }
  void end_step(std::uint32_t i, bool lost);
  const StepTime& step_time(const DecodeInstance::Load& load);
  Time last_token(std::uint32_t request) const;
  void count_gaps(Instance& instance);
  void end_gaps(const Instance& instance, std::uint32_t request);
  static bool waits_for_first_step(const Instance& instance, std::uint32_t request);

  ServiceRun& run_;
  HostMemory& host_;
  DecodeSteps steps_;
  int dies_;
  std::vector<Instance> instances_;
  StepSamples samples_;
  std::vector<std::uint32_t> gaps_before_;  // by request: of its instance, at the end of its first step there
  std::unordered_map<std::uint64_t, StepTime> known_steps_;
  double plane_factor_ = 1;  // times as long is a step for the planes that are lost
  double busy_s_ = 0, batch_sum_ = 0;
  std::int64_t count_ = 0, renewals_ = 0;  // of steps; of placements of experts
};

}  // namespace cm384::service
