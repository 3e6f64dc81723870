// One die: its cores and its memory, in one time-ordered queue. It does not know what network is outside its
// socket.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/prefetch.h"
#include "base/engine/transaction.h"
#include "firmware/abi/memory_map.h"
#include "hw/parameters/die.h"
#include "hw/parameters/memory.h"
#include "hw/parameters/scalar_core.h"
#include "hw/parameters/scheduler.h"
#include "hw/parameters/sdma.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/accelerator.h"
#include "npu_core/causality/die_tracer.h"
#include "npu_core/core_socket.h"
#include "npu_core/devices/devices.h"
#include "npu_core/die/core.h"
#include "npu_core/die/launch.h"
#include "npu_core/die/watch_list.h"
#include "npu_core/memory/backing_store.h"
#include "npu_core/memory/die_memory.h"
#include "npu_core/pipes/pipe_set.h"

namespace cm384::npu {

// Parts of the machine description a die is made from; they must outlive it.
struct DieParameters {
  const hw::Die& die;
  const hw::Scheduler& scheduler;
  const hw::Sdma& sdma;
  const hw::ScalarCoreParameters& scalar;
  const hw::VectorCore& vector;
  const hw::Mte& mte;
  const hw::CubeCore& cube;
  const hw::Mte& cube_mte;
  const hw::Memory& memory;
};

struct DieOptions {
  AivOptions aiv;
  bool cube_cores = false;  // from the start; else they come with the first launch that uses one
};

// Stands in for the programs of a die, for a replay.
class BlockRunner {
 public:
  // The scheduler starts a block; whoever runs it tells the scheduler of its end.
  virtual void run_block(int die, const BlockStart& block) = 0;
  // The first request of a stream's copy leaves: the id of its transaction.
  virtual sim::TransactionId copy_begins(int die, std::uint32_t stream) = 0;

 protected:
  ~BlockRunner() = default;
};

class Die final : public CoreSocket, public Accelerator {
 public:
  Die(int number, const DieParameters& parameters, const DieOptions& options, sim::PayloadPool& payloads,
      DieListener& listener, Time& last_progress);
  ~Die() override;

  void connect(sim::RemotePort& port) override { port_ = &port; }

  int number() const override { return number_; }
  const DieParameters& parameters() const { return parameters_; }
  const Clock& clock() const { return clock_; }
  sim::EventQueue& queue() override { return queue_; }
  DieListener& listener() { return listener_; }

  // Units of its events: cores count from 0.
  void handle(const sim::Event& event) override;
  // Asks the host's cache for what a core's next events will touch, in kPrefetchStages stages of which each
  // follows what the one before has asked for: 0 the core's state, then as CorePipes::prefetch. An event goes
  // to the core and, if its `what` is below CorePipes::kEngines, to that engine.
  static constexpr int kPrefetchStages = 3;
  void prefetch(std::uint32_t core, int stage) const {
    if (stage != 0) return cores_[core]->prefetch(stage);
    sim::prefetch(cores_[core].get(), cores_[core]->touched_bytes());
    sim::prefetch(places_[core].pipes, places_[core].bytes);
  }
  void prefetch_engine(std::uint32_t core, std::uint32_t which, int stage) const {
    if (stage != 0) return cores_[core]->pipes().prefetch_engine(which, stage);
    if (places_[core].engine[which] != nullptr) sim::prefetch(places_[core].engine[which], sizeof(MteEngine));
  }

  // Puts a kernel into the default stream at `at` (not before now()), whose tasks run one after another in
  // the order given. Throws InputError: a core that does not exist or is named twice, no cores.
  std::uint32_t launch(LaunchRequest request, Time at);
  // Its cores by their numbers of the die, in the order of its blocks; they are there from now on. Throws as
  // launch().
  std::vector<std::uint16_t> prepare(const LaunchRequest& request);
  // What launch() throws for these cores.
  void check_cores(const std::vector<std::uint16_t>& cores) const;
  // Number of a kernel that is to be launched by a stream.
  std::uint32_t new_launch() { return launches_++; }
  TaskScheduler& scheduler() { return devices_.scheduler(); }
  SdmaEngine& sdma() { return devices_.sdma(); }
  Devices& devices() { return devices_; }

  BackingStore& store() override { return store_; }
  const BackingStore& store() const { return store_; }
  // Memory less what is set aside for the cores' private memories and the
  // doorbells and queues of the die's own.
  std::uint64_t allocatable() const override;
  // Offset of a core's private memory.
  std::uint64_t private_begin(std::uint16_t core) const {
    return private_offset(core, CM384_PRIVATE_BASE, false);
  }
  DieMemory& memory() { return memory_; }
  Core& core(int n) { return *cores_[static_cast<std::size_t>(n)]; }
  // Vector cores, and cube cores once a launch has used one.
  int cores() const { return static_cast<int>(cores_.size()); }
  bool is_cube(std::uint16_t core) const { return core >= parameters_.die.aiv; }
  // Cube core `n`, which a launch has used.
  Aic& aic(int n) { return core(parameters_.die.aiv + n).aic(); }
  std::uint64_t instructions() const override;
  std::uint64_t memory_requests() const override;
  // Of cores and memory too.
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;
  // One line per core that has not ended.
  std::string report() const override;
  // A core that has stood still since before `time` on what only itself could end, or other blocks of its
  // launch that all stand still like it; -1: none.
  int stuck_core(Time time) const;

