// What the transactions of a die waited for: its cores, their barriers, launches, and flags that come from
// outside.
//
// Three kinds of edges lead into a transaction: what its core's pipes waited for (CoreCausality), barriers
// and cross-core flags (a barrier of all blocks is a node of its own), and flags in memory: a read that finds
// a flag starts after the write that set it had arrived.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "npu_core/causality/core_causality.h"
#include "npu_core/core_socket.h"
#include "npu_core/die/launch.h"
#include "npu_core/memory/backing_store.h"

namespace cm384::npu {

class DieCausality {
 public:
  DieCausality(int die, const Clock& clock, int cores, std::size_t queue_depth, const BackingStore& store,
               DieListener& listener, sim::TransactionId& last_id);

  AivObserver& core(std::uint16_t number) { return cores_[number]; }

  // A core is given a block of a launch; `first`: of its blocks.
  void block_begun(std::uint32_t launch, std::uint16_t core, bool first, Time at);
  void launch_ended(std::uint32_t launch, Time at);

  // Causes of a transaction whose first request leaves now. Valid until the next call.
  const std::vector<Dependency>& begin(std::uint16_t core, sim::TransactionId id,
                                       const TransactionStart& start, bool local, Time now);
  // A cache line of a scalar unit, from now to `end`.
  void filled(const LocalAccess& access, std::int64_t cycle, Time end);
  void completed(std::uint16_t core, sim::TransactionId id, Time at) {
    cores_[core].transaction_completed(id, at);
  }

  // A request from outside has written [offset, offset + bytes) of the die's memory.
  void arrived(sim::TransactionId id, std::uint64_t offset, std::uint64_t bytes, Time at);
  void written_by_core(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes, Time at);
  // What was written last wakes the polling loop of a core.
  void poll_woken(std::uint16_t core) { cores_[core].poll_woken_by(last_write_); }

  // A core has set a cross-core flag of all blocks.
  void cross_core_set(std::uint16_t core, std::uint32_t flag);
  // All of `cores` have; it reaches them at `at`.
  void barrier(std::uint32_t flag, const std::vector<std::uint16_t>& cores, Time at);
  // A core has set a flag of its pair.
  void pair(std::uint16_t core, std::uint32_t flag, Time at);

 private:
  static constexpr std::uint32_t kLine = 512, kBlock = 32;
  struct Flags {  // of a line: who set each of its blocks
    std::array<sim::TransactionId, kLine / kBlock> writer{};
    std::array<std::int64_t, kLine / kBlock> at_ps{};
  };

  sim::TransactionId new_id() { return (static_cast<std::uint64_t>(die_ + 1) << 48) | ++last_id_; }
  Dependency dependency(const Cause& cause, std::int64_t slack, Time until) const;
  void add_causes(const Moment& moment, Time until);
  void add_flags(std::uint64_t offset, std::uint64_t bytes, bool polled, Time now);
  void add_last_writer(std::uint64_t offset);
  Moment node(JoinedAt::Kind kind, std::uint32_t launch, Time at);

  int die_;
  Clock clock_;
  const BackingStore& store_;  // knows who wrote a line last
  DieListener& listener_;
  sim::TransactionId& last_id_;
  std::vector<CoreCausality> cores_;
  std::unordered_map<std::uint64_t, Flags> flags_;  // by line; looked up only
  std::array<std::vector<Moment>, 16> at_barrier_;
  std::map<std::uint32_t, std::vector<std::uint16_t>> under_way_;  // cores of each launch
  Cause last_write_;
  std::vector<Dependency> dependencies_;
};

}  // namespace cm384::npu
