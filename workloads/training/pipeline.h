// The stages of a pipeline work through the micro-batches of a step in the order of a schedule: when each
// forward and backward pass begins and ends. A stage is one processor; messages between stages take time, and
// no stage's.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/training/plan.h"

namespace cm384::training {

// Of a part of the layers and a micro-batch, in any unit of time. `pair`: a forward and a backward pass of
// two micro-batches side by side, with dualpipe; 0: one after the other.
struct PartTimes {
  double forward = 0, inputs = 0, weights = 0;  // backward for inputs, and for weights
  double pair = 0;
};

// Part s is on rank s % stages. With dualpipe each rank has the part of the rank that mirrors it as well.
struct PipelineCase {
  Schedule schedule = Schedule::one_forward_one_backward;
  int stages = 1, chunks = 1, micro_batches = 1;
  std::vector<PartTimes> parts;
  std::vector<double> messages;  // from part s to s + 1, and as long back; empty: none takes time
  std::vector<double> kept;      // what a micro-batch keeps of each part until its backward pass has ended
};

// What a rank does, one after another.
struct Pass {
  enum class Kind : std::uint8_t { forward, backward, inputs, weights };  // backward: for both
  Kind kind = Kind::forward;
  int micro_batch = 0;
  int part = 0;       // with dualpipe those of the second direction follow: parts + position
  bool pair = false;  // at the same time as the one behind it
};
std::vector<Pass> passes_of(const PipelineCase& pipeline, int rank);

struct PassRun {
  int rank = 0;
  Pass pass;
  double begin = 0, end = 0;
};
struct PipelineRun {
  double total = 0;               // from the begin of the first pass to the end of the last
  std::vector<double> busy;       // of each rank
  std::vector<double> most_kept;  // of each rank, at a time; of PipelineCase::kept
  std::vector<double> ends;       // of each rank: of its last pass
  std::vector<double> last;       // of each rank: how long its last backward pass takes
  std::vector<PassRun> passes;    // if they are kept: those of a rank in their order
};
PipelineRun run_pipeline(const PipelineCase& pipeline, bool keep_passes = false);

}  // namespace cm384::training
