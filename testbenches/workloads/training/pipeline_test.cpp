// Schedules of a pipeline against their closed forms, exactly: whole numbers of time.
#include "workloads/training/pipeline.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace cm384::training::pipeline_test {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

struct Times {
  double forward, inputs, weights;
  double backward() const { return inputs + weights; }
  double all() const { return forward + backward(); }
};
// Gradients of weights take no longer than the other two: where they do no order hides them.
constexpr Times kTimes[] = {{6, 6, 6}, {60, 72, 48}, {60, 48, 30}, {42, 66, 18}, {60, 120, 12}};

PipelineCase even_case(Schedule schedule, int stages, int batches, const Times& times, int chunks = 1) {
  PipelineCase made;
  made.schedule = schedule;
  made.stages = stages;
  made.chunks = chunks;
  made.micro_batches = batches;
  const double c = chunks;
  made.parts.assign(static_cast<std::size_t>(stages * chunks),
                    {times.forward / c, times.inputs / c, times.weights / c, 0});
  made.kept.assign(made.parts.size(), 1);
  return made;
}

double bubble_of(const PipelineCase& of, const Times& times) {
  const PipelineRun run = run_pipeline(of);
  EXPECT_THAT(run.busy, Each(of.micro_batches * times.all()));
  return run.total - of.micro_batches * times.all();
}

constexpr std::pair<int, int> kSizes[] = {{1, 1}, {1, 4}, {2, 4}, {4, 4}, {4, 12}, {6, 20}, {8, 40}};

TEST(Pipeline, GpipeAndOneForwardOneBackwardFillAndDrain) {
  for (const Times& times : kTimes) {
    for (const auto& [stages, batches] : kSizes) {
      for (const Schedule schedule : {Schedule::gpipe, Schedule::one_forward_one_backward})
        EXPECT_EQ(bubble_of(even_case(schedule, stages, batches, times), times),
                  (stages - 1) * (times.forward + times.backward()));
    }
  }
}

TEST(Pipeline, ChunksDivideTheBubble) {
  for (const Times& times : kTimes) {
    for (const int chunks : {2, 3}) {
      for (const auto& [stages, batches] : {std::pair(2, 4), std::pair(4, 8), std::pair(8, 40)})
        EXPECT_EQ(bubble_of(even_case(Schedule::interleaved, stages, batches, times, chunks), times),
                  (stages - 1) * times.all() / chunks);
    }
  }
}

TEST(Pipeline, ZeroBubbleKeepsForwardAndInputsLessWeights) {
  for (const Times& times : kTimes) {
    for (const auto& [stages, batches] : kSizes)
      EXPECT_EQ(bubble_of(even_case(Schedule::zero_bubble, stages, batches, times), times),
                (stages - 1) * (times.forward + times.inputs - times.weights))
          << stages << " " << batches;
  }
}

// (P/2 - 1)(F&B + B - 3W), where a forward pass is as long as gradients of inputs. Pairs that save time leave
// ranks different numbers of them; the form is that of the ranks with the fewest idle ones, in the middle.
TEST(Pipeline, DualPipe) {
  for (const double weights : {6.0, 3.0, 1.0}) {
    for (const double saved : {0.0, 2.0}) {
      for (const auto& [stages, batches] :
           {std::pair(2, 4), std::pair(4, 8), std::pair(6, 20), std::pair(8, 40)}) {
        const Times times{6, 6, weights};
        PipelineCase of = even_case(Schedule::dualpipe, stages, batches, times);
        const double pair = times.all() - saved;
        for (PartTimes& part : of.parts) part.pair = pair;
        const PipelineRun run = run_pipeline(of);
        std::vector<double> idle;
        for (const double busy : run.busy) idle.push_back(run.total - busy);
        EXPECT_EQ(*std::ranges::max_element(idle),
                  (stages / 2 - 1) * (pair + times.backward() - 3 * weights));
        if (saved == 0) {
          EXPECT_THAT(idle, Each(idle.front()));
        }
      }
    }
  }
}

// A flow shop of equal jobs: all stages once, and the slowest for each further job, both ways.
TEST(Pipeline, UnequalStagesAndMessages) {
  PipelineCase of = even_case(Schedule::gpipe, 3, 5, {1, 1, 1});
  of.parts = {{3, 5, 1, 0}, {7, 4, 4, 0}, {2, 9, 2, 0}};
  of.messages = {10, 20};
  EXPECT_EQ(run_pipeline(of).total, (3 + 7 + 2 + 30) + 4 * 7 + (6 + 8 + 11 + 30) + 4 * 11);
  EXPECT_EQ(run_pipeline(of).busy, (std::vector<double>{5 * 9, 5 * 15, 5 * 13}));
  // Of one micro-batch nothing overlaps.
  of.schedule = Schedule::one_forward_one_backward;
  of.micro_batches = 1;
  EXPECT_EQ(run_pipeline(of).total, 12 + 25 + 2 * 30);
  // The gradient of the first stage's weights is the last.
  of.schedule = Schedule::zero_bubble;
  EXPECT_EQ(run_pipeline(of).total, 12 + 18 + 60 + 1);
}

