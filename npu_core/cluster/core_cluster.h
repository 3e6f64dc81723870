// The cores of a die: which of them a launch takes, what a block knows of itself, their events, and what they
// see of the die (CoreSocket).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/prefetch.h"
#include "base/engine/statistics.h"
#include "npu_core/cluster/core.h"
#include "npu_core/cluster/cross_core_flags.h"
#include "npu_core/core_socket.h"
#include "npu_core/die/launch.h"
#include "npu_core/pipes/mte_engine.h"

namespace cm384::npu {

class CoreCluster final : private CoreSocket {
 public:
  // `what` of a core's events; those below are its pipes'.
  static constexpr std::uint32_t kRunScalar = 0xffff, kFlagArrives = 0xfffe;

  // Makes the vector cores. Cube cores are made for the first launch that uses one, or by make_cube_cores().
  CoreCluster(Die& die, const AivOptions& options);
  void make_cube_cores();

  // Vector cores are numbered from 0, cube cores behind them, once a launch has used one.
  Core& core(int n) { return *cores_[static_cast<std::size_t>(n)]; }
  int size() const { return static_cast<int>(cores_.size()); }
  bool is_cube(std::uint16_t core) const;
  // Cube core `n`, which a launch has used.
  Aic& aic(int n);
  std::uint64_t instructions() const;

  // The cores of a launch, as numbers within the die, in the order of its blocks; makes those that do not
  // exist yet. Throws InputError for a core that does not exist or is named twice, and for no cores.
  std::vector<std::uint16_t> prepare(const LaunchRequest& request);
  // What prepare() throws for these vector cores.
  void check(const std::vector<std::uint16_t>& cores) const;
  void start_block(const BlockStart& block);
  // Called by Core when its block has ended.
  void block_ended(Core& core);
  void schedule_scalar(std::uint16_t core, Time at);

  // Handles an event whose unit is a core.
  void handle(const sim::Event& event);
  // Delivers the completion of a core's request to memory outside the die.
  void completed(const sim::Completion& completion, Time at);

  // A core that has stood still since before `time` on what only itself could end, or other blocks of its
  // launch that all stand still like it; -1: none.
  int stuck_core(Time time) const;
  // The core of this number runs under the debugger, also where only a later launch makes it; -1: all cores.
  void attach_debugger(GdbStub& stub, int core = -1);
  // From now on cores `first` and above report to the tracer.
  void trace(std::size_t first);
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  // One line per core that has not ended.
  std::string report() const;

  // Asks the host's cache for what a core's next events will touch, in kPrefetchStages stages of which each
  // follows what the one before has asked for: 0 the core's state, then as CorePipes::prefetch. An event goes
  // to the core and, if its `what` is below kEngines, to that engine.
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
  void expect_completion(std::uint16_t core, std::uint32_t tag) const {
    if (core < cores_.size()) cores_[core]->pipes().prefetch_completion(tag);
  }

 private:
  Time now() const override;
  void schedule(std::uint16_t core, Time at, std::uint32_t what, std::uint64_t argument) override;
  bool is_local(std::uint64_t address) const override;
  Time access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) override;
  void expect(std::uint64_t offset) const override;
  void progressed() override;
  Time atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation) override;
  void submit(const sim::Request& request) override;
  sim::PayloadPool& payloads() override;
  sim::TransactionId new_transaction(std::uint16_t core, const TransactionStart& start) override;
  void transaction_completed(std::uint16_t core, sim::TransactionId transaction, Time at) override;
  void wake_scalar(std::uint16_t core, std::int64_t cycle) override;
  void cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) override;
  void watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) override;

  // The cores a launch names, as numbers of the die: vector cores first, then cube cores.
  std::vector<std::uint16_t> cores_of(const LaunchRequest& request) const;
  static BlockIdentity identity(const BlockStart& block);
  void add(std::unique_ptr<CorePipes> pipes);

  Die& die_;
  const bool elide_polls_;
  LocalBuffer::Siblings ubuffers_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<CorePipes::Places> places_;  // of the cores' state, for prefetch()
  CrossCoreFlags flags_;
  GdbStub* debugger_ = nullptr;
  int debugged_core_ = -1;  // all
};

}  // namespace cm384::npu
