// Programs that are started and waited for.
#include "base/text/run_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

namespace cm384::run_program_test {
namespace {

std::optional<ProgramEnd> shell(const std::string& script, const ProgramOptions& options) {
  return run_program({"sh", "-c", script}, options);
}

TEST(RunProgram, KeepsWhatIsAskedFor) {
  const std::string script = "echo out; echo err >&2; exit 3";
  const auto both = shell(script, {.output = Printed::kept, .errors = Printed::kept});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->exit_code, 3);
  EXPECT_EQ(both->signal, 0);
  EXPECT_FALSE(both->done());
  EXPECT_EQ(both->output, "out\n");
  EXPECT_EQ(both->errors, "err\n");
  const auto output = shell(script, {.output = Printed::kept, .errors = Printed::dropped});
  EXPECT_EQ(output->output, "out\n");
  EXPECT_EQ(output->errors, "");
}

TEST(RunProgram, KeepsMoreThanAPipeHolds) {
  const auto end = shell("head -c 1000000 /dev/zero; head -c 300000 /dev/zero >&2",
                         {.output = Printed::kept, .errors = Printed::kept});
  ASSERT_TRUE(end && end->done());
  EXPECT_EQ(end->output.size(), 1'000'000u);
  EXPECT_EQ(end->errors.size(), 300'000u);
}

TEST(RunProgram, SaysWhichSignalEndedIt) {
  const auto end = shell("kill -TERM $$", {});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGTERM);
  EXPECT_EQ(end->exit_code, 0);
  EXPECT_FALSE(end->done());
}

TEST(RunProgram, IsNothingWithoutSuchAProgram) {
  EXPECT_FALSE(run_program({"cm384-no-such-program"}));
  EXPECT_FALSE(run_program({"/etc/passwd"}));  // which nobody may run
}

// A group of its own, which an interrupt at the terminal does not reach; and nothing to read.
TEST(RunProgram, StandsApart) {
  const std::string group = "read pid name state parent group rest </proc/$$/stat; echo $group; ";
  const auto apart = shell(group + "cat", {.output = Printed::kept, .apart = true});
  ASSERT_TRUE(apart && apart->done());
  EXPECT_NE(std::stol(apart->output), getpgrp());
  const auto together = shell(group, {.output = Printed::kept});
  EXPECT_EQ(std::stol(together->output), getpgrp());
}

}  // namespace
}  // namespace cm384::run_program_test
