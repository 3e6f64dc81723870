// Cube cores and groups: which cores a launch takes, what a block knows of itself, and cross-core flags.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "npu_core/die/die.h"

namespace cm384::npu {

// Most dies of a supernode never use a cube core: they come with the first launch that does.
void Die::attach_debugger(GdbStub& stub, int core) {
  debugger_ = &stub;
  debugged_core_ = core;
  for (const auto& one : cores_) {
    if (core < 0 || one->number() == core) one->attach_debugger(stub);
  }
}

void Die::make_cube_cores() {
  const auto first = static_cast<std::size_t>(parameters_.die.aiv);
  if (cores_.size() > first) return;
  for (int n = 0; n < parameters_.die.aic; ++n) {
    add_core(std::make_unique<Aic>(static_cast<std::uint16_t>(first + n), parameters_.cube,
                                   parameters_.cube_mte, clock_, *this, options_.aiv.elide_polls));
  }
  watches_.resize(cores_.size());
  group_arrivals_.resize(static_cast<std::size_t>(parameters_.die.aic));
  if (tracer_) trace_cores(first);
}

std::vector<std::uint16_t> Die::cores_of(const LaunchRequest& request) const {
  const bool vector = request.type == KernelType::aiv;
  const char* const what = vector ? "core" : request.type == KernelType::aic ? "AIC" : "group";
  if (request.cores.empty()) throw InputError(fmt::format("launch on die {}: no cores named", number_));
  const int aiv = parameters_.die.aiv, aic = parameters_.die.aic;
  const int limit = vector ? aiv : request.type == KernelType::aic ? aic : std::min(aic, aiv / 2);
  std::vector<bool> taken(static_cast<std::size_t>(limit), false);
  std::vector<std::uint16_t> cores;
  for (const std::uint16_t n : request.cores) {
    if (n >= limit)
      throw InputError(fmt::format("launch on die {}: {} {} does not exist; allowed: 0 to {}", number_, what,
                                   n, limit - 1));
    if (taken[n]) throw InputError(fmt::format("launch on die {}: {} {} is named twice", number_, what, n));
    taken[n] = true;
    cores.push_back(static_cast<std::uint16_t>(vector ? n : aiv + n));
    if (request.type != KernelType::mix) continue;
    cores.push_back(static_cast<std::uint16_t>(2 * n));
    cores.push_back(static_cast<std::uint16_t>(2 * n + 1));
  }
  return cores;
}

// Of the block at a position of cores_of(). Numbers as CANN gives them: in a launch of groups a vector core's
// block index counts vector cores, the block count groups.
BlockIdentity Die::identity(const BlockStart& block) {
  if (block.type != KernelType::mix) return {block.index, block.count, block.arguments, 0};
  const std::uint32_t group = block.index / 3, part = block.index % 3;
  if (part == 0) return {group, block.count / 3, block.arguments, 0};
  return {2 * group + part - 1, block.count / 3, block.arguments, part - 1};
}

void Die::start_block(const BlockStart& block) {
  if (runner_ != nullptr) return runner_->run_block(number_, block);
  // The AIC of a group is the first of it to start.
  if (is_cube(block.core)) group_arrivals_[static_cast<std::size_t>(block.core - parameters_.die.aiv)] = {};
  Core& core = *cores_[block.core];
  core.set_launch(block.launch);
  if (tracer_) tracer_->block_begun(block.launch, block.index, block.core, now());
  core.start_block(block.program, identity(block), now(), block.preloaded);
  // What other blocks of the launch have set for this one already.
  std::erase_if(early_flags_, [&](const EarlyFlag& early) {
    if (early.core != block.core || early.launch != block.launch) return false;
    core.pipes().cross_core_flag(early.flag, 1, now());
    return true;
  });
}

void Die::send_flag(Time at, std::uint32_t to, std::uint32_t flag, const TaskScheduler::Kernel& kernel) {
  const std::uint64_t to_begin = kernel.begun < kernel.blocks ? kBlocksToBegin : 0;
  queue_.push(at, to, kFlagArrives, std::uint64_t{kernel.record.launch} << 32 | to_begin | flag);
}

// A flag counts for the launch that set it alone. A block of it that has not begun finds the flag when it
// does; what comes after a launch's last block is nobody's.
void Die::flag_arrives(Core& core, std::uint64_t argument, Time at) {
  const auto launch = static_cast<std::uint32_t>(argument >> 32);
  const auto flag = static_cast<std::uint32_t>(argument & 0xff);
  if (core.busy() && core.launch() == launch) {
    core.pipes().cross_core_flag(flag, 1, at);
  } else if ((argument & kBlocksToBegin) != 0) {
    early_flags_.push_back({launch, core.number(), flag});
  }
}

void Die::cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) {
  last_progress_ = std::max(last_progress_, now());
  TaskScheduler::Kernel& kernel = scheduler().kernel_on(core);
  const bool cube = is_cube(core);
  const auto vector_cores = static_cast<std::uint32_t>(parameters_.die.aiv);
  if (mode != 0) {
    const std::uint32_t group = cube ? core - vector_cores : core / 2u;
    if (mode == 1 && cube) cores_[core]->rethrow({"cross-core set: mode 1 is for the AIVs of a group", {}});
    const Time at = now() + parameters_.die.cross_core_flag_latency;
    if (mode == 2 && !cube) {
      if (group >= group_arrivals_.size())
        cores_[core]->rethrow({"cross-core set: mode 2 needs a launch with AICs", {}});
      const auto of_group = static_cast<std::uint16_t>(vector_cores + group);
      if (tracer_) tracer_->for_cube(core, of_group, flag);
      if (++group_arrivals_[group][flag] < 2) return;
      group_arrivals_[group][flag] = 0;
      if (tracer_) tracer_->reaches_cube(of_group, flag, at);
      send_flag(at, of_group, flag, kernel);
      return;
    }
    std::size_t count = 0;
    for (const std::uint32_t member : {2 * group, 2 * group + 1}) {
      if (member >= vector_cores) continue;
      ++count;
      send_flag(at, member, flag, kernel);
    }
    if (tracer_) tracer_->group_set(core, flag, static_cast<std::uint16_t>(2 * group), count, at);
    return;
  }
  // Mode 0: a barrier of all cores of one kind of the launch. Counted in rounds, so that a fast core may
  // already set for the next one.
  if (tracer_) tracer_->barrier_set(core, flag);
  const std::uint32_t members = kernel.request.type != KernelType::mix ? kernel.blocks
                                : cube                                 ? kernel.blocks / 3
                                                                       : kernel.blocks / 3 * 2;
  std::uint32_t& arrivals = kernel.arrivals[cube ? 1 : 0][flag];
  if (++arrivals < members) return;
  arrivals -= members;
  const Time at = now() + parameters_.die.sync_all_latency;
  if (tracer_) tracer_->barrier(flag, cube, kernel.cores, at);
  for (const std::uint16_t member : kernel.cores) {
    if (is_cube(member) == cube) send_flag(at, member, flag, kernel);
  }
}

}  // namespace cm384::npu
