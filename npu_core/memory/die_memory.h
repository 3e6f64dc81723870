// Timing of one die's memory: core ports, on-die network, L2, HBM. The bytes are in BackingStore.
//
// Every shared resource is a time stamp of when it is free next, so a request is one call that returns when
// it is done: nothing here is an event. Resources serve in the order of calls, which come in non-decreasing
// `at`; of callers that run ahead (look_ahead()) a call may stand up to that much before an earlier one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/engine/payload.h"
#include "base/text/units.h"
#include "hw/parameters/memory.h"
#include "npu_core/memory/divider.h"
#include "npu_core/memory/hbm_memory.h"
#include "npu_core/memory/held_lines.h"
#include "npu_core/memory/l2_cache.h"
#include "npu_core/memory/memory_behind_l2.h"

namespace cm384::npu {

// At most 512 B that do not cross a 512 B boundary.
struct MemoryAccess {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  bool write = false;
  bool allocate = true;  // in L2; without it a miss goes to HBM and leaves no trace in L2
  // Port it comes from: cores 0 .. core_ports - 1 as the die numbers them, then the external ports (Unified
  // Bus controller, SDMA).
  std::uint16_t requester = 0;
  Time at;  // leaves the requester
};

struct MemoryStatistics {
  std::uint64_t reads = 0, writes = 0, atomics = 0;  // requests
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::uint64_t l2_hits = 0, l2_misses = 0;  // sectors, as the part's own counters count 128 B requests
  std::uint64_t write_backs = 0;             // dirty lines evicted
  std::uint64_t line_waits = 0;              // accesses that waited for another requester's hold of a line
  std::uint64_t merged = 0;                  // accesses that met a line on its way from HBM
  std::uint64_t miss_waits = 0;              // misses that waited for one of their slice's places
  std::uint64_t realigned = 0;               // requests of runs that start inside a sector
};

class DieMemory {
 public:
  static constexpr int kAllPorts = 1 << 16;

  // The first `vector_ports` core ports are those of vector cores. Throws InputError when the parameters do
  // not fit each other.
  explicit DieMemory(const hw::Memory& parameters, int vector_ports = kAllPorts);

  std::uint64_t capacity() const { return capacity_; }
  bool contains(std::uint64_t offset, std::uint64_t bytes) const {
    return bytes <= capacity_ && offset <= capacity_ - bytes;
  }
  // Requester id of external port `port` (0 is the Unified Bus controller's first).
  std::uint16_t external_requester(int port) const { return static_cast<std::uint16_t>(core_ports_ + port); }

  // Asks the host's cache for what an access to `offset` looks at in L2. Requires contains().
  void prefetch(std::uint64_t offset) const {
    const auto line = static_cast<std::uint32_t>(offset / sim::kRequestBytes);
    l2_.prefetch(line);
    held_.prefetch(line);
  }
  // The same for two accesses of a run: one that follows soon, and one later.
  void prefetch_run(std::uint64_t soon, std::uint64_t later) const {
    if (contains(later, 1)) prefetch(later);
    if (contains(soon, 1)) l2_.prefetch_far(static_cast<std::uint32_t>(soon / sim::kRequestBytes));
  }
  // From now on a call may come up to `ahead` earlier than the latest one before it.
  void look_ahead(Time ahead) { calls_.look_ahead = std::max(calls_.look_ahead, ahead); }
  // When read data or the write's acknowledgement reaches the requester. Requires contains().
  Time access(const MemoryAccess& access);
  // The same for an atomic add at the L2 slice; the answer carries the old value.
  Time atomic_add(const MemoryAccess& access);

  const MemoryStatistics& statistics() const { return statistics_; }
  const HbmMemory& hbm() const { return hbm_; }
  // What HBM has moved, and what L2 still owes it: bytes written and not yet written back. Looks at all of
  // L2.
  std::uint64_t hbm_traffic() const {
    const std::uint64_t moved =
        behind_ != nullptr ? behind_->bytes() : hbm_.read_bytes() + hbm_.written_bytes();
    return moved + l2_.dirty_sectors() * sector_bytes_;
  }
  // Replaces HBM by another model; before the first access. The model must outlive the last access.
  void replace_hbm(MemoryBehindL2& model) { behind_ = &model; }
  // Declares its counters, those of L2 and those of HBM.
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;

