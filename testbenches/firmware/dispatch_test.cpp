// Kernel `dispatch`, small: what arrives is what the host's reference says, in both payload modes.
#include <gtest/gtest.h>

#include "testbenches/firmware/run_dispatch.h"
#include "traces/routing/routing.h"

namespace cm384::firmware::dispatch_test {
namespace {

reference::DispatchCase make_case(int ranks, int experts, int shared_copies, int batch, int top_k, int hidden,
                                  double skew) {
  reference::DispatchCase c{
      reference::place_experts(ranks, experts, shared_copies), batch, top_k, hidden, 5, {}};
  const auto routing = traces::zipf_routing(ranks * batch, top_k, experts, skew, 3);
  for (int r = 0; r < ranks; ++r) c.expert_ids.push_back(traces::rows_of_block(routing, r, batch));
  return c;
}

struct Shape {
  const char* name;
  int ranks, experts, shared_copies, batch, top_k, hidden, blocks;
  double skew;
};

class EveryShape : public ::testing::TestWithParam<Shape> {};

TEST_P(EveryShape, DeliversEveryRowInBothPayloadModesAtTheSameTimes) {
  const Shape s = GetParam();
  const auto dispatch = make_case(s.ranks, s.experts, s.shared_copies, s.batch, s.top_k, s.hidden, s.skew);
  const DispatchRun full = run_dispatch(dispatch, {s.blocks, false, true, 1});
  EXPECT_EQ(full.difference, "");
  const DispatchRun control = run_dispatch(dispatch, {s.blocks, true, true, 1});
  EXPECT_EQ(control.difference, "");
  ASSERT_EQ(full.kernel_ends.size(), control.kernel_ends.size());
  for (std::size_t r = 0; r < full.kernel_ends.size(); ++r) {
    EXPECT_EQ(full.kernel_ends[r], control.kernel_ends[r]) << "rank " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryShape,
                         ::testing::Values(Shape{"one_rank_one_block", 1, 4, 0, 5, 2, 64, 1, 0},
                                           Shape{"eight_ranks", 8, 32, 0, 16, 4, 256, 8, 0},
                                           Shape{"hot_expert", 4, 16, 0, 24, 4, 7168, 12, 3.0},
                                           Shape{"uneven_with_part_repeats", 3, 10, 0, 7, 3, 96, 5, 1.0},
                                           Shape{"shared_and_redundant", 6, 4, 1, 9, 2, 128, 6, 0.5},
                                           Shape{"shared_on_one_block", 3, 2, 1, 4, 2, 32, 1, 0},
                                           Shape{"more_blocks_than_work", 2, 2, 0, 1, 1, 32, 48, 0}),
                         [](const auto& shape) { return std::string(shape.param.name); });

// Successive calls use the windows' halves in turn and leave them clean.
TEST(Dispatch, RunsAgainAndAgainOnTheSameWindows) {
  const auto dispatch = make_case(4, 8, 0, 8, 2, 64, 0);
  const DispatchRun run = run_dispatch(dispatch, {4, false, true, 5});
  EXPECT_EQ(run.difference, "");
}

TEST(Dispatch, ElidedPollsTakeTheSameTimeAsRealOnes) {
  const auto dispatch = make_case(4, 8, 0, 8, 2, 64, 0);
  const DispatchRun elided = run_dispatch(dispatch, {4, false, true, 2});
  const DispatchRun real = run_dispatch(dispatch, {4, false, false, 2});
  EXPECT_EQ(real.difference, "");
  ASSERT_EQ(elided.kernel_ends.size(), real.kernel_ends.size());
  for (std::size_t i = 0; i < elided.kernel_ends.size(); ++i) {
    EXPECT_NEAR(elided.kernel_ends[i].us(), real.kernel_ends[i].us(), 0.02 * real.kernel_ends[i].us());
  }
}

}  // namespace
}  // namespace cm384::firmware::dispatch_test
