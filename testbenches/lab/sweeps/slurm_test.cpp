// What is said to Slurm's commands and read from them; estimates; the folder that nodes share.
#include "lab/sweeps/slurm.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lab/sweeps/slurm_runner.h"
#include "lab/sweeps/spool.h"

namespace cm384::sweeps::slurm_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Slurm, WhatASweepNeedsComesAfterWhatAUserSays) {
  const Submission submission{.name = "cm384-1",
                              .script = "/s/script",
                              .log = "/s/task-%a.log",
                              .folder = "/home",
                              .tasks = 8,
                              .at_a_time = 3,
                              .cpus = 2,
                              .memory_MB = 300,
                              .limit = "5",
                              .partition = "short",
                              .after = "17",
                              .options = {"--mem=1G", "--requeue"}};
  EXPECT_THAT(sbatch_words(submission),
              ElementsAre("sbatch", "--no-requeue", "--ntasks=1", "--cpus-per-task=2", "--mem=287M",
                          "--time=5", "--partition=short", "--dependency=afterok:17", "--mem=1G", "--requeue",
                          "--parsable", "--job-name=cm384-1", "--array=0-7%3", "--output=/s/task-%a.log",
                          "--open-mode=append", "--chdir=/home", "/s/script"));
  EXPECT_THAT(
      sbatch_words({.name = "n", .script = "s", .log = "l", .folder = "f"}),
      ElementsAre("sbatch", "--no-requeue", "--ntasks=1", "--cpus-per-task=1", "--parsable", "--job-name=n",
                  "--array=0-0", "--output=l", "--open-mode=append", "--chdir=f", "s"));
}

TEST(Slurm, AScriptHoldsAnyPath) {
  EXPECT_EQ(
      script_text("/opt/it's/cm384", "/a b/slurm/x", 2, 1),
      "#!/bin/bash\n# Points of a sweep, a chunk for each task of the array.\n"
      "exec '/opt/it'\\''s/cm384' sweep task '/a b/slurm/x' --task \"$SLURM_ARRAY_TASK_ID\" --cpus 2\n");
  EXPECT_THAT(script_text("cm384", "/x", 4, 2), ::testing::EndsWith(" --cpus 4 --processes 2\n"));
}

TEST(Slurm, ReadsTasks) {
  const TaskStates states = parse_tasks(
      "cm384-a|7|0|RUNNING|None|n1|4000M\n"
      "cm384-a|7|1|NODE_FAIL|NodeDown|n[0-1]|1G\n"
      "cm384-a|7|[2-3,5%2]|CANCELLED|None||0\n"
      "other|8|0|RUNNING|None|n1|0\n"
      "cm384-b|9|N/A|RUNNING|None|n1|0\n"
      "cm384-b|9|0|RUNNING\n"
      "slurm_load_jobs error\n");
  ASSERT_EQ(states.size(), 5U);
  const TaskState& first = states.at({"cm384-a", 0});
  EXPECT_EQ(first.job, "7");
  EXPECT_EQ(first.state, "RUNNING");
  EXPECT_EQ(first.reason, "");
  EXPECT_EQ(first.nodes, "n1");
  EXPECT_DOUBLE_EQ(first.memory_MB, 4194.304);
  EXPECT_FALSE(first.ended());
  const TaskState& second = states.at({"cm384-a", 1});
  EXPECT_EQ(second.reason, "NodeDown");
  EXPECT_DOUBLE_EQ(second.memory_MB, 1073.741824);
  EXPECT_TRUE(second.ended());
  for (const int task : {2, 3, 5}) EXPECT_EQ(states.at({"cm384-a", task}).state, "CANCELLED") << task;
}

