// The experts' feed-forward network between dispatch and combine, on the cube and vector cores of each rank.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "system/host/device_memory.h"
#include "workloads/moe/moe_run.h"
#include "workloads/operators/ffn/expert_ffn.h"
#include "workloads/operators/reference/expert_networks.h"

namespace cm384::studies {

class ExpertNetworks {
 public:
  // Weights and buffers on every rank: `width` elements between gate and up and down, on `blocks` groups of
  // an AIC and its AIVs. Tiles are chosen for experts that all get the same number of rows. In payload mode
  // full combine is compared with what these experts give; else all of it is payload.
  ExpertNetworks(MoeRun& run, std::uint32_t width, int blocks);

  // Starts them on all ranks that hold experts, in their order, behind what was started there before.
  std::vector<host::LaunchHandle> launch();
  // Overwrites what they wrote, in payload mode full.
  void spoil() const;

 private:
  void write_weights(int rank, const cm384_ffn& ffn) const;

  MoeRun& run_;
  std::vector<std::unique_ptr<operators::ExpertFfn>>
      networks_;  // of each rank; none where it holds no experts
  std::shared_ptr<reference::ExpertNetworkOutputs> expected_;
};

}  // namespace cm384::studies
