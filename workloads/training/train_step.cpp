#include "workloads/training/train_step.h"

#include <algorithm>

namespace cm384::training {
namespace {

// Parts of a rank; with dualpipe that of the rank that mirrors it as well. Each is passed by as many
// micro-batches.
struct RankParts {
  std::vector<std::size_t> parts;
  double micro_batches = 0;
};
RankParts parts_of_rank(const PipelineCase& of, int rank) {
  RankParts made;
  made.micro_batches = of.micro_batches;
  for (int chunk = 0; chunk < of.chunks; ++chunk)
    made.parts.push_back(static_cast<std::size_t>(chunk * of.stages + rank));
  if (of.schedule == Schedule::dualpipe) {
    made.micro_batches = of.micro_batches / 2.0;
    made.parts.push_back(static_cast<std::size_t>(of.stages - 1 - rank));
  }
  return made;
}

// A share that is left when others are taken away; what rounding leaves is none.
double positive(double share) {
  return share < 1e-12 ? 0 : share;
}

}  // namespace

PartTimes times_of(const PartPasses& passes, Schedule schedule) {
  PartTimes made{passes.forward.all(), passes.inputs.all(), passes.weights.all(), 0};
  if (schedule == Schedule::dualpipe)
    made.pair = std::max(
        passes.forward.without_experts() + passes.inputs.without_experts() + passes.weights.without_experts(),
        passes.forward.expert + passes.inputs.expert);
  return made;
}

double exposed(double exchange, double passes, int layers, bool overlap) {
  if (!overlap || layers < 2) return exchange;
  const double last = 1.0 / layers;
  return std::max(exchange * last, exchange - passes * (1 - last));
}

Step compose_step(StepCase step) {
  PipelineCase& pipeline = step.pipeline;
  pipeline.parts.clear();
  for (const PartPasses& passes : step.passes) pipeline.parts.push_back(times_of(passes, pipeline.schedule));
  Step made;
  made.run = run_pipeline(pipeline, step.keep_passes);
  PipelineCase free = pipeline;
  free.messages.clear();
  const double stages = made.run.total - run_pipeline(free).total;

  std::vector<double>& behind = made.behind;
  for (int rank = 0; rank < pipeline.stages; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const ReplicaTimes& replicas = step.replicas[at];
    const RankParts own = parts_of_rank(pipeline, rank);
    const PartPasses& first = step.passes[own.parts.front()];
    behind.push_back(exposed(replicas.gradients, made.run.last[at], first.layers, step.overlap) +
                     exposed(replicas.weights, first.forward.all(), first.layers, step.overlap));
    made.optimiser.push_back(replicas.optimiser);
    made.time = std::max(made.time, made.run.ends[at] + behind.back() + replicas.optimiser);
  }
  const auto busiest =
      static_cast<std::size_t>(std::ranges::max_element(made.run.busy) - made.run.busy.begin());
  const RankParts own = parts_of_rank(pipeline, static_cast<int>(busiest));
  PassTime sum, again;
  for (const std::size_t part : own.parts) {
    const PartPasses& passes = step.passes[part];
    for (const PassTime& pass : {passes.forward, passes.inputs, passes.weights}) sum += pass;
    again += passes.again;
  }
  const auto share = [&](double of_a_micro_batch) {
    return own.micro_batches * of_a_micro_batch / made.time;
  };
  StepShares& shares = made.shares;
  shares.again = share(again.compute);
  shares.compute = share(sum.compute) - shares.again;
  shares.tensor = share(sum.tensor);
  shares.context = share(sum.context);
  // Pairs hide some of it.
  shares.expert = positive(made.run.busy[busiest] / made.time - share(sum.without_experts()));
  shares.optimiser = step.replicas[busiest].optimiser / made.time;
  shares.data = share(sum.data) + behind[busiest] / made.time;
  shares.stages = stages / made.time;
  shares.bubble = std::max(
      0.0, 1 - (made.run.busy[busiest] + behind[busiest]) / made.time - shares.optimiser - shares.stages);
  return made;
}

}  // namespace cm384::training
