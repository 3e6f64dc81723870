// The two halves of a decode layer's work on one die for one microbatch: attention with what stands around
// it, and the gate and experts with dispatch and combine between them, which are launches of all ranks.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "system/host/device_memory.h"
#include "workloads/kernels/cube_run.h"
#include "workloads/operators/ffn/expert_ffn.h"
#include "workloads/operators/mla/projections.h"

namespace cm384::studies {

// Groups of an AIC and two AIVs that a stream has: `first` .. `first` + `count` - 1.
struct CoreShare {
  int first = 0, count = 24;

  std::vector<std::uint16_t> groups() const { return operators::cores_from(first, count); }
  std::vector<std::uint16_t> aivs() const { return operators::cores_from(2 * first, 2 * count); }
};

using LoadKernel = std::function<std::shared_ptr<npu::Program>(std::string_view kernel)>;

// Prolog, attention, output projection.
class AttentionHalf {
 public:
  static constexpr std::size_t kStages = 3;

  // Places it on a die. `lender`: the other microbatch's of the same layer, whose weights it shares.
  AttentionHalf(host::Runtime& runtime, int die, const operators::MlaSetting& setting, std::uint64_t seed,
                const LoadKernel& load, const CoreShare& cores, const AttentionHalf* lender);
  // At grade replay, with a recording for each stage.
  void play(const host::Recordings& recordings);
  void enqueue(host::Stream stream);
  const npu::LaunchRecord& record(std::size_t stage) const { return stages_.run[stage]->record(); }

  // What records the stages.
  static Stages stages_of(const operators::MlaSetting& setting, std::uint64_t seed);

 private:
  host::DeviceMemory memory_;
  Stages stages_;
};

// Norm with residual, the gate's product and choice; then dispatch; the experts; then combine.
class ExpertHalf {
 public:
  struct Setting {
    std::uint32_t tokens = 0, hidden = 0, experts = 0, width = 0;
    std::vector<std::uint32_t> expert_rows;  // that dispatch is expected to bring to this rank's experts
    std::uint32_t tile_rows = 0;             // of an expert, for tiles
    std::uint64_t seed = 1;
  };
  // Stages before dispatch, and those between dispatch and combine.
  static constexpr std::size_t kBefore = 3, kStages = 4;

  ExpertHalf(host::Runtime& runtime, int die, const Setting& setting, const cm384_dispatch& dispatch,
             const cm384_combine& combine, const LoadKernel& load, const CoreShare& cores,
             const ExpertHalf* lender);
  // The experts at grade replay.
  void play(std::shared_ptr<const npu::Recording> experts);
  void enqueue_before_dispatch(host::Stream stream);
  void enqueue_experts(host::Stream stream);
  const npu::LaunchRecord& record(std::size_t stage) const { return stages_[stage]->record(); }

  static operators::ExpertFfnSetting experts_of(const Setting& setting) {
    return {setting.expert_rows, setting.tile_rows, setting.hidden, setting.width};
  }

 private:
  // A recording knows regions by their places in the memory: the experts have one of their own.
  host::DeviceMemory memory_, expert_memory_;
  std::vector<std::unique_ptr<operators::KernelOperator>> stages_;
};

}  // namespace cm384::studies
