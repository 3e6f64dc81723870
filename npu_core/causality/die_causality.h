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

// Receives every transaction with all that it waited for, and every point that joins several.
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

  // Adds `count` cores behind those of the die, all cube cores or all vector cores.
  void add_cores(std::size_t count, bool cube);
  PipeObserver& core(std::uint16_t number) { return cores_[number]; }

  // A core starts block `index` of a launch; the last instruction of the core's block has retired. `id` names
  // this point in time.
  void block_begun(sim::TransactionId id, std::uint32_t launch, std::uint32_t index, std::uint16_t core,
                   Time at);
  void block_ended(sim::TransactionId id, std::uint16_t core, Time at);

  // The first request of a transaction of a core, or of the SDMA engine, leaves at `now`.
  void begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start, bool local, Time now);
  void copy_begun(sim::TransactionId id, const TransactionStart& start, const CopyStart& copy, bool local,
                  Time now);
  void completed(std::uint16_t core, sim::TransactionId id, Time at);
  // A scalar unit fills or writes back a cache line, from now to `end`.
  void filled(sim::TransactionId id, const LocalAccess& access, std::int64_t cycle, Time end);

  // A request from outside has written [offset, offset + bytes) of the die's memory.
  void arrived(sim::TransactionId id, std::uint64_t offset, std::uint64_t bytes, Time at);
  // A core has read from or written to the die's own memory. A write passes on what the core had read.
  void read(std::uint16_t core, std::uint64_t offset);
  void written(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes, Time at);
  void written_by_device(std::uint64_t offset, sim::TransactionId transaction, Time at);
  // The last write to the die's memory ends the polling of a core.
  void poll_woken(std::uint16_t core) { cores_[core].poll_woken_by(last_write_); }

  // SDMA: the last write was to a queue's doorbell; a descriptor has ended and its channel is free at `free`.
  void doorbell_rung(std::uint16_t queue) { doorbells_[queue] = last_write_; }
  void copy_ended(std::uint16_t queue, std::uint16_t channel, Time ended, Time free);
  // Streams: an entry comes to the head of its stream at `turn`; the entry has completed.
  void task_begun(std::uint32_t stream, bool kernel, std::uint32_t launch, Time turn);
  void task_ended(std::uint32_t stream, Time at);

  // A core has set a cross-core flag of all blocks of its kind.
  void barrier_set(std::uint16_t core, std::uint32_t flag);
  // All cores of that kind among `cores` have set it; they see it at `at`.
  void barrier(sim::TransactionId id, std::uint32_t flag, bool cube, std::span<const std::uint16_t> cores,
               Time at);
  // A core has set a flag within its group; cores `first` to `first + count - 1` see it at `at`.
  void group_set(std::uint16_t core, std::uint32_t flag, std::uint16_t first, std::size_t count, Time at);
  // A vector core has set a flag for the cube core of its group, which sees it once both vector cores have
  // set it.
  void for_cube(std::uint16_t core, std::uint16_t cube, std::uint32_t flag) {
    for_cube_[{cube, flag}].join(cores_[core].take_cross_core_set(flag));
  }
  void reaches_cube(std::uint16_t cube, std::uint32_t flag, Time at);

 private:
  static constexpr std::uint32_t kFlags = 16;

  // What an entry or a descriptor waits for: an earlier one that has to complete.
  struct Before {
    sim::TransactionId on = 0;  // 0: nothing
    Time at;                    // when `on` was complete
    Time free;                  // when what waits for it could go on
  };
  struct Stream {
    Before last;  // the last entry that had a transaction or a launch
    Before now;   // the entry under way
    Time turn;
    std::uint32_t copies = 0;
  };
  struct Block {
    std::uint32_t launch = 0, index = 0;
  };

  // The dependency on `cause`, whose slack counts back from `until`.
  Dependency dependency(const Cause& cause, std::int64_t slack, Time until) const;
  void add_causes(const Moment& moment, Time until);
  // Adds `before` to what the transaction that starts at `now` waited for; it could have started at `since`.
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
