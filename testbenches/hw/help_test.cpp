// Lines of `--help` and what is said of the time that is left.
#include "app/cli/help.h"

#include <gtest/gtest.h>

#include "app/cli/progress.h"

namespace cm384::cli::help_test {
namespace {

TEST(HelpLine, WhatHasNoRoomGoesToTheNextLine) {
  EXPECT_EQ(list_line("  cut IN OUT", "a part", 14), "  cut IN OUT  a part\n");
  // Two blanks at least stand between.
  EXPECT_EQ(list_line("  cut IN OUTS", "a part", 14), "  cut IN OUTS\n              a part\n");
  EXPECT_EQ(list_line("  cut RANK0 RANK1... OUT", "a part", 14),
            "  cut RANK0 RANK1... OUT\n              a part\n");
}

TEST(HelpLine, IsAtMost100ColumnsLong) {
  const std::string word(43, 'x');
  EXPECT_EQ(list_line("  a", word + ' ' + word, 13), "  a          " + word + ' ' + word + '\n');
  EXPECT_EQ(list_line("  a", word + ' ' + word + 'y', 13),
            "  a          " + word + "\n             " + word + "y\n");
}

TEST(TimeLeft, IsNotGuessedFromNextToNothing) {
  // One of 59,270 transfers done after 1.4 s.
  EXPECT_EQ(time_left(1.0 / 59'270, 1.4), "");
  EXPECT_EQ(time_left(0, 100), "");
  EXPECT_EQ(time_left(-1, 100), "");
  EXPECT_EQ(time_left(0.0199, 60), "");
  EXPECT_EQ(time_left(0.5, 1.9), "");
}

TEST(TimeLeft, IsInUnitsThatPeopleReadAt) {
  EXPECT_EQ(time_left(0.5, 40), ", about 40 s left");
  EXPECT_EQ(time_left(0.02, 2), ", about 98 s left");
  EXPECT_EQ(time_left(0.02, 60), ", about 49 min left");
  EXPECT_EQ(time_left(0.02, 600), ", about 8 h left");
  EXPECT_EQ(time_left(1, 600), ", about 0 s left");
}

}  // namespace
}  // namespace cm384::cli::help_test
