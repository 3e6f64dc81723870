// The experts' feed-forward network between dispatch and combine, on the cube and vector cores of each rank.
#pragma once

#include <vector>

#include "testbenches/studies/moe_run.h"

namespace cm384::studies {

class ExpertNetworks {
 public:
  // Weights and buffers on every rank, payload all of them: `width` elements between gate and up and down, on
  // `blocks` groups of an AIC and its AIVs. Tiles are chosen for experts that all get the same number of
  // rows.
  ExpertNetworks(MoeRun& run, std::uint32_t width, int blocks);

  // Starts them on all ranks, behind what was started there before.
  std::vector<supernode::LaunchHandle> launch();

 private:
  std::uint64_t place(int rank, std::uint32_t width);

  MoeRun& run_;
  std::shared_ptr<npu::Program> program_;
  std::vector<std::uint16_t> groups_;
  std::vector<RankTask> tasks_;
};

}  // namespace cm384::studies
