// Gradients of attention: within the bounds of a reference in double precision, the same times without
// values, and a time beside the forward pass.
#include "workloads/operators/attention/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/operators/die_rig.h"
#include "workloads/operators/attention/attention.h"

namespace cm384::operators::backward_test {
namespace {

reference::AttentionCase case_of(std::uint32_t sequences, std::uint32_t heads, std::uint32_t kv_heads,
                                 std::uint32_t length) {
  return {.seed = 1, .sequences = sequences, .heads = heads, .length = length, .kv_heads = kv_heads};
}

class Backward : public ::testing::TestWithParam<reference::AttentionCase> {};

TEST_P(Backward, IsWithinItsBounds) {
  Time times[2];
  for (const bool full : {true, false}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    AttentionBackward backward(GetParam());
    backward.place(rig.site(memory, 0, 3, full));
    for (int k = 0; k < 2; ++k) {  // what a run adds up, the next one begins anew
      backward.enqueue(host::Runtime::default_stream(0));
      ASSERT_TRUE(rig.runtime.wait());
      if (full) {
        EXPECT_EQ(backward.check(), "") << backward.size();
      }
    }
    times[full ? 1 : 0] = kernel_time(backward);
  }
  EXPECT_EQ(times[0], times[1]);
}

// A part of a tile, whole ones, several with a part; heads of their own and shared; fewer tasks than groups;
// two sequences; tasks of one item behind long ones.
INSTANTIATE_TEST_SUITE_P(Shapes, Backward,
                         ::testing::Values(case_of(1, 1, 1, 16), case_of(1, 1, 1, 128), case_of(1, 4, 4, 80),
                                           case_of(2, 2, 1, 144), case_of(1, 4, 2, 256),
                                           case_of(1, 3, 1, 400), case_of(2, 1, 1, 512)));

TEST(AttentionBackward, RefusesWhatItIsNotFor) {
  const auto refused = [](reference::AttentionCase of) {
    return cm384::refusal([&] { AttentionBackward{of}; });
  };
  EXPECT_THAT(refused(case_of(1, 1, 1, 24)), ::testing::HasSubstr("multiples of 16"));
  EXPECT_THAT(refused(case_of(1, 3, 2, 32)), ::testing::HasSubstr("a divisor of 3"));
  EXPECT_THAT(refused(case_of(1, 1, 0, 32)), ::testing::HasSubstr("heads of 192"));
  reference::AttentionCase window = case_of(1, 1, 1, 256);
  window.window = 128;
  EXPECT_THAT(refused(window), ::testing::HasSubstr("without a window"));
}

// Two and a half times the operations of the forward pass, at a better rate: more products of a tile that is
// there.
TEST(AttentionBackward, TakesLessThanItsShareOfOperationsOverTheForwardPass) {
  Time times[2];
  for (const bool backward : {false, true}) {
    DieRig rig;
    host::DeviceMemory memory(rig.runtime, 0);
    const reference::AttentionCase of = case_of(1, 6, 2, 1024);
    std::unique_ptr<KernelOperator> made;
    if (backward) {
      made = std::make_unique<AttentionBackward>(of);
    } else {
      made = std::make_unique<FlashAttention>(of);
    }
    made->place(rig.site(memory, 0, 24));
    made->enqueue(host::Runtime::default_stream(0));
    ASSERT_TRUE(rig.runtime.wait());
    times[backward ? 1 : 0] = kernel_time(*made);
    EXPECT_LT(duration_of(made->work(), 24, rig.parameters), times[backward ? 1 : 0]);
  }
  EXPECT_GT(times[1].us() / times[0].us(), 1.2);
  EXPECT_LT(times[1].us() / times[0].us(), 2.5);
}

TEST(AttentionBackward, WorkIsFiveProducts) {
  EXPECT_EQ(AttentionBackward(case_of(2, 4, 2, 32)).work().operations, 5 * 2.0 * 128 * (32 * 33 / 2) * 2 * 4);
}

}  // namespace
}  // namespace cm384::operators::backward_test
