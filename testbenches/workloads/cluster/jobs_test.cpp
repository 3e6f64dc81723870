// Traces of jobs in each format, and what is drawn.
#include "workloads/cluster/jobs.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/text/error.h"
#include "testbenches/workloads/service/file_of.h"

namespace cm384::cluster::jobs_test {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text, int largest = 0) {
  const FileOf file(text, "csv");
  try {
    read_jobs(file.path(), largest);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Jobs, AreReadInOurOwnFormat) {
  const FileOf file(
      "job_id,submit_s,npus,block,blocks,duration_s,kind\nx,107.5,16,8,2,60,a\ny,100,1,1,1,0.25,b\n", "csv");
  const JobTrace trace = read_jobs(file.path());
  EXPECT_EQ(trace.format, "own");
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].id, "y");  // by submission, from the first
  EXPECT_EQ(trace.jobs[0].submit_ms, 0);
  EXPECT_EQ(trace.jobs[0].duration_ms, 250);
  EXPECT_EQ(trace.jobs[1].submit_ms, 7500);
  EXPECT_EQ(trace.jobs[1].block, 8);
  EXPECT_EQ(trace.jobs[1].blocks, 2);
}

// Kalos' duration begins with the wait: the run is from start to end.
TEST(Jobs, OfAcmeRunFromStartToEnd) {
  const FileOf file(
      "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_"
      "time\n"
      "a,u,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 "
      "00:20:51+08:00,149,32,1\n"
      "b,u,0,0,4,Other,FAILED,2023-02-28 16:18:22+00:00,2023-03-01 00:18:54+08:00,2023-03-01 "
      "00:20:51+08:00,149,32,1\n"
      "c,u,9,72,4,Other,CANCELLED,2023-02-28 17:18:22+00:00,,,0,32,1\n"
      "d,u,9,72,4,Other,COMPLETED,2023-02-28 17:18:22+00:00,2023-02-28 17:18:22+00:00,2023-03-01 "
      "17:18:22+00:00,0,32,1\n",
      "csv");
  const JobTrace trace = read_jobs(file.path(), 32);
  EXPECT_EQ(trace.format, "Acme");
  EXPECT_EQ(trace.left_out, 2);
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].duration_ms, 117'000);
  EXPECT_EQ(trace.jobs[0].block, 8);
  EXPECT_EQ(trace.jobs[1].submit_ms, 3'600'000);
  EXPECT_EQ(trace.jobs[1].duration_ms, 86'400'000);
  EXPECT_EQ(trace.jobs[1].block, 32);
  EXPECT_EQ(trace.jobs[1].blocks, 3);
}

TEST(Jobs, OfPhillyRunFromTheFirstAttemptToTheLast) {
  const FileOf file(R"([{"jobid": "p", "submitted_time": "2017-10-07 01:00:00", "attempts": [
      {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": [{"ip": "m", "gpus": ["a"]}]},
      {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-07 02:12:09",
       "detail": [{"ip": "m", "gpus": ["a", "b"]}, {"ip": "n", "gpus": ["a"]}]}]},
    {"jobid": "q", "submitted_time": "2017-10-07 01:00:01", "attempts": []}])",
                    "json");
  const JobTrace trace = read_jobs(file.path());
  EXPECT_EQ(trace.format, "Philly");
  EXPECT_EQ(trace.left_out, 1);
  ASSERT_EQ(trace.jobs.size(), 1u);
  EXPECT_EQ(trace.jobs[0].duration_ms, 3'600'000);
  EXPECT_EQ(trace.jobs[0].block, 3);
}

TEST(Jobs, AreRefusedByLineAndField) {
  const std::string header = "job_id,submit_s,npus,block,blocks,duration_s\n";
  EXPECT_THAT(refusal(header + "x,1,16,8,3,60\n"), HasSubstr(":2: npus"));
  EXPECT_THAT(refusal(header + "x,-1,16,8,2,60\n"), HasSubstr(":2: submit_s"));
  EXPECT_THAT(refusal(header + "x,1,16,8,2,nan\n"), HasSubstr(":2: duration_s"));
  EXPECT_THAT(refusal(header), HasSubstr("has no job"));
  EXPECT_THAT(refusal(header + "x,1,16,8,2,60\n", 4), HasSubstr("says the blocks"));
  EXPECT_THAT(refusal("a,b\n1,2\n"), HasSubstr("columns a,b; allowed: job_id,submit_s"));
  const std::string helios = "job_id,gpu_num,submit_time,start_time,end_time\n";
  EXPECT_THAT(refusal(helios + "a,8,yesterday,2020-06-09 18:41:01,2020-06-09 18:41:02\n"),
              HasSubstr(":2: submit_time"));
  EXPECT_THAT(refusal(helios + "a,0.5,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:41:02\n"),
              HasSubstr("a whole number of GPUs"));
  EXPECT_THAT(refusal("[3]"), HasSubstr("[0]: a job"));
  for (const char* text : {"fixed:0", "uniform:3:2", "powers:48:10", "powers:64:64", "powers:64:1", "any"})
    EXPECT_THROW(BlockSizes{text}, InputError) << text;
  for (const char* text : {"fixed:0", "lognormal:10:9", "exponential:1e10", "lognormal:10"})
    EXPECT_THROW(RunTimes{text}, InputError) << text;
}

TEST(Jobs, AreDrawnAsTheirDistributionsSay) {
  DrawnJobs drawn;
  drawn.count = 200'000;
  drawn.per_second = 2;
  const JobTrace trace = draw_jobs(drawn, 3);
  double npus = 0, seconds = 0;
  std::vector<std::int64_t> runs;
  for (const Job& job : trace.jobs) {
    npus += job.block;
    seconds += static_cast<double>(job.duration_ms) * 1e-3;
    runs.push_back(job.duration_ms);
    EXPECT_EQ(job.block & (job.block - 1), 0);
  }
  std::ranges::nth_element(runs, runs.begin() + 100'000);
  EXPECT_NEAR(npus / 200'000 / 10.08, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(runs[100'000]) / 122'000, 1, 0.02);
  EXPECT_NEAR(seconds / 200'000 / 1485, 1, 0.1);  // a heavy tail
  EXPECT_NEAR(static_cast<double>(trace.jobs.back().submit_ms) / 100e6, 1, 0.01);
  EXPECT_NE(draw_jobs(drawn, 4).jobs[9].duration_ms, trace.jobs[9].duration_ms);
}

}  // namespace
}  // namespace cm384::cluster::jobs_test
