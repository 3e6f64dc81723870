// How exact dispatch, experts and combine are one after another, on drawn tokens and weights.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/operators/reference/accuracy.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::reference {

// What a rank holds behind combine; rows in the order of their arrival.
struct MoeValues {
  std::vector<std::int8_t> rows;           // from dispatch, [rows][hidden]
  std::vector<float> scales;               // of these
  std::vector<std::uint16_t> expert_rows;  // BF16 bits, [rows][hidden]
  std::vector<std::uint16_t> out;          // BF16 bits, [tokens][hidden]
};
struct MoeAccuracy {
  std::vector<StageAccuracy> stages;  // each with the noise of those before it
  // Share of tokens for which a gate of normal weights chooses other experts from the output than from that
  // of double precision.
  double rerouted = 0;
};
// Of all ranks. `width`: of the experts' networks, which are those of draw_network().
MoeAccuracy moe_accuracy(const DispatchCase& dispatch, std::uint32_t width, bool shared_output,
                         const std::vector<MoeValues>& got);

}  // namespace cm384::reference
