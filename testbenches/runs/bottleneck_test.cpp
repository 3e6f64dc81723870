// What a row says binds it: true of small kernels too, which no pipe binds.
#include <gtest/gtest.h>

#include "workloads/kernels/cube_run.h"

namespace cm384::studies::bottleneck_test {
namespace {

TEST(Bottleneck, IsWhatTakesLongest) {
  EXPECT_EQ(bottleneck({{"M", 0.81, 0.08, "MTE1"}, {"MTE2", 0.7, 0, ""}}, 0.9),
            "M: busy 81 %, waits for MTE1 8 %");
  // 30 us of which the kernel is 12: the launch is 60 %, the pipe 0.9 x 40 %.
  EXPECT_EQ(bottleneck({{"MTE2", 0.9, 0, ""}}, 0.4), "launch: 60 %");
  EXPECT_EQ(bottleneck({{"MTE2", 0.11, 0.02, "MTE1"}}, 0.95),
            "several (--explain); MTE2: busy 11 %, waits for MTE1 2 %");
  EXPECT_EQ(bottleneck({{"MTE2", 0.01, 0, ""}}, 0.76), "several (--explain); launch: 24 %");
  EXPECT_EQ(bottleneck({{"MTE2", 0.5, 0, ""}}, 1), "MTE2: busy 50 %");
  EXPECT_EQ(bottleneck({}, 1), "");
}

}  // namespace
}  // namespace cm384::studies::bottleneck_test
