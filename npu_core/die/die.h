// One die: its cores and its memory, in one time-ordered queue. It does not know what network is outside its
// socket.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hw/parameters/die.h"
#include "hw/parameters/launch.h"
#include "hw/parameters/memory.h"
#include "hw/parameters/scalar_core.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/core_socket.h"
#include "npu_core/die/core.h"
#include "npu_core/die/launch.h"
#include "npu_core/die/watch_list.h"
#include "npu_core/memory/backing_store.h"
#include "npu_core/memory/die_memory.h"
#include "sim/event_queue.h"
#include "sim/transaction.h"

namespace cm384::npu {

// Parts of the machine description a die is made from; they must outlive it.
struct DieParameters {
  const hw::Die& die;
  const hw::Launch& launch;
  const hw::ScalarCoreParameters& scalar;
  const hw::VectorCore& vector;
  const hw::Mte& mte;
  const hw::Memory& memory;
};

struct DieOptions {
  AivOptions aiv;
  bool causality = false;  // Die::trace() from the start
};

class Die final : public CoreSocket, public sim::RemoteClient, public sim::RemoteTarget {
 public:
  // Units of the die's events: cores count from 0; others may use the queue from kFirstForeignUnit on.
  static constexpr std::uint32_t kFirstForeignUnit = 0x10000;

  Die(int number, const DieParameters& parameters, const DieOptions& options, sim::PayloadPool& payloads,
      DieListener& listener, Time& last_progress);
  ~Die() override;

  // What leads out of the die; set before the first event.
  void connect(sim::RemotePort& port) { port_ = &port; }

  int number() const { return number_; }
  const DieParameters& parameters() const { return parameters_; }
  const Clock& clock() const { return clock_; }
  sim::EventQueue& queue() { return queue_; }
  DieListener& listener() { return listener_; }

  // Handles one event of the queue whose unit is below kFirstForeignUnit.
  void handle(const sim::Event& event);
  // Asks the host's cache for what handle() will touch first.
  void prefetch(const sim::Event& event) const {
    if (event.unit >= touched_.size()) return;
    const char* const at = touched_[event.unit][std::min<std::uint32_t>(event.what, kParts - 1)];
    for (std::size_t k = 0; k < kTouchedBytes; k += 64) __builtin_prefetch(at + k, 1);
  }

  // Starts a task at `at` (not before now()). Tasks of one die run one after another in the order given.
  // Throws InputError: a core that does not exist or is named twice, no cores.
  std::uint32_t launch(LaunchRequest request, Time at);
  // Launches given and not finished.
  std::size_t pending() const { return pending_.size(); }

  // The host's view of memory, without time.
  BackingStore& store() { return store_; }
  const BackingStore& store() const { return store_; }
  // Bytes the host may allocate: memory less what is set aside for the cores' private memories.
  std::uint64_t allocatable() const;
  DieMemory& memory() { return memory_; }
  Core& core(int n) { return *cores_[static_cast<std::size_t>(n)]; }
  int cores() const { return static_cast<int>(cores_.size()); }
  std::uint64_t instructions() const;
  // Of cores and memory too.
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  // One line a core that has not ended.
  std::string report() const;

  // From now on tells the listener of transactions and keeps who wrote a line last, to say what they depend
  // on.
  void trace();

  // For Core.
  void schedule_scalar(std::uint16_t core, Time at);
  void block_ended(Core& core);
  std::uint64_t private_offset(std::uint16_t core, std::uint64_t address, bool instruction) const;
  Time private_access(const LocalAccess& access);
  std::uint64_t sys_count(Time at) const;

  // CoreSocket
  Time now() const override { return queue_.now(); }
  void schedule(std::uint16_t core, Time at, std::uint32_t what, std::uint64_t argument) override;
  bool is_local(std::uint64_t address) const override;
  Time access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) override;
  void expect(std::uint64_t offset) const override;
  void progressed() override { last_progress_ = std::max(last_progress_, now()); }
  Time atomic_add(const LocalAccess& access, const std::byte* bytes, bool floating) override;
  void submit(const sim::Request& request) override;
  sim::PayloadPool& payloads() override { return payloads_; }
  sim::TransactionId new_transaction(std::uint16_t core, const TransactionStart& start) override;
  void transaction_completed(std::uint16_t core, sim::TransactionId transaction, Time at) override;
  void wake_scalar(std::uint16_t core, std::int64_t cycle) override;
  void cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) override;
  void watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) override;

  // RemoteClient, RemoteTarget
  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override;

 private:
  struct Task {
    std::uint32_t number = 0;
    LaunchRequest request;
    LaunchRecord record;
    std::uint32_t running = 0;
    bool started = false;
  };
  static constexpr std::uint32_t kLaunchUnit = kFirstForeignUnit - 1;
  static constexpr std::uint32_t kRunScalar =
      0xffff;  // `what` of a core's scalar unit; below it are the Aiv's
  static constexpr std::uint32_t kFlagArrives = 0xfffe;
  static constexpr int kFlags = 16;
  static constexpr std::size_t kParts = Aiv::kEngines + 1;
  static constexpr std::size_t kTouchedBytes = 384;

  // What a core's next transaction may depend on.
  struct Causes {
    sim::TransactionId foreign = 0;           // the last one from outside whose data it read
    TransactionCompleted previous;            // its own last one that was complete
    std::vector<TransactionCompleted> ahead;  // complete at times to come
  };

  void start_task();
  void end_task();
  void written(std::uint64_t offset, std::uint64_t bytes);
  void written_by(const LocalAccess& access);
  void check(const LocalAccess& access) const;
  int external_port(std::uint64_t offset) const;

  int number_;
  DieParameters parameters_;
  Clock clock_;
  sim::EventQueue queue_;
  sim::PayloadPool& payloads_;
  DieListener& listener_;
  Time& last_progress_;
  sim::RemotePort* port_ = nullptr;
  BackingStore store_;
  DieMemory memory_;
  WatchList watches_;
  std::vector<std::unique_ptr<Core>> cores_;
  // For prefetch(): of each core what its MTE engines' events and its scalar unit's touch first.
  std::vector<std::array<const char*, kParts>> touched_;
  std::deque<Task> pending_;  // the first one runs
  std::uint32_t launches_ = 0;
  std::array<std::uint32_t, kFlags> barrier_arrivals_{};
  sim::TransactionId last_transaction_ = 0;
  bool causality_;
  std::vector<Causes> causes_;  // of each core, while tracing
};

}  // namespace cm384::npu
