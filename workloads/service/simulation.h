// A service under a trace of requests, event by event: prompts wait for a prefill instance, which takes them
// in batches and reads what is cached; contexts go over the RDMA plane to a die of a decode instance that has
// room for them; all dies of an instance step together, and a request takes as many steps as its predicted
// tokens are lucky.
//
// The first token of an answer comes out of prefill. A die is given a request when the whole of its context,
// answer included, fits; with growing room, when its context so far does. Equal requests, deployment and seed
// give equal results.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <vector>

#include "workloads/service/deployment.h"
#include "workloads/service/faults.h"
#include "workloads/service/library.h"
#include "workloads/service/npu_budget.h"
#include "workloads/service/prompt_cache.h"
#include "workloads/service/request_evidence.h"
#include "workloads/service/requests.h"
#include "workloads/service/service_watch.h"
#include "workloads/service/step_samples.h"
#include "workloads/service/token_gaps.h"
#include "workloads/service/training_beside.h"

namespace cm384::service {

// Where a request stands. A fault takes it back from any state but the first and the last to `waiting`.
enum class RequestState : std::uint8_t {
  pending,       // has not arrived
  waiting,       // for a prefill instance
  prefilling,    // in a batch
  ready,         // has its first token, and a context that waits for a decode die
  transferring,  // its context is on its way
  decoding,
  swapped,  // its context is in host memory, or comes back
  done,
  refused  // too many waited when it came
};

// What became of a request. Points of time count from the first arrival. Each is valid from the state on that
// it begins, in this order from `waiting`; those of the transfer only where the answer has more than one
// token.
struct Served {
  Time arrival{}, prefill_start{}, first_token{}, transfer_start{}, transferred{}, done{};
  std::int32_t cached_dram = 0, cached_evs = 0, cached_obs = 0;  // tokens
  Time last_token{};                                             // before it waits, or before its next step
  Time longest_gap{};            // between two deliveries of its tokens: 0 for an answer of one token
  std::int32_t steps = 0;        // of decode, since its context came to its die last
  std::int32_t made = 0;         // tokens of the answer before its context was made last
  std::int32_t kept = 0;         // that decode gave since then, before it was swapped out last
  std::int32_t die = -1;         // of decode, over all instances, from `transferring` on; else -1
  std::int16_t instance = -1;    // of prefill
  std::int16_t restarts = 0;     // after faults; times are of the last attempt
  std::int32_t preemptions = 0;  // its context was dropped or swapped out for want of room
  RequestState state = RequestState::pending;

