// Flags between the cores of a launch: of a group, and barriers of all cores of one kind.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/text/units.h"
#include "npu_core/devices/scheduler/task_scheduler.h"

namespace cm384::npu {

class Core;
class CoreCluster;
class Die;

class CrossCoreFlags {
 public:
  CrossCoreFlags(Die& die, CoreCluster& cluster) : die_(die), cluster_(cluster) {}

  void set_groups(std::size_t count) { groups_.resize(count); }
  // Before the program of a block starts on the core; after it has started.
  void block_begins(Core& core);
  void block_has_begun(Core& core);
  // See CM384_CROSS_CORE_SET; at the event time at which the set fires.
  void set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag);
  // The event CoreCluster::kFlagArrives.
  void arrives(Core& core, std::uint64_t argument, Time at);

 private:
  // Of an event's argument: when the flag was set, blocks of its launch were still to begin. The launch
  // stands in the high half, the flag in the low byte.
  static constexpr std::uint64_t kBlocksToBegin = 0x100;
  // A flag that reached its core before its block began there.
  struct Early {
    std::uint32_t launch;
    std::uint16_t core;
    std::uint32_t flag;
  };

  void send(Time at, std::uint32_t to, std::uint32_t flag, const TaskScheduler::Kernel& kernel);

  Die& die_;
  CoreCluster& cluster_;
  std::vector<Early> early_;
  // Sets of mode 2 by group, flag and AIV that the other AIV has not set yet.
  std::vector<std::array<std::array<std::uint32_t, 2>, TaskScheduler::kFlags>> groups_;
};

}  // namespace cm384::npu
