// Instances that take batches of the prompts that wait, read what is cached of them and compute the rest, as
// a whole or in chunks over several batches; a context stays with its instance until it has been sent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "workloads/service/prefill_times.h"
#include "workloads/service/prompt_cache.h"
#include "workloads/service/prompt_router.h"
#include "workloads/service/service_run.h"
#include "workloads/service/step_samples.h"

namespace cm384::service {

class PrefillPool {
 public:
  // `place`: where the context of a prompt will go needs room before the prompt is begun.
  struct Place {
    std::function<bool(std::uint32_t request, std::uint32_t instance)> is_free;
    std::function<void(std::uint32_t request, std::uint32_t instance)> reserve;
  };
  PrefillPool(ServiceRun& run, const Library& library, Place place = {});

  std::uint32_t size() const { return static_cast<std::uint32_t>(instances_.size()); }
  void set_occupancy(Occupancy& occupancy) const;

  // Whether as many requests wait as may (prefill.most_waiting).
  bool is_full() const;
  void enqueue(std::uint32_t request) { router_.push(waiting_prompt(request)); }
  // In order of their numbers, ahead of all that wait and are as urgent.
  void requeue(const std::vector<std::uint32_t>& requests);

  // Nothing happens where the instance is busy or stopped, or there is nothing to compute: nobody waits, or
  // it is closed, and no prompt was begun.
  void start_batch(std::uint32_t i);
  // As above without scheduling its end: returns how long the batch takes, or nothing. `taken` tokens of the
  // budget are of others; `begins`: prompts too that were not begun.
  std::optional<Time> begin_batch(std::uint32_t i, int taken = 0, bool begins = true);
  // The batch that begin_batch() began ends so much later.
  void extend(std::uint32_t i, Time more);
  struct PoolLoad {
    std::int64_t waiting_tokens = 0;
    int open = 0;                     // instances
    std::vector<std::uint32_t> idle;  // the open ones that have nothing to compute
  };
  PoolLoad load() const;
  bool is_busy(std::uint32_t i) const { return instances_[i].busy; }
  // Whether an event of a batch is of the one under way.
  bool is_current(std::uint32_t i, std::uint32_t epoch) const { return instances_[i].epoch == epoch; }
  // Requests whose prompt is complete: each has its first token then.
  std::vector<std::uint32_t> complete_batch(std::uint32_t i);
  // All prompts that it has begun; they are still prefilling.
  std::vector<std::uint32_t> abort_batch(std::uint32_t i);

  // The blocks of its answer are kept for the next turn.
  void keep_answer(std::uint32_t request);

  // Contexts that have not been sent, by number of the request.
  std::vector<std::uint32_t> contexts(std::uint32_t i) const;
  void hold_context(std::uint32_t i, std::uint32_t request);
  void release_context(std::uint32_t i, std::uint32_t request);  // that it holds

  // Stopped as long as more calls of stop() than of resume() came. Prompts that were sent to an instance that
  // stops or is closed go to others.
  void stop(std::uint32_t i);
  void resume(std::uint32_t i) { --instances_[i].stopped; }
  void lose_dies(std::uint32_t i, int dies) { instances_[i].lost_dies += dies; }
  void set_lost_planes(std::size_t planes);

  void close(std::uint32_t i, std::size_t role_switch);
  // The role switch that the instance leaves with, if it is closed and has nothing left.
  std::optional<std::size_t> leave_if_drained(std::uint32_t i);
  std::uint32_t add_instance(Time since);

  void add_to(ServiceResult& result) const;  // result.end is known

 private:
  // A prompt that was begun.
  struct Prompt {
    std::uint32_t request = 0;
    std::int32_t context = 0;  // of its tokens: cached, or computed by batches before
    std::int32_t fresh = 0;    // that the batch under way computes
    std::int32_t tokens = 0;   // in all
  };
  struct Instance {
    bool busy = false;
    int stopped = 0, lost_dies = 0;
    std::vector<std::uint32_t> contexts;  // in no order
    Membership member;
    std::uint32_t epoch = 0;
    std::vector<Prompt> prompts;  // in the order in which they were begun
    Time begin{}, end{};          // of the batch
    int batch = 0;                // prompts of it
    EvidenceSum known{};          // of it
    std::int64_t tokens = 0;      // that it computes
  };
  // What a batch is made of, and how long its reads take.
  struct Batch {
    PrefillWork work;
    int prompts = 0;
    double read_ms = 0;
    bool from_store = false;
    int budget = 0;  // of tokens
  };
  void fill_batch(Instance& instance, Batch& batch);
  void begin_prompts(Instance& instance, std::uint32_t i, Batch& batch);
  bool has_room(const Batch& batch, std::int64_t prompt) const;
  std::int32_t add_to_batch(Batch& batch, std::int32_t context, std::int32_t left);
  double look_up(std::uint32_t request, std::uint32_t i);
  bool takes_prompts(std::uint32_t i) const {
    return instances_[i].stopped == 0 && instances_[i].member.open();
  }
  void send_elsewhere(std::uint32_t i);
  PromptCache& cache_of(std::uint32_t i) { return caches_[caches_.size() == 1 ? 0 : i]; }
  bool is_beyond(const PrefillWork& work, int prompts) const;
  WaitingPrompt waiting_prompt(std::uint32_t request) const;
  void end_batch(std::uint32_t i, bool lost);
  void draw(std::uint32_t i);

  ServiceRun& run_;
  PrefillTimes times_;
  Place place_;
  std::deque<PromptCache> caches_;  // one, or one for each instance
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> context_at_;  // where a request stands in Instance::contexts
  PromptRouter router_;
  // Of prompts that a batch had no room for: how many ms reading their cached part will take.
  std::unordered_map<std::uint32_t, double> looked_up_;
  double plane_factor_ = 1;  // times as long is a batch for the planes that are lost
  BatchSamples samples_;
  double busy_s_ = 0;
  std::int64_t batches_ = 0, prompt_tokens_ = 0, computed_tokens_ = 0, cut_batches_ = 0;
};

}  // namespace cm384::service
