// What a die holds during a step.
#pragma once

#include <vector>

#include "workloads/training/plan.h"

namespace cm384::training {

// Parameters of a part that one die holds, by how many dies of its stage hold the same: `sliced` over tensor
// parallelism and equal in a data-parallel group, `copied` on all dies of the stage, `experts`.
struct HeldParameters {
  double sliced = 0, copied = 0, experts = 0;
  double all() const { return sliced + copied + experts; }
  HeldParameters& operator+=(const HeldParameters& other) {
    sliced += other.sliced;
    copied += other.copied;
    experts += other.experts;
    return *this;
  }
};
HeldParameters held_parameters(const models::Model& model, const Plan& plan, const Part& part);

// Dies that hold the same parameters, and add up their gradients.
struct Replicas {
  int sliced = 1, copied = 1, experts = 1;
};
Replicas replicas_of(const Plan& plan);

// Bytes that a layer keeps of a micro-batch on a die until its backward pass. A token of a layer of width h
// with a gated network of width w and no latents keeps 2 (6 h + 3 w) bytes with as many heads of keys as of
// queries: norms' inputs and outputs, queries, keys, values, the attention's output, and the network's
// three intermediate values.
double kept_bytes(const models::Model& model, const models::Layer& layer, const Plan& plan,
                  Recompute recompute);
// Bytes of activations that all layers of a part keep, as the plan recomputes.
double kept_bytes(const models::Model& model, const Part& part, const Plan& plan);
// At a time beside these: logits, and with a full recomputation the largest layer.
double working_bytes(const models::Model& model, const Part& part, const Plan& plan);

struct DieMemory {
  double weights = 0, gradients = 0, optimiser = 0, activations = 0;  // bytes
  double all() const { return weights + gradients + optimiser + activations; }
};
// Weights in BF16; master weights and two moments in FP32. Without activations.
DieMemory state_of(const HeldParameters& held, const Plan& plan);
// Bytes that a die writes of a checkpoint: of what replicas, and the stages of a two-way pipeline, hold alike
// each its share.
double saved_bytes(const HeldParameters& held, const Plan& plan);

}  // namespace cm384::training