 private:
  // A rate as 2^-16 ps a byte, so that a port's reservations add up without rounding to picoseconds.
  using SubPs = std::int64_t;
  struct Port {
    SubPs read_free = 0, write_free = 0;
    std::uint64_t run_end[2] = {};  // where the last read, write ended: the next may continue its run
    bool run_realigned[2] = {};
  };
  struct Rates {
    SubPs hbm_read = 0, l2_read = 0, write = 0, realign = 0, cube_realign = 0, external = 0;
  };
  struct SlicePath {  // of every slice
    SubPs byte = 0;
    std::uint32_t access = 0;  // bytes that an access takes at least
  };
  struct Slice {
    SubPs free = 0;               // its data path
    std::uint32_t next_miss = 0;  // the place that the next miss takes, the longest taken one
  };

  // One access on its way through L2.
  struct Target {
    std::uint32_t number;       // of the 512 B line
    std::uint32_t begin;        // first byte within the line
    std::uint32_t first, last;  // sectors
    std::uint32_t slice;
    Time start{};                     // the slice begins with it
    L2Line* line = nullptr;           // null when absent
    HeldLines::Hold* hold = nullptr;  // of the line, if it is there
  };

  Time serve(const MemoryAccess& access, bool atomic);
  int place(std::uint32_t requester) const;
  double mean_way() const;
  // One way, beyond the mean one.
  Time way_beyond_mean(std::uint32_t requester, std::uint32_t slice) const;
  bool realigned(Port& port, const MemoryAccess& access);
  std::uint32_t sectors(const Target& target) const;
  L2Line& allocate(const MemoryAccess& access, Target& target);
  void enter(const MemoryAccess& access, Target& target, std::uint32_t moved);
  static void hold_line(const MemoryAccess& access, const Target& target);
  Time hold_time(const HeldLines::Hold& hold) const {
    return hold.whole ? parameters_.l2.whole_line_hold : parameters_.l2.line_hold;
  }
  void hold_until(const Target& target, Time served) const {
    target.hold->free = served + hold_time(*target.hold);
  }
  Time place_for_miss(const Target& target);
  Time fetch(const Target& target, std::uint32_t missing);
  Time read_hbm(std::uint64_t offset, std::uint32_t bytes, Time at) {
    return behind_ != nullptr ? behind_->read(offset, bytes, at) : hbm_.read(offset, bytes, at);
  }
  Time write_hbm(std::uint64_t offset, std::uint32_t bytes, Time at) {
    return behind_ != nullptr ? behind_->write(offset, bytes, at) : hbm_.write(offset, bytes, at);
  }
  // When the slice has the data, took the write, has added; the target gets its line where one is made.
  Time read(const MemoryAccess& access, Target& target);
  Time write(const MemoryAccess& access, Target& target);
  Time add(const MemoryAccess& access, Target& target);

  hw::Memory parameters_;
  std::uint64_t capacity_;
  int core_ports_, vector_ports_;
  std::uint32_t sector_bytes_;
  int sector_shift_ = 0;  // log2 of it
  Rates rates_;
  SlicePath slice_path_;
  std::uint32_t misses_;  // places a slice
  Time mean_way_;         // of cores, of what hops add
  std::vector<Port> ports_;
  std::vector<Slice> slices_;
  std::vector<Time> places_;  // by slice, for its misses: when the line is there
  Divider by_slices_;
  L2Cache l2_;
  HeldLines held_;
  HbmMemory hbm_;
  MemoryBehindL2* behind_ = nullptr;  // null: hbm_
  struct CallOrder {
    Time look_ahead;
    Time latest;  // of all calls; kept where assertions are on
  };
  CallOrder calls_;
  MemoryStatistics statistics_;
};

}  // namespace cm384::npu
