// What the transactions of a die waited for: its cores, their barriers, launches, and flags that come from
// outside. TraceLogReader calls it with what DieTracer has written down.
//
// Three kinds of edges lead into a core's transaction: what its pipes waited for (CoreCausality), barriers
// and cross-core flags (a barrier of all blocks is a node of its own), and flags in memory: a read that finds
// a flag starts after the write that set it had arrived. A copy of the SDMA engine waits for the doorbell
// that told of it, for the copy before it in its queue and on its channel, and for what wrote its data.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "npu_core/causality/core_causality.h"
#include "npu_core/causality/line_table.h"
#include "npu_core/core_socket.h"
#include "npu_core/devices/device_socket.h"
#include "npu_core/die/launch.h"

namespace cm384::npu {

// Hears of transactions, with all that they waited for, and of what joins them.
class CausalityListener {
 public:
  virtual void transaction_begun(const TransactionBegun& begun) = 0;
  virtual void transaction_completed(const TransactionCompleted& completed) = 0;
  virtual void joined(const JoinedAt& joined) = 0;
  virtual void host_point(const HostPoint& point) = 0;

 protected:
  ~CausalityListener() = default;
};

class DieCausality {
 public:
  DieCausality(int die, const Clock& clock, const CoreShape& vector, const CoreShape& cube,
               CausalityListener& listener)
      : die_(die), clock_(clock), shapes_{vector, cube}, listener_(listener) {}

  // The die's next cores are of this kind.
  void add_cores(std::size_t count, bool cube);
  PipeObserver& core(std::uint16_t number) { return cores_[number]; }

  // A core is given block `index` of a launch; its last instruction has retired. `id` is of the point in time
  // itself.
  void block_begun(sim::TransactionId id, std::uint32_t launch, std::uint32_t index, std::uint16_t core,
                   Time at);
  void block_ended(sim::TransactionId id, std::uint16_t core, Time at);

  // A transaction whose first request leaves now; of a core, or of the SDMA engine.
  void begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start, bool local, Time now);
  void copy_begun(sim::TransactionId id, const TransactionStart& start, const CopyStart& copy, bool local,
                  Time now);
  void completed(std::uint16_t core, sim::TransactionId id, Time at);
  // A cache line of a scalar unit, from now to `end`.
  void filled(sim::TransactionId id, const LocalAccess& access, std::int64_t cycle, Time end);

  // A request from outside has written [offset, offset + bytes) of the die's memory.
  void arrived(sim::TransactionId id, std::uint64_t offset, std::uint64_t bytes, Time at);
  // A core has read from the die's own memory, or written to it: what it writes carries on what it had seen.
  void read(std::uint16_t core, std::uint64_t offset);
  void written(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes, Time at);
  void written_by_device(std::uint64_t offset, sim::TransactionId transaction, Time at);
  // What was written last wakes the polling loop of a core.
  void poll_woken(std::uint16_t core) { cores_[core].poll_woken_by(last_write_); }

  // SDMA: what was written last is a queue's doorbell; a descriptor has ended, its channel is free at `free`.
  void rung(std::uint16_t queue) { doorbells_[queue] = last_write_; }
  void copy_ended(std::uint16_t queue, std::uint16_t channel, Time ended, Time free);
  // Streams: an entry is scheduled at `turn`; it has completed.
  void task_begun(std::uint32_t stream, bool kernel, std::uint32_t launch, Time turn);
  void task_ended(std::uint32_t stream, Time at);

  // A core has set a cross-core flag of all blocks of its kind.
  void barrier_set(std::uint16_t core, std::uint32_t flag);
  // All of that kind among `cores` have; it reaches them at `at`.
  void barrier(sim::TransactionId id, std::uint32_t flag, bool cube, std::span<const std::uint16_t> cores,
               Time at);
  // A core has set a flag within its group, which reaches `count` cores from `first` on at `at`.
  void group_set(std::uint16_t core, std::uint32_t flag, std::uint16_t first, std::size_t count, Time at);
  // A vector core has set a flag that reaches the cube core of its group once both vector cores have.
  void for_cube(std::uint16_t core, std::uint16_t cube, std::uint32_t flag) {
    for_cube_[{cube, flag}].join(cores_[core].take_cross_core_set(flag));
  }
  void reaches_cube(std::uint16_t cube, std::uint32_t flag, Time at);

 private:
  static constexpr std::uint32_t kFlags = 16;

  // Something that has happened and that a later point waits for.
  struct Before {
    sim::TransactionId on = 0;  // 0: nothing
    Time at;                    // when `on` was complete
    Time free;                  // when what waits for it could go on
  };
  struct Stream {
    Before last;  // what its last entry with a transaction or a launch came to
    Before now;   // the entry under way
    Time turn;
    std::uint32_t copies = 0;
  };
  struct Block {
    std::uint32_t launch = 0, index = 0;
  };

  // Until `until`, a cause with this slack lay this far back.
  Dependency dependency(const Cause& cause, std::int64_t slack, Time until) const;
  void add_causes(const Moment& moment, Time until);
  // What begins now and could go on since `since` waited for something.
  void add_before(const Before& before, Time since, Time now);
  void add_flags(std::uint64_t offset, std::uint64_t bytes, bool polled, Time now);
  void add_last_writer(sim::TransactionId writer);
  void flag_set(std::uint32_t launch, std::uint16_t core, std::uint32_t flag, const Moment& set);
  Moment node(sim::TransactionId id, JoinedAt::Kind kind, const Block& block, Time at);
  TransactionBegun begun_with_causes(std::uint16_t core, sim::TransactionId id, const TransactionStart& start,
                                     Time now);

  int die_;
  Clock clock_;
  std::array<CoreShape, 2> shapes_;  // of vector and cube cores
  CausalityListener& listener_;
  std::deque<CoreCausality> cores_;
  std::vector<bool> is_cube_;
  std::vector<sim::TransactionId> foreign_;  // by core: the last one from outside whose data it read
  LineTable lines_;
  std::array<std::array<std::vector<Moment>, kFlags>, 2> at_barrier_;   // by kind of core
  std::map<std::pair<std::uint16_t, std::uint32_t>, Moment> for_cube_;  // by cube core and flag
  // Flags for blocks that have not begun.
  struct EarlyFlag {
    std::uint32_t launch;
    std::uint16_t core;
    std::uint32_t flag;
    Moment set;
  };
  std::vector<EarlyFlag> early_flags_;
  std::map<std::uint16_t, Block> under_way_;          // by core
  std::map<std::uint32_t, std::uint32_t> stream_of_;  // by launch, of those under way
  std::map<std::uint32_t, Stream> streams_;
  std::map<std::uint16_t, Cause> doorbells_;           // by SDMA queue: its last one
  std::map<std::uint16_t, Before> queues_, channels_;  // of the SDMA engine: the last copy
  std::map<std::uint16_t, Before> copying_;            // by channel: the copy under way
  Cause last_write_;
  std::vector<Dependency> dependencies_;
};

}  // namespace cm384::npu
