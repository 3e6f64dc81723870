// A decode layer with values: a microbatch on all ranks, each kernel on what the one before left, for how
// exact it is. Times of a layer do not depend on values; layer_run.h measures them.
#pragma once

#include <optional>
#include <string>

#include "workloads/layer/layer.h"
#include "workloads/operators/reference/layer_accuracy.h"

namespace cm384::studies {

struct LayerExactness {
  reference::LayerAccuracy accuracy;
  std::string first_difference;  // of attention's kernels from their references; empty: none
};

// Throws InputError for layers of which this has no values, or whose weights are too many for the host.
void check_values(const LayerSetting& setting);
// Of the setting's first microbatch, on a machine of its own; tokens as `draw` says. Empty: interrupted.
std::optional<LayerExactness> measure_exactness(const StudyContext& context, const LayerSetting& setting,
                                                const reference::Draw& draw, SimulatorCounts& counts);

}  // namespace cm384::studies