  std::int32_t cached() const { return cached_dram + cached_evs + cached_obs; }
  double ttft_ms() const { return (first_token - arrival).us() * 1e-3; }
  double e2e_ms() const { return (done - arrival).us() * 1e-3; }
  double queue_ms() const { return (prefill_start - arrival).us() * 1e-3; }
  double longest_gap_ms() const { return longest_gap.us() * 1e-3; }
  // 0 for an answer of one token.
  double tpot_ms(std::int32_t output) const {
    return output > 1 ? (done - first_token).us() * 1e-3 / (output - 1) : 0;
  }
};

// The service at a moment.
struct Occupancy {
  Time at{};
  std::int32_t waiting = 0, prefill_busy = 0, transferring = 0, decoding = 0, waiting_decode = 0;
  double kv_share = 0;  // of the room of all dies that is promised to requests
  std::int64_t dram_blocks = 0, evs_blocks = 0, obs_blocks = 0;
  std::int32_t out_of_order = 0;                             // instances away or paused, dies and planes lost
  std::int32_t prefill_instances = 0, decode_instances = 0;  // of the pools, those that drain too
};

// That are kept of a run: an even number.
inline constexpr std::size_t kMostOccupancies = 1024;

struct ServiceOptions {
  std::uint64_t seed = 1;
  int tenants = 1;
  const RequestTrace* warm = nullptr;  // requests of before, whose blocks are in the cache at the beginning
  Time sample{};  // distance of occupancies, doubled each time that there are kMostOccupancies; 0: none
  bool allow_extrapolation = false;
  int step_samples = 0;            // steps of decode that are drawn
  int batch_samples = 0;           // batches of prompts, likewise
  bool evidence = false;           // of each request
  Bandwidth rdma{25'000'000'000};  // of a die's link
  Time rdma_latency{};
  Faults faults;
  NpuBudget* npus = nullptr;  // that instances are started on, as this member; null: there are enough
  std::size_t member = 0;
  SharedBlocks shared_blocks;                               // of the memory service, likewise
  ServiceWatch watch;                                       // empty: nobody looks
  const volatile std::sig_atomic_t* interrupted = nullptr;  // not 0: the run ends at the next event
  // Called now and then: the share of the requests that are done, and the time of the service.
  std::function<void(double, Time)> progress;
};

struct ServiceResult {
  bool complete = true;        // false: interrupted, and nothing here is of the whole
  std::vector<Served> served;  // by number of the request
  std::vector<Occupancy> occupancy;
  std::vector<StepSample> steps_drawn;
  std::vector<BatchSample> batches_drawn;
  std::vector<TokenGap> gaps;
  Time end{};
  double request_seconds = 0;                    // integral of requests that have arrived and are not done
  double prefill_busy_s = 0, decode_busy_s = 0;  // over instances
  double rdma_busy_s = 0;                        // over receiving links
  std::array<double, kEvidences> evidence_s{};   // busy time by Evidence
  std::vector<LatencyEvidence> evidence_of;      // by number of the request, where it was asked for
  double worst_error = 0;                        // of an interpolated time, by leaving points out
  double worst_scaled = 0;                       // of a time by scaled points, besides
  std::int64_t steps = 0, batches = 0, prompt_tokens = 0, computed_tokens = 0, output_tokens = 0,
               restarted = 0, renewals = 0, role_switches = 0, refused = 0, preempted = 0, swapped = 0,
               scaled_up = 0, scaled_down = 0, decode_scaled_up = 0, decode_scaled_down = 0,
               denied = 0;  // looks at which other services had the NPUs that were wanted
  std::int64_t cut_batches =
      0;  // of prompts, that more was waiting for and the library has measured no larger ones
  std::int64_t lost_prompt_tokens = 0, lost_output_tokens = 0;  // computed, and lost by faults
  double degraded_s = 0;                         // with anything out of order, until the last answer
  double prefill_pool_s = 0, decode_pool_s = 0;  // instances x time that they belong to the pool
  double batch_sum = 0;                          // of requests over steps
  PoolCounts cache;
  double kv_peak = 0;  // of a die's room
};

// Throws InputError for a request that no die could hold or whose prompt alone the library has no time for,
// for faults of what is not there, and where a time is needed that the library has not measured, unless
// extrapolation is allowed.
void check_service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                   const ServiceOptions& options);
ServiceResult serve(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                    const ServiceOptions& options);

// Several services that begin at one moment and have nothing in common but the NPUs that the load of each may
// take, so many in all, and the memory service of the first, where that is shared. Throws InputError as
// above, and where their deployments have more.
struct SharingService {
  std::string name;  // before what is refused of it
  const RequestTrace& trace;
  const Deployment& deployment;
  const Library& library;
  ServiceOptions options;  // npus and member are set
  double share = 1;        // weight by which it is due to a part of all NPUs
};
struct Sharing {
  int npus = 0;
  bool blocks = false;  // of the memory service
  // Sizes of a training on NPUs that are free.
  std::vector<TrainingSize> training{};
  TrainingTimes training_times{};
};
// What became of the training, until the last service ended.
struct TrainingResult {
  double seconds = 0, tokens = 0, npu_s = 0;
  double fixed_tokens_s = 0;  // on those NPUs alone that services never took
  std::int64_t changes = 0;
};
struct SharedResult {
  std::vector<ServiceResult> services;
  TrainingResult training;
};
SharedResult serve_together(std::vector<SharingService>& services, const Sharing& sharing);

}  // namespace cm384::service
