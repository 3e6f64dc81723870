// The host's thread that drives one die: a list of calls, executed in simulated time. A call takes the
// thread for host.call. One that submits a copy, or a kernel outside a captured graph, takes it until its
// entry has left, submit_latency: nobody else runs runtime and driver. The entry of a call that submits
// arrives at the die submit_latency + doorbell_latency after it began; a call that synchronises holds the
// thread until the completion was seen. It lives in its die's module and meets the threads of other dies only
// by messages. An AICPU of the die may fill streams in its place: one call hands it a list of entries, which
// it writes one after another, aicpu.entry apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "firmware/abi/queue.h"
#include "hw/parameters/aicpu.h"
#include "hw/parameters/host.h"
#include "npu_core/devices/scheduler/task_record.h"
#include "npu_core/die/die.h"
#include "system/machine/driver.h"
#include "system/machine/supernode.h"

namespace cm384::host {

// One entry that the host submitted, with the host's side of its times.
struct HostTask {
  Time called;   // the thread began the call
  Time arrived;  // entry and doorbell are at the die
  Time seen;     // the host could know of the completion
  bool finished = false;
  npu::TaskRecord record;
};

// A barrier of host threads; shared by their calls.
struct HostBarrier {
  class HostThread* counter = nullptr;     // counts those that come
  std::size_t number = 0;                  // among those that it counts
  std::size_t expected = 0;                // threads
  std::vector<class HostThread*> threads;  // all of them, once the last one comes
  std::size_t arrived = 0;
};

struct HostCall {
  enum class Kind : std::uint8_t { submit, synchronize, compute, function, barrier, unfold };
  static constexpr std::uint32_t kAllStreams = 0xffffffff;

  Kind kind = Kind::submit;
  std::uint32_t stream = kAllStreams;
  std::size_t task = 0;              // submit: number of the HostTask
  cm384_task entry{};                // submit
  Time time;                         // compute
  std::function<void()> function;    // function
  std::shared_ptr<HostBarrier> met;  // barrier
  std::uint64_t record = 0;          // of a replay: the call's
  std::vector<HostCall> unfolded;    // unfold: the calls that submit, which an AICPU makes instead
};

class HostThread final : public supernode::Driver {
 public:
  // Attaches to a die of `machine`, which outlives its use.
  HostThread(supernode::Supernode& machine, int die);

  // Appends a call; an idle thread begins it at `at` or when it has done its earlier ones. Inside a function
  // of this thread the calls it makes come before those that stand behind the function.
  void call(HostCall call, Time at);
  // It has done all its calls.
  bool idle() const { return calls_.empty() && !armed_; }
  // Called for every call as it is executed, with its begin and the time at which the thread continues; a
  // wait is reported when it is over.
  std::function<void(const HostCall& call, Time begin, Time end)> call_done;
  // Makes this thread count the threads that reach `barrier`.
  void count(const std::shared_ptr<HostBarrier>& barrier);
  // Number of a new task, for a call that submits.
  std::size_t new_task();
  const HostTask& task(std::size_t number) const { return tasks_[number]; }
  std::size_t tasks() const { return tasks_.size(); }
  // Replaces the tasks by those of the process that executed them (base/engine/peers.h).
  void replace_tasks(std::vector<HostTask> tasks) { tasks_ = std::move(tasks); }
  const std::vector<HostTask>& all_tasks() const { return tasks_; }

  void handle(int die, const sim::Event& event) override;
  void task_finished(int die, const npu::TaskRecord& record) override;
  std::string report(int die) const override;

 private:
  enum What : std::uint32_t { kNext, kArrives, kSeen, kAtBarrier, kLeaveBarrier, kUnfold, kArrivesFromAicpu };
  struct StreamState {
    std::deque<std::size_t> sent;  // tasks submitted and not finished, in order
    std::uint32_t promised = 0;    // that an AICPU has yet to submit
    std::uint32_t unseen = 0;      // submitted, completion not seen
    std::uint32_t seen = 0;        // completions
  };

  void next();
  void go_on(Time at);
  void done(const HostCall& call, Time begin, Time end);
  bool submit(const HostCall& call);
  // Sends the entry of the call to the die.
  void send(const HostCall& call, std::deque<HostCall>& way, Time latency, What arrives);
  void arrive(std::deque<HostCall>& way, Time at);
  bool has_room(std::uint32_t stream);
  void hand_over(const HostCall& call);
  void unfold();
  bool drained(std::uint32_t stream) const;
  void seen(std::uint32_t stream);
  void meet(HostBarrier& barrier);
  StreamState& state(std::uint32_t stream);

  hw::Host parameters_;
  hw::Aicpu aicpu_;
  npu::Die& die_;
  std::uint32_t unit_;
  std::atomic<std::size_t>& unfinished_;
  std::deque<HostCall> calls_;
  std::size_t insert_at_ = 0;  // while a function runs: where its calls go
  bool in_function_ = false;
  bool armed_ = false;              // an event will go on with the next call
  bool waiting_ = false;            // the call in front waits for completions or others
  Time free_;                       // from when on the thread may begin a call
  std::deque<HostCall> under_way_;  // submitted, not yet arrived, in order
  std::deque<HostCall> unfolding_;  // that the AICPU has yet to submit, in order
  std::deque<HostCall> by_aicpu_;   // submitted by it, not yet arrived, in order
  bool aicpu_armed_ = false;        // an event will go on with the next of them
  std::vector<StreamState> streams_;
  std::vector<HostTask> tasks_;
  std::vector<std::shared_ptr<HostBarrier>> barriers_;  // that this thread counts
};

}  // namespace cm384::host