TEST(Slurm, KnowsWhichTasksRunNoMore) {
  for (const char* state : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
                            "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"})
    EXPECT_TRUE(TaskState{.state = state}.ended()) << state;
  for (const char* state : {"COMPLETING", "CONFIGURING", "PENDING", "REQUEUED", "REQUEUE_HOLD", "RESIZING",
                            "RUNNING", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED"})
    EXPECT_FALSE(TaskState{.state = state}.ended()) << state;
}

TEST(Slurm, ReadsTimes) {
  EXPECT_EQ(parse_limit("90"), 90 * 60);
  EXPECT_EQ(parse_limit("2:30"), 150);
  EXPECT_EQ(parse_limit("1:02:03"), 3723);
  EXPECT_EQ(parse_limit("2-12"), (2 * 24 + 12) * 3600);
  EXPECT_EQ(parse_limit("1-2:30"), (24 + 2) * 3600 + 30 * 60);
  EXPECT_EQ(parse_limit("1-2:3:4"), (24 + 2) * 3600 + 184);
  for (const char* text : {"", "1h", "1:2:3:4", "1-", "-1", "1-2-3", ":", "1 ", "1-1:2:3:4"})
    EXPECT_FALSE(parse_limit(text)) << text;
}

TEST(Slurm, ACommandGivesWhatItSaidAndHowItEnded) {
  const Answer answer = ask({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.output, "out\n");
  EXPECT_EQ(answer.errors, "err\n");
  EXPECT_EQ(ask({"cm384-no-such-command"}).exit_code, 127);
  EXPECT_EQ(ask({"sh", "-c", "kill -9 $$"}).exit_code, 137);
}

runs::Outcome ended(double wall_s, double peak_MB) {
  return {0, "", "{}", "", wall_s, peak_MB};
}

TEST(Estimates, AreOfTheLargestPointWithAMargin) {
  Estimates estimates;
  EXPECT_FALSE(estimates.known());
  EXPECT_EQ(estimates.memory_MB(), 0);
  EXPECT_EQ(estimates.minutes(10), 0);
  EXPECT_EQ(estimates.chunk(1000), 1);
  estimates.learn({139, "ended by signal 11", "", "", 1000, 0});  // it wrote no result
  EXPECT_FALSE(estimates.known());
  estimates.learn(ended(30, 400));
  estimates.learn(ended(10, 1000));
  estimates.learn(ended(20, 300));
  EXPECT_TRUE(estimates.known());
  EXPECT_EQ(estimates.memory_MB(), 1700);  // 1.5 times the largest and 200
  EXPECT_EQ(estimates.mean_s(), 20);
  EXPECT_EQ(estimates.minutes(1), 3);   // three times 30 s and 10 s, rounded up, and one more
  EXPECT_EQ(estimates.minutes(6), 11);  // 600 s to the second
  EXPECT_EQ(estimates.minutes(7), 13);
  EXPECT_EQ(estimates.chunk(10'000), 15);  // five minutes
  EXPECT_EQ(estimates.chunk(320), 10);     // 32 tasks
  EXPECT_EQ(estimates.chunk(32), 1);
  estimates.learn(ended(10'000, 1));
  EXPECT_EQ(estimates.chunk(10'000), 1);
}

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() { spool_.open(); }
  ~SpoolTest() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::path(::testing::TempDir()) / ("cm384_spool_test." + std::to_string(getpid()));
  Spool spool_{folder_};
  const SpooledPoint a_{
      .job = {.key = "a", .study = "good", .arguments = {"good", "--x=1 2"}, .settings = {{"x", "1 2"}}},
      .losses = 2};
  const SpooledPoint b_{.job = {.key = "b", .study = "good"}};
};

TEST_F(SpoolTest, KeepsTheTasksOfAnArray) {
  EXPECT_THAT(spool_.arrays(), IsEmpty());
  spool_.add("cm384-1", {{a_, b_}, {b_}}, "script");
  spool_.note_job("cm384-1", "12");
  EXPECT_THAT(spool_.arrays(), ElementsAre("cm384-1"));
  EXPECT_EQ(spool_.job_of("cm384-1"), "12");
  EXPECT_THAT(spool_.tasks("cm384-1"), ElementsAre(0, 1));
  EXPECT_THAT(spool_.keys(), ElementsAre("a", "b"));
  const auto points = spool_.points("cm384-1", 0);
  ASSERT_TRUE(points && points->size() == 2);
  EXPECT_EQ(points->front().job.key, "a");
  EXPECT_EQ(points->front().job.arguments, a_.job.arguments);
  EXPECT_EQ(points->front().job.settings, a_.job.settings);
  EXPECT_EQ(points->front().losses, 2);
  EXPECT_EQ(points->back().losses, 0);
}

TEST_F(SpoolTest, ATaskThatIsRevokedIsVoidAndAnArrayGoesWithItsLast) {
  spool_.add("cm384-1", {{a_}, {b_}}, "script");
  spool_.note_done("cm384-1", 1, "b");
  spool_.note_done("cm384-1", 1, "c");
  EXPECT_THAT(spool_.done("cm384-1", 1), ElementsAre("b", "c"));
  EXPECT_THAT(spool_.done("cm384-1", 0), IsEmpty());
  spool_.revoke("cm384-1", 1);
  spool_.tidy("cm384-1");
  EXPECT_FALSE(spool_.points("cm384-1", 1));
  EXPECT_TRUE(spool_.points("cm384-1", 0));
  spool_.revoke("cm384-1", 0);
  spool_.tidy("cm384-1");
  EXPECT_THAT(spool_.arrays(), IsEmpty());
  spool_.note_done("cm384-1", 0, "a");  // of a task that ended late: brings nothing back
  EXPECT_THAT(spool_.arrays(), IsEmpty());
}

TEST_F(SpoolTest, GivesBackWhatWasWritten) {
  EXPECT_FALSE(spool_.has_outcome("a"));
  EXPECT_FALSE(spool_.read("a"));
  const runs::Outcome outcome{3, "hung \xff", R"({"rows": []})", "profile", 1.5, 200};
  spool_.write({"a", "good", "good --x=1", outcome});
  std::ofstream(folder_ / "results" / "b.json.1-0") << "half";
  std::ofstream(folder_ / "results" / "c.json") << "{";
  EXPECT_TRUE(spool_.has_outcome("a"));
  EXPECT_THAT(spool_.outcomes(), ElementsAre("a", "c"));
  EXPECT_FALSE(spool_.read("c"));
  const auto read = spool_.read("a");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->study, "good");
  EXPECT_EQ(read->arguments, "good --x=1");
  EXPECT_EQ(read->outcome.exit_code, 3);
  EXPECT_EQ(read->outcome.reason, "hung \xef\xbf\xbd");
  EXPECT_EQ(read->outcome.document, outcome.document);
  EXPECT_EQ(read->outcome.profile, "profile");
  EXPECT_EQ(read->outcome.wall_s, 1.5);
  EXPECT_EQ(read->outcome.peak_MB, 200);
  spool_.remove("a");
  EXPECT_FALSE(spool_.has_outcome("a"));
}

TEST_F(SpoolTest, GoesWhenNothingIsLeftInIt) {
  spool_.write({"a", "", "", {}});
  spool_.close();
  EXPECT_TRUE(spool_.has_outcome("a"));
  spool_.remove("a");
  std::ofstream(folder_ / "results" / "b.json.1-0") << "half, of a task that was killed";
  spool_.close();
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace cm384::sweeps::slurm_test
