#include "system/host/launch_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/causality/pipe_shapes.h"

namespace cm384::host {

LaunchRecorder::LaunchRecorder(supernode::Supernode& machine)
    : machine_(machine),
      reader_(Clock(machine.parameters().die.clock), npu::vector_shape(machine.parameters().vector_core),
              npu::cube_shape(machine.parameters().cube_core), *this) {
  machine.keep_log(*this);
}

npu::TraceLog::Chunk LaunchRecorder::exchange(Chunk full, std::size_t words) {
  if (!full) return std::make_unique<std::uint64_t[]>(kChunkWords);
  reader_.read({full.get(), words});
  return full;
}

void LaunchRecorder::add(sim::TransactionId id, const Step& step,
                         std::span<const npu::Dependency> dependencies) {
  if (steps_.empty()) first_ = id;
  const std::uint64_t index = id - first_;
  if (index >= steps_of_.size()) steps_of_.resize(index + 1);
  const auto number = static_cast<std::uint32_t>(steps_.size());
  steps_of_[index] = number + 1;
  steps_.push_back(step);
  for (const npu::Dependency& d : dependencies) {
    const std::uint64_t on = d.on - first_;
    if (d.on < first_ || on >= steps_of_.size() || steps_of_[on] == 0) continue;
    waits_.push_back({number, steps_of_[on] - 1, d.kind, d.delay});
  }
}

void LaunchRecorder::transaction_begun(const npu::TransactionBegun& t) {
  if (t.core == npu::kSdmaCore) return;
  Step step;
  step.kind = t.fill ? Step::Kind::fill : Step::Kind::transfer;
  step.engine = t.engine;
  step.operation = t.operation == sim::Operation::read    ? Step::Operation::read
                   : t.operation == sim::Operation::write ? Step::Operation::write
                                                          : Step::Operation::add;
  step.allocate = t.allocate ? 1 : 0;
  step.block = t.core;
  step.offset = t.address;
  step.burst_bytes = t.burst_bytes;
  step.bursts = t.bursts;
  step.stride = t.bursts > 1 ? t.stride : 0;
  step.recorded = t.at;
  add(t.id, step, t.dependencies);
}

void LaunchRecorder::joined(const npu::JoinedAt& j) {
  Step step;
  step.kind = j.kind == npu::JoinedAt::Kind::barrier  ? Step::Kind::join
              : j.kind == npu::JoinedAt::Kind::launch ? Step::Kind::begin
                                                      : Step::Kind::end;
  step.block = static_cast<std::uint16_t>(j.block);
  step.recorded = j.at;
  add(j.id, step, j.dependencies);
}

npu::Recording LaunchRecorder::recording_of(int die_number, const npu::LaunchRequest& request,
                                            std::span<const DeviceMemory::Region> memory) {
  turn();
  npu::Die& die = machine_.die(die_number);
  const std::vector<std::uint16_t> cores = die.cluster().prepare(request);
  std::map<std::uint16_t, std::uint16_t> block_on;
  for (std::size_t n = 0; n < cores.size(); ++n) block_on[cores[n]] = static_cast<std::uint16_t>(n);
  std::map<std::uint64_t, std::uint16_t> region_at;  // by address
  for (std::size_t n = 0; n < memory.size(); ++n)
    region_at[memory[n].address] = static_cast<std::uint16_t>(n);

  for (Step& step : steps_) {
    if (step.kind != Step::Kind::fill && step.kind != Step::Kind::transfer) continue;
    const std::uint64_t offset = cm384_gm_offset(step.offset);
    const std::uint16_t core = std::exchange(step.block, block_on.at(step.block));
    if (step.kind == Step::Kind::fill && offset >= die.allocatable()) {
      const bool image = offset - die.allocatable() < CM384_PRIVATE_BYTES;
      step.region = image ? npu::Recording::kImage : npu::Recording::kPrivate;
      step.offset = offset - (image ? die.allocatable() : die.memory_system().private_begin(core));
      continue;
    }
    const auto after = region_at.upper_bound(step.offset);
    const auto region = after == region_at.begin() ? after : std::prev(after);
    if (after == region_at.begin() || step.offset - region->first >= memory[region->second].bytes)
      throw InputError(fmt::format(
          "recording: a transfer at {:#x} leaves the operator's memory: its replay is `cm384 trace replay`",
          step.offset));
    step.region = region->second;
    step.offset -= region->first;
  }
  steps_of_.clear();
  return npu::Recording::of(cores.size(), std::exchange(steps_, {}), std::exchange(waits_, {}));
}

}  // namespace cm384::host
