// How a training step is spread over dies: parallelism, schedule, batch. Ranks are numbered with tensor
// parallelism innermost, then context, data and pipeline parallelism. The experts of a layer lie on
// consecutive ranks of a stage.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/models/model.h"

namespace cm384::training {

enum class Schedule : std::uint8_t { gpipe, one_forward_one_backward, interleaved, zero_bubble, dualpipe };
// Of "gpipe", "1f1b", "interleaved", "zero-bubble", "dualpipe".
Schedule schedule_of(std::string_view name);
std::string_view name_of(Schedule schedule);

// What the backward pass computes again instead of keeping it. Selective: norms, activation functions, and
// queries, keys and values that are made from latents.
enum class Recompute : std::uint8_t { none, selective, full };
Recompute recompute_of(std::string_view name);
std::string_view name_of(Recompute recompute);

struct Plan {
  int data = 1, tensor = 1, pipeline = 1, expert = 1, context = 1;
  Schedule schedule = Schedule::one_forward_one_backward;
  int chunks = 1;                         // of a stage, with an interleaved schedule
  int micro_batch = 1, global_batch = 1;  // sequences
  int sequence = 4096;                    // tokens
  Recompute recompute = Recompute::none;
  int zero = 1;  // 1: a data-parallel group shares the state of the optimiser; 2: gradients too; 3: weights
  int gradient_bytes = 4;  // of a parameter

  int stage_ranks() const { return data * context * tensor; }
  int ranks() const { return stage_ranks() * pipeline; }
  // That a data-parallel replica works on, one after another; of dualpipe from both ends together.
  int micro_batches() const { return global_batch / (data * micro_batch); }
  // Parts that the layers are cut into. Part s belongs to stage s % pipeline.
  int parts() const { return pipeline * chunks; }
  // Stages whose weights a die holds: with dualpipe the one that mirrors its own as well.
  int copies() const { return schedule == Schedule::dualpipe ? 2 : 1; }
  // Tokens of a micro-batch that a tensor-parallel group has, and each of its dies between operators.
  std::int64_t group_tokens() const { return std::int64_t{micro_batch} * sequence / context; }
  std::int64_t own_tokens() const { return group_tokens() / tensor; }
};

// Throws InputError, one line, where numbers do not divide, the machine has fewer dies, or the model has what
// is not modelled.
void check_plan(const Plan& plan, const models::Model& model, int dies, int dies_of_supernode);

// The layers of a part: `from`, `from` + 1, ...
struct Part {
  int from = 0, layers = 0;
  bool embedding = false, head = false;
};
// As even as they go; where they do not, the parts behind the first have one more.
std::vector<Part> spread_layers(const Plan& plan, int layers);

// Ranks of a group that one supernode has; the group's members are `stride` dies apart.
struct Levels {
  int inside = 1, outside = 1;
};
Levels levels_of(int ranks, int stride, int dies_of_supernode);

}  // namespace cm384::training
