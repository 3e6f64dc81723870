// Sorted rows against std::stable_sort, with equal values, in both payload modes; by one core and by several,
// of any width.
#include <gtest/gtest.h>

#include "testbenches/runs/machine_run.h"
#include "workloads/operators/rows/rows.h"

namespace cm384::testing::sort_test {
namespace {

using reference::RowOperation;
using studies::OpReading;
using studies::OpSetting;

struct Case {
  std::uint32_t rows, width, buffers;
  int groups;
  std::size_t blocks;
};

class Sort : public ::testing::TestWithParam<Case> {};

TEST_P(Sort, IsTheReferences) {
  const Case& c = GetParam();
  const auto run = [&c](bool full) {
    const OpSetting setting{.groups = c.groups, .graph = true, .iterations = 2, .warmup = 0, .full = full};
    return run_operator(setting, [&c] {
      return std::make_unique<operators::Rows>(
          reference::RowCase{.operation = RowOperation::sort, .rows = c.rows, .width = c.width}, c.buffers);
    });
  };
  const OpReading full = run(true), control = run(false);
  EXPECT_TRUE(full.correct && *full.correct) << full.first_difference;
  EXPECT_EQ(full.blocks, c.blocks);
  EXPECT_EQ(full.task_us, control.task_us);
  EXPECT_EQ(full.hbm_bytes, control.hbm_bytes);
}

INSTANTIATE_TEST_SUITE_P(All, Sort,
                         ::testing::Values(Case{1, 1, 1, 1, 1}, Case{3, 1337, 2, 1, 2},
                                           Case{1, 30011, 1, 1, 2},    // two cores at a row
                                           Case{1, 60001, 2, 4, 8},    // two levels of merges among cores
                                           Case{2, 4100, 1, 24, 8},    // four each, of a part of 1,025
                                           Case{5, 45678, 1, 2, 4}));  // rows after each other

}  // namespace
}  // namespace cm384::testing::sort_test