TEST(Pipeline, MicroBatchesInFlight) {
  const Times times{6, 6, 6};
  EXPECT_THAT(run_pipeline(even_case(Schedule::gpipe, 4, 12, times)).most_kept, Each(12));
  EXPECT_EQ(run_pipeline(even_case(Schedule::one_forward_one_backward, 4, 12, times)).most_kept,
            (std::vector<double>{4, 3, 2, 1}));
  EXPECT_THAT(run_pipeline(even_case(Schedule::zero_bubble, 4, 12, times)).most_kept, Each(4));
  // P (1 + (P - 1) / (P V)) micro-batches, each of V parts.
  EXPECT_EQ(run_pipeline(even_case(Schedule::interleaved, 4, 12, times, 3)).most_kept.front(), 4 * 3 + 3);
  EXPECT_THAT(run_pipeline(even_case(Schedule::dualpipe, 8, 40, times)).most_kept, Each(Le(9)));
  EXPECT_THAT(run_pipeline(even_case(Schedule::dualpipe, 8, 40, times)).most_kept, Each(Ge(8)));
}

// Each rank does each pass of its parts once, and in an order in which it can: no schedule stalls.
TEST(Pipeline, EveryPassOnce) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_forward_one_backward, Schedule::interleaved,
                                  Schedule::zero_bubble, Schedule::dualpipe}) {
    for (const int stages : {2, 4, 6}) {
      const int chunks = schedule == Schedule::interleaved ? 2 : 1, batches = 2 * stages;
      const PipelineCase of = even_case(schedule, stages, batches, {1, 1, 1}, chunks);
      for (int rank = 0; rank < stages; ++rank) {
        std::set<std::tuple<int, int, bool>> seen;
        std::set<std::pair<int, int>> weights;
        for (const Pass& pass : passes_of(of, rank)) {
          if (pass.kind == Pass::Kind::backward || pass.kind == Pass::Kind::weights) {
            EXPECT_TRUE(weights.emplace(pass.micro_batch, pass.part).second);
          }
          if (pass.kind != Pass::Kind::weights) {
            EXPECT_TRUE(seen.emplace(pass.micro_batch, pass.part, pass.kind == Pass::Kind::forward).second);
          }
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(2 * batches * chunks));
        EXPECT_EQ(weights.size(), static_cast<std::size_t>(batches * chunks));
      }
    }
  }
}

TEST(Pipeline, TheLastBackwardPass) {
  const PipelineRun run = run_pipeline(even_case(Schedule::one_forward_one_backward, 4, 8, {6, 7, 2}));
  EXPECT_THAT(run.last, Each(9));
  EXPECT_EQ(run.ends.front(), run.total);
  EXPECT_EQ(run.ends.back(), run.total - 3 * 9);
}

// Passes that are kept: of a rank one after another, as long as they are, none before what it needs.
TEST(Pipeline, PassesInTime) {
  const Times times{60, 72, 48};
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_forward_one_backward, Schedule::zero_bubble, Schedule::dualpipe}) {
    PipelineCase of = even_case(schedule, 4, 8, times);
    of.messages = {3, 3, 3};
    if (schedule == Schedule::dualpipe)
      for (PartTimes& part : of.parts) part.pair = 140;
    EXPECT_TRUE(run_pipeline(of).passes.empty());
    const PipelineRun run = run_pipeline(of, true);
    std::vector<double> busy(4);
    std::map<std::pair<int, int>, double> forward;  // ends, by part and micro-batch
    for (std::size_t n = 0; n < run.passes.size(); ++n) {
      const PassRun& one = run.passes[n];
      if (one.pass.kind == Pass::Kind::forward) forward[{one.pass.part, one.pass.micro_batch}] = one.end;
      if (n == 0 || run.passes[n - 1].rank != one.rank) continue;
      const PassRun& before = run.passes[n - 1];
      if (before.pass.pair) {
        EXPECT_EQ(std::pair(one.begin, one.end), std::pair(before.begin, before.end));
      } else {
        EXPECT_GE(one.begin, before.end);
      }
    }
    for (std::size_t n = 0; n < run.passes.size(); ++n) {
      const PassRun& one = run.passes[n];
      if (!one.pass.pair) busy[static_cast<std::size_t>(one.rank)] += one.end - one.begin;
      if (one.pass.kind == Pass::Kind::forward && one.pass.part % 4 != 0) {
        EXPECT_GE(one.begin, forward.at({one.pass.part - 1, one.pass.micro_batch}) + 3);
      }
      if (one.pass.kind != Pass::Kind::forward) {
        EXPECT_GE(one.begin, forward.at({one.pass.part, one.pass.micro_batch}));
      }
    }
    EXPECT_EQ(busy, run.busy);
    EXPECT_EQ(std::ranges::max_element(run.passes, {}, &PassRun::end)->end, run.total);
    EXPECT_EQ(std::ranges::min_element(run.passes, {}, &PassRun::begin)->begin, 0);
  }
}

}  // namespace
}  // namespace cm384::training::pipeline_test
