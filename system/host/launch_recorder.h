// Records what the blocks of a launch move, and what each transfer waits for: what the replay grade plays.
#pragma once

#include <span>
#include <vector>

#include "npu_core/causality/trace_log_reader.h"
#include "npu_core/replay/recording.h"
#include "system/host/device_memory.h"
#include "system/machine/supernode.h"

namespace cm384::host {

class LaunchRecorder final : private npu::CausalityListener, private npu::TraceLog {
 public:
  // Attaches to a machine before its first launch, in the place of another recorder. Both outlive the runs.
  explicit LaunchRecorder(supernode::Supernode& machine);

  // The launch of `request` on `die`, which was given alone and has ended; what was recorded is forgotten.
  // `memory`: the operator's. Throws InputError where it reaches memory outside of that.
  npu::Recording recording_of(int die, const npu::LaunchRequest& request,
                              std::span<const DeviceMemory::Region> memory);

 private:
  using Step = npu::Recording::Step;

  void transaction_begun(const npu::TransactionBegun& begun) override;
  void transaction_completed(const npu::TransactionCompleted&) override {}
  void joined(const npu::JoinedAt& joined) override;
  void host_point(const npu::HostPoint&) override {}
  Chunk exchange(Chunk full, std::size_t words) override;
  void add(sim::TransactionId id, const Step& step, std::span<const npu::Dependency> dependencies);

  supernode::Supernode& machine_;
  npu::TraceLogReader reader_;
  sim::TransactionId first_ = 0;         // id of the first step
  std::vector<std::uint32_t> steps_of_;  // 1 + step, by id since the first
  std::vector<Step> steps_;              // regions and blocks are not known yet: global addresses, cores
  std::vector<npu::Recording::Wait> waits_;
};

}  // namespace cm384::host
