// The service that serve() runs (workloads/service/simulation.h): its state, and what happens at each kind of
// event.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "workloads/service/decode_instance.h"
#include "workloads/service/event_line.h"
#include "workloads/service/prefill_times.h"
#include "workloads/service/simulation.h"
#include "workloads/service/step_samples.h"

namespace cm384::service {

inline Time of_ms(double ms) {
  return {std::llround(ms * 1e9)};
}
inline double seconds(Time time) {
  return time.us() * 1e-6;
}

class Service {
 public:
  Service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
          const ServiceOptions& options);
  ServiceResult run();

 private:
  using Kind = Event::Kind;
  struct PrefillInstance {
    bool busy = false, closed = false;  // closed: it takes no further batches
    int away = 0, paused = 0, lost_dies = 0;
    int held = 0;                         // contexts that have not been sent
    Time since{}, until = Time::never();  // of its belonging to the pool
    std::uint32_t epoch = 0;
    std::vector<std::uint32_t> batch;  // prompts that end with it
    std::vector<Time> link_free;       // of each die's RDMA link
    Time begin{}, end{};               // of the batch
    std::int64_t tokens = 0;           // that it computes
  };
  struct Step {  // under way
    Time begin{}, end{};
    DecodeInstance::Load load;
    int requests = 0;
    std::vector<std::uint32_t> joined;  // of these, for their first step
    Time last_end{};                    // of the step before
    std::int64_t count = 0;             // of steps so far
    Time since{}, until = Time::never();
  };
  // Instances that change their pool together.
  struct Leaving {
    bool prefill = true;
    int open = 0;  // that are not done yet
  };

  // Requests and prefill: service.cpp.
  void next_arrival();
  void take(const Event& event);
  void arrive(std::uint32_t k);
  void start_prefill(std::uint32_t i);
  double look_up(const Request& r, Served& s);
  bool is_beyond(const PrefillWork& work, int prompts) const;
  void prefill_done(std::uint32_t i);
  void done(std::uint32_t k);
  void sample_until(Time end);
  Occupancy occupancy() const;
  void count(const StepTime& time, const char* what, double first, double second);
  void end_batch(std::uint32_t i, bool lost);

  // Decode: service_decode.cpp.
  void admit();
  void transfer(std::uint32_t k, int instance, int die, std::int64_t bytes);
  void transferred(std::uint32_t k, std::uint32_t attempt);
  void start_step(std::uint32_t i);
  const StepTime& step_time(const DecodeInstance::Load& load);
  void step_done(std::uint32_t i);
  void end_step(std::uint32_t i, bool lost);
  void count_gaps(Step& step);
  void tell(const Activity& activity) const {
    if (options_.watch) options_.watch(activity);
  }

  // What goes wrong: service_faults.cpp.
  void go_away(const Outage& outage, std::uint32_t number);
  void come_back(const Outage& outage);
  void start_anew(std::vector<DecodeInstance::Lost> requests);
  void lose_prefill_work(std::uint32_t i, bool contexts);
  std::vector<DecodeInstance::Lost> on_the_way_to(std::uint32_t decode, int die) const;
  void lose_die(const DieFault& fault);
  void pause(bool prefill, std::uint32_t i, Time span, bool restart);
  void resume(bool prefill, std::uint32_t i, bool restart);
  void lose_plane(const PlaneFault& fault, std::uint32_t number);
  void find_plane(const PlaneFault& fault);
  void plan_faults();
  void broken(int change);  // so many more parts are out of order

  // Instances that change their pool: service_roles.cpp.
  void switch_roles(const RoleSwitch& change);
  void leave_prefill(std::uint32_t i);
  void leave_decode(std::uint32_t i);
  void left(std::size_t group);
  void take_role(const Leaving& group);
  void sum_pools();

  void push(Time at, Kind kind, std::uint32_t subject, std::uint32_t epoch = 0) {
    events_.push(at, kind, subject, epoch);
  }
  std::int64_t blocks_of(Bytes bytes) const;
  const Request& request(std::uint32_t k) const { return trace_.requests[k]; }
  Served& served(std::uint32_t k) { return result_.served[k]; }
  double share_done() const {  // of the requests
    const auto ended = static_cast<std::int64_t>(arrivals_) - in_system_;
    return static_cast<double>(ended) / static_cast<double>(std::max<std::size_t>(1, trace_.requests.size()));
  }
  std::uint32_t served_count() const { return static_cast<std::uint32_t>(result_.served.size()); }
  std::uint32_t tenant_of(const Request& r) const {
    return r.session % static_cast<std::uint32_t>(options_.tenants);
  }
  std::int64_t context_of(const Request& r) const {  // bytes, answer included
    return static_cast<std::int64_t>(r.prompt + r.output) * deployment_.decode.token.count;
  }

  const RequestTrace& trace_;
  const Deployment& deployment_;
  const ServiceOptions& options_;
  PrefillTimes prefill_times_;
  DecodeSteps steps_;
  BlockPool pool_;
  std::vector<PrefillInstance> prefill_;
  std::vector<DecodeInstance> decode_;
  std::vector<Step> stepping_;  // by decode instance
  StepSamples step_samples_;
  EventLine events_;
  Time now_{}, last_done_{};
  Time sample_every_{}, next_sample_{};
  std::size_t next_ = 0, arrivals_ = 0;
  std::int64_t in_system_ = 0;
  std::int32_t transferring_ = 0;
  std::vector<int> planes_;  // that are lost
  int broken_ = 0;
  Time broken_since_{};
  std::vector<std::pair<Time, Time>> degraded_;
  std::vector<Leaving> leaving_;
  std::unordered_map<std::uint32_t, std::size_t> prefill_leaves_, decode_leaves_;  // with which group
  std::deque<std::uint32_t> waiting_, ready_;
  // The first that waits, where a batch had no room for it: it has looked up what is cached, in so many ms.
  std::optional<std::pair<std::uint32_t, double>> held_over_;
  std::multimap<std::int32_t, std::uint32_t> followers_;  // of a request, in the order of the trace
  std::unordered_map<std::uint64_t, StepTime> known_steps_;
  ServiceResult result_;
};

}  // namespace cm384::service
