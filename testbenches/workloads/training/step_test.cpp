// A step put together from times of its parts: sums worked by hand.
#include <gmock/gmock.h>

#include "workloads/training/train_step.h"

namespace cm384::training::step_test {
namespace {

double sum_of(const StepShares& s) {
  return s.compute + s.again + s.tensor + s.context + s.expert + s.data + s.optimiser + s.stages + s.bubble;
}

PartPasses passes_of(double compute, double tensor, double expert) {
  PartPasses made;
  made.forward = {.compute = compute, .tensor = tensor, .expert = expert};
  made.inputs = made.forward;
  made.weights = {.compute = compute};
  made.layers = 4;
  return made;
}

StepCase step_of(Schedule schedule, int stages, int batches, const PartPasses& passes) {
  StepCase made;
  made.pipeline.schedule = schedule;
  made.pipeline.stages = stages;
  made.pipeline.micro_batches = batches;
  made.passes.assign(static_cast<std::size_t>(stages), passes);
  made.replicas.assign(static_cast<std::size_t>(stages), {});
  return made;
}

TEST(TrainingStep, SharesOfOneStageAddUp) {
  StepCase of = step_of(Schedule::one_forward_one_backward, 1, 5, passes_of(10, 2, 3));
  of.replicas[0] = {40, 20, 15};
  of.overlap = false;
  const Step step = compose_step(of);
  // 5 x (3 x 10 + 2 x 2 + 2 x 3), gradients and weights in full, and the optimiser.
  EXPECT_DOUBLE_EQ(step.time, 5 * 40 + 40 + 20 + 15);
  EXPECT_DOUBLE_EQ(step.shares.compute, 150 / step.time);
  EXPECT_DOUBLE_EQ(step.shares.tensor, 20 / step.time);
  EXPECT_NEAR(step.shares.expert, 30 / step.time, 1e-12);
  EXPECT_DOUBLE_EQ(step.shares.data, 60 / step.time);
  EXPECT_DOUBLE_EQ(step.shares.optimiser, 15 / step.time);
  EXPECT_NEAR(step.shares.bubble, 0, 1e-12);
  EXPECT_NEAR(sum_of(step.shares), 1, 1e-12);
}

TEST(TrainingStep, BubbleStagesAndReplicas) {
  StepCase of = step_of(Schedule::one_forward_one_backward, 4, 8, passes_of(10, 0, 0));
  EXPECT_DOUBLE_EQ(compose_step(of).time, (8 + 3) * 30);
  EXPECT_DOUBLE_EQ(compose_step(of).shares.bubble, 3.0 / 11);
  of.pipeline.messages.assign(3, 1);
  const Step step = compose_step(of);
  EXPECT_DOUBLE_EQ(step.shares.stages, (step.time - 330) / step.time);
  EXPECT_GE(step.time, 330 + 6);
  EXPECT_NEAR(sum_of(step.shares), 1, 1e-12);
  // The first stage is the last to end: what it still sends is not hidden by others.
  of.pipeline.messages.clear();
  of.replicas[0].gradients = 16;  // hidden but for the first layer's quarter
  EXPECT_DOUBLE_EQ(compose_step(of).time, 330 + 4);
  of.replicas[0].gradients = 0;
  of.replicas[3].gradients = 16;  // it ended 60 before
  EXPECT_DOUBLE_EQ(compose_step(of).time, 330);
  of.replicas[3].gradients = 120;  // 120 less three quarters of its last backward pass
  EXPECT_DOUBLE_EQ(compose_step(of).time, 330 - 3 * 20 + 120 - 15);
}

TEST(TrainingStep, WhatIsComputedAgainIsNotCompute) {
  PartPasses passes = passes_of(10, 0, 0);
  passes.again.compute = 10;
  passes.inputs.compute += 10;
  const Step step = compose_step(step_of(Schedule::gpipe, 1, 2, passes));
  EXPECT_DOUBLE_EQ(step.time, 2 * 40);
  EXPECT_DOUBLE_EQ(step.shares.again, 0.25);
  EXPECT_DOUBLE_EQ(step.shares.compute, 0.75);
}

TEST(TrainingStep, PairsHideExchanges) {
  // 3 x 10 computed, 2 x 12 exchanged: hidden in pairs; 2 x 20 are not.
  EXPECT_DOUBLE_EQ(times_of(passes_of(10, 0, 12), Schedule::dualpipe).pair, 30);
  EXPECT_DOUBLE_EQ(times_of(passes_of(10, 0, 20), Schedule::dualpipe).pair, 40);
  EXPECT_DOUBLE_EQ(times_of(passes_of(10, 1, 12), Schedule::dualpipe).pair, 32);
  EXPECT_DOUBLE_EQ(times_of(passes_of(10, 0, 12), Schedule::one_forward_one_backward).pair, 0);
  const Step with = compose_step(step_of(Schedule::dualpipe, 4, 16, passes_of(10, 0, 12)));
  const Step without = compose_step(step_of(Schedule::zero_bubble, 4, 16, passes_of(10, 0, 12)));
  EXPECT_LT(with.time, without.time);
  EXPECT_LT(with.shares.expert, without.shares.expert);
  EXPECT_DOUBLE_EQ(with.shares.compute * with.time, 16 * 30);
  EXPECT_NEAR(sum_of(with.shares), 1, 1e-12);
}

TEST(TrainingStep, Exposed) {
  EXPECT_EQ(exposed(8, 100, 4, true), 2);
  EXPECT_EQ(exposed(100, 40, 4, true), 70);
  EXPECT_EQ(exposed(8, 100, 1, true), 8);
  EXPECT_EQ(exposed(8, 100, 4, false), 8);
}

}  // namespace
}  // namespace cm384::training::step_test
