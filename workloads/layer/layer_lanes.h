// What the two streams of a die did: as rows of a result, and as lanes of a timeline, of layers and of the
// decode step that is made of them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "workloads/frame/lane_timeline.h"
#include "workloads/frame/study.h"
#include "workloads/layer/decode.h"
#include "workloads/layer/layer_run.h"

namespace cm384::studies {

inline constexpr std::array kLayerKernelFields{
    Field{"layer", FieldType::integer, "of those that ran, from 0"},
    Field{"microbatch", FieldType::integer, "from 0"},
    Field{"stream", FieldType::integer, "0: of attention, 1: of the experts; of one microbatch 0 has both"},
    Field{"name", FieldType::text, "of the kernel"},
    Field{"start_us", FieldType::number, "of its task, from the start of the first layer"},
    Field{"end_us", FieldType::number, "of its task"},
};
Rows rows_of(const std::vector<LayerKernel>& kernels);

// A slice of a step.
struct StepSlice {
  enum Lane : int { parts, attention, experts };
  Lane lane = parts;
  std::string name;
  double start_us = 0, end_us = 0;
  int layer = -1, microbatch = -1;  // layer: of those with experts, from 0; -1: of no layer, all of the batch
};

// A step from its first launch to its last choice of words. Layers with experts are the first and the last
// one that ran, the latter repeated, each as long as the mean over ranks; slices of a stream are cut where
// that makes them overlap.
std::vector<StepSlice> lanes_of_step(const DecodeOptions& options, const DecodeParts& parts);

// The layers of `run layer`.
void write_lanes(LaneTimeline& timeline, const LayerReading& reading, int microbatches);
// A process of the timeline.
void write_lanes(LaneTimeline& timeline, int process, const DecodeOptions& options, const DecodeParts& parts);

}  // namespace cm384::studies
