#include "npu_core/cluster/cross_core_flags.h"

#include "npu_core/die/die.h"

namespace cm384::npu {

void CrossCoreFlags::block_begins(Core& core) {
  // The AIC of a group is the first of it to start.
  const auto vector_cores = static_cast<std::uint16_t>(die_.parameters().die.aiv);
  if (core.number() >= vector_cores) groups_[core.number() - std::size_t{vector_cores}] = {};
}

void CrossCoreFlags::block_has_begun(Core& core) {
  // What other blocks of the launch have set for this one already.
  std::erase_if(early_, [&](const Early& early) {
    if (early.core != core.number() || early.launch != core.launch()) return false;
    core.pipes().cross_core_flag(early.flag, 1, die_.now());
    return true;
  });
}

void CrossCoreFlags::send(Time at, std::uint32_t to, std::uint32_t flag,
                          const TaskScheduler::Kernel& kernel) {
  const std::uint64_t to_begin = kernel.begun < kernel.blocks ? kBlocksToBegin : 0;
  die_.queue().push(at, to, CoreCluster::kFlagArrives,
                    std::uint64_t{kernel.record.launch} << 32 | to_begin | flag);
}

// A flag counts for the launch that set it alone. A block of it that has not begun finds the flag when it
// does; what comes after a launch's last block is nobody's.
void CrossCoreFlags::arrives(Core& core, std::uint64_t argument, Time at) {
  const auto launch = static_cast<std::uint32_t>(argument >> 32);
  const auto flag = static_cast<std::uint32_t>(argument & 0xff);
  if (core.busy() && core.launch() == launch) {
    core.pipes().cross_core_flag(flag, 1, at);
  } else if ((argument & kBlocksToBegin) != 0) {
    early_.push_back({launch, core.number(), flag});
  }
}

void CrossCoreFlags::set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) {
  die_.progressed();
  DieTracer* const tracer = die_.transactions().tracer();
  TaskScheduler::Kernel& kernel = die_.scheduler().kernel_on(core);
  const bool cube = cluster_.is_cube(core);
  const auto vector_cores = static_cast<std::uint32_t>(die_.parameters().die.aiv);
  if (mode != 0) {
    const std::uint32_t group = cube ? core - vector_cores : core / 2u;
    if (mode == 1 && cube)
      cluster_.core(core).rethrow({"cross-core set: mode 1 is for the AIVs of a group", {}});
    const Time at = die_.now() + die_.parameters().die.cross_core_flag_latency;
    if (mode == 2 && !cube) {
      if (group >= groups_.size())
        cluster_.core(core).rethrow({"cross-core set: mode 2 needs a launch with AICs", {}});
      const auto of_group = static_cast<std::uint16_t>(vector_cores + group);
      if (tracer != nullptr) tracer->for_cube(core, of_group, flag);
      // One of each: an AIV that is ahead does not stand for the other.
      std::array<std::uint32_t, 2>& sets = groups_[group][flag];
      ++sets[core % 2];
      if (sets[0] == 0 || sets[1] == 0) return;
      --sets[0];
      --sets[1];
      if (tracer != nullptr) tracer->reaches_cube(of_group, flag, at);
      send(at, of_group, flag, kernel);
      return;
    }
    std::size_t count = 0;
    for (const std::uint32_t member : {2 * group, 2 * group + 1}) {
      if (member >= vector_cores) continue;
      ++count;
      send(at, member, flag, kernel);
    }
    if (tracer != nullptr) tracer->group_set(core, flag, static_cast<std::uint16_t>(2 * group), count, at);
    return;
  }
  // Mode 0: a barrier of all cores of one kind of the launch. Counted in rounds, so that a fast core may
  // already set for the next one.
  if (tracer != nullptr) tracer->barrier_set(core, flag);
  const std::uint32_t members = kernel.request.type != KernelType::mix ? kernel.blocks
                                : cube                                 ? kernel.blocks / 3
                                                                       : kernel.blocks / 3 * 2;
  std::uint32_t& arrivals = kernel.arrivals[cube ? 1 : 0][flag];
  if (++arrivals < members) return;
  arrivals -= members;
  const Time at = die_.now() + die_.parameters().die.sync_all_latency;
  if (tracer != nullptr) tracer->barrier(flag, cube, kernel.cores, at);
  for (const std::uint16_t member : kernel.cores) {
    if (cluster_.is_cube(member) == cube) send(at, member, flag, kernel);
  }
}

}  // namespace cm384::npu
