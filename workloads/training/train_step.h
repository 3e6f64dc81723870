// A training step put together from the times of its parts: passes of each part of the layers, the schedule
// of the pipeline, gradients and weights between replicas, the optimiser.
#pragma once

#include <vector>

#include "workloads/training/pipeline.h"
#include "workloads/training/plan.h"
#include "workloads/training/training_memory.h"

namespace cm384::training {

// Of one pass of a micro-batch through a part of the layers: what cores compute, and what they wait for, by
// the group that it is among. Any unit of time.
struct PassTime {
  double compute = 0, tensor = 0, context = 0, expert = 0, data = 0;
  double without_experts() const { return compute + tensor + context + data; }
  double all() const { return without_experts() + expert; }
  PassTime& operator+=(const PassTime& other) {
    compute += other.compute;
    tensor += other.tensor;
    context += other.context;
    expert += other.expert;
    data += other.data;
    return *this;
  }
};
struct PartPasses {
  PassTime forward, inputs, weights;
  PassTime again;  // the forward pass, as far as it is computed again; part of `inputs`
  int layers = 0;
};
// With dualpipe a forward and a backward pass go side by side: exchanges of experts of one lie under what the
// other computes, and what is longer is the pair's time.
PartTimes times_of(const PartPasses& passes, Schedule schedule);

// Times of a rank, once per step.
struct ReplicaTimes {
  double gradients = 0, weights = 0;  // their scatter and gather among replicas
  double optimiser = 0;
};

struct StepCase {
  PipelineCase pipeline;               // `parts` follow from `passes`
  std::vector<PartPasses> passes;      // of each part
  std::vector<ReplicaTimes> replicas;  // of each rank of the pipeline
  bool keep_passes = false;            // in Step::run
  bool overlap = true;  // gradients go while earlier layers' are computed, weights while first layers compute
};

// Shares of the step's time at the rank that has most to do.
struct StepShares {
  double compute = 0, again = 0, tensor = 0, context = 0, expert = 0, data = 0, optimiser = 0;
  double stages = 0;  // waiting for messages between stages
  double bubble = 0;  // waiting for passes of others
};
struct Step {
  double time = 0;
  StepShares shares;
  PipelineRun run;
  std::vector<double> behind;  // of each rank: exchanges of replicas after its last pass that nothing hides
  std::vector<double> optimiser;
};
Step compose_step(StepCase step);

// What is left of an exchange among replicas that begins when a part's first layer is done and may go on
// while the others are computed, in `passes` of time.
double exposed(double exchange, double passes, int layers, bool overlap);

}  // namespace cm384::training