  // Its core of this number runs under the debugger, also one that only a launch makes; -1: all of them.
  void attach_debugger(GdbStub& stub, int core = -1);
  // From now on writes into the log what tells who waited for whom. Before the first launch.
  // `requests`: every request as well.
  void keep_log(TraceLog& log, bool requests);
  // By the data path of the SDMA engine, without a descriptor.
  void transfer(const Transfer& transfer) override;
  sim::Probe<sim::TransactionId>& transfer_issued() override { return devices_.sdma().issued; }
  void follow() override { follows_ = true; }
  // From now on blocks are the runner's, and cores run no programs.
  void stand_in(BlockRunner& runner) { runner_ = &runner; }

  // For Core.
  void schedule_scalar(std::uint16_t core, Time at);
  void block_ended(Core& core);
  // For Devices.
  DieTracer* tracer() { return tracer_.get(); }  // nullptr: no log is kept
  sim::TransactionId new_copy(const TransactionStart& start, const CopyStart& copy);
  void start_block(const BlockStart& block);
  void written(std::uint64_t offset, std::uint64_t bytes);
  void written_by_device(std::uint64_t offset, std::uint64_t bytes, sim::TransactionId transaction);
  std::uint64_t private_offset(std::uint16_t core, std::uint64_t address, bool instruction) const;
  Time private_access(const LocalAccess& access);
  // Writes and AMOs of scalar units: when they act in memory; then what they do there. Of payload an AMO
  // leaves the bytes as they are. Returns what was there before.
  Time scalar_write(const LocalAccess& access, bool atomic);
  void write(const LocalAccess& access, const std::byte* bytes, sim::TagMask tags);
  std::uint64_t atomic_update(const LocalAccess& access, const AtomicUpdate& update, bool& payload);
  void filled(const LocalAccess& access, bool instruction, std::int64_t cycle, Time end) {
    if (tracer_) tracer_->filled(access, instruction, cycle, end);
  }
  std::uint64_t sys_count(Time at) const;

  // CoreSocket
  Time now() const override { return queue_.now(); }
  void schedule(std::uint16_t core, Time at, std::uint32_t what, std::uint64_t argument) override;
  bool is_local(std::uint64_t address) const override;
  Time access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) override;
  void expect(std::uint64_t offset) const override;
  void progressed() override { last_progress_ = std::max(last_progress_, now()); }
  Time atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation) override;
  void submit(const sim::Request& request) override;
  sim::PayloadPool& payloads() override { return payloads_; }
  sim::TransactionId new_transaction(std::uint16_t core, const TransactionStart& start) override;
  void transaction_completed(std::uint16_t core, sim::TransactionId transaction, Time at) override;
  void wake_scalar(std::uint16_t core, std::int64_t cycle) override;
  void cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) override;
  void watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) override;

  // RemoteClient, RemoteTarget
  void expect_completion(std::uint16_t core, std::uint32_t tag) const override;
  void expect_access(std::uint64_t offset) const override { expect(offset); }
  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override;

 private:
  static constexpr std::uint32_t kRunScalar =
      0xffff;  // `what` of a core's scalar unit; below it are the Aiv's
  // Argument: the launch in the high half, kBlocksToBegin, the flag.
  static constexpr std::uint32_t kFlagArrives = 0xfffe;
  // When the flag was set, blocks of its launch were still to begin.
  static constexpr std::uint64_t kBlocksToBegin = 0x100;

  // The cores a launch names, as numbers of the die: vector cores first, then cube cores.
  std::vector<std::uint16_t> cores_of(const LaunchRequest& request) const;
  void trace_cores(std::size_t first);
  sim::TransactionId new_id() {
    return (static_cast<std::uint64_t>(number_ + 1) << 48) | ++last_transaction_;
  }
  void tell_begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start);
  static BlockIdentity identity(const BlockStart& block);
  void make_cube_cores();
  void add_core(std::unique_ptr<CorePipes> pipes);
  void arrived(const sim::Request& request);
  // Of a core to memory, told to the tracer.
  Time traced(const LocalAccess& access, bool atomic);
  Time timed(const LocalAccess& access, bool atomic);
  void written_by_core(const LocalAccess& access);
  void check(const LocalAccess& access) const;
  int external_port(std::uint64_t offset) const;

  int number_;
  DieParameters parameters_;
  Clock clock_, sys_clock_;
  sim::EventQueue queue_;
  sim::PayloadPool& payloads_;
  DieListener& listener_;
  Time& last_progress_;
  sim::RemotePort* port_ = nullptr;
  BackingStore store_;
  DieMemory memory_;
  WatchList watches_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<CorePipes::Places> places_;  // of the cores' state, for prefetch()
  std::uint32_t launches_ = 0;
  void send_flag(Time at, std::uint32_t to, std::uint32_t flag, const TaskScheduler::Kernel& kernel);
  void flag_arrives(Core& core, std::uint64_t argument, Time at);

  // A cross-core flag that reached its core before its block began there.
  struct EarlyFlag {
    std::uint32_t launch;
    std::uint16_t core;
    std::uint32_t flag;
  };
  std::vector<EarlyFlag> early_flags_;
  // Sets of mode 2, of each group's AIVs.
  using Arrivals = std::array<std::uint32_t, TaskScheduler::kFlags>;
  std::vector<Arrivals> group_arrivals_;
  const DieOptions options_;
  sim::TransactionId last_transaction_ = 0;
  bool follows_ = false;
  GdbStub* debugger_ = nullptr;
  int debugged_core_ = -1;  // all
  BlockRunner* runner_ = nullptr;
  std::unique_ptr<DieTracer> tracer_;  // while a log is kept
  Devices devices_;
};

}  // namespace cm384::npu
