// Jobs on a pool whose parts fail: against closed forms of one job size, the run that has the whole pool
// (workloads/cluster/reliability.h), and the pool where nothing fails (workloads/cluster/allocation.h).
#include "workloads/cluster/job_mix.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <string>

#include "base/text/error.h"

namespace cm384::cluster::job_mix_test {
namespace {

constexpr double kHours = 3600;

std::vector<Job> alike(int count, int block, double seconds) {
  std::vector<Job> jobs;
  for (int k = 0; k < count; ++k)
    jobs.push_back({std::to_string(k), 0, static_cast<std::int64_t>(seconds * 1000), block, 1});
  return jobs;
}

JobMixCase pool(const PoolShape& shape, const SaveTimes& save) {
  JobMixCase of;
  of.shape = shape;
  of.save = [save](const Job&) { return save; };
  return of;
}

// Shares of all NPU time that are some job's, nobody's or under repair.
double total(const JobMixRun& run, const JobMixCase& of) {
  double held = 0;
  for (const MixClass& one : run.classes) held += one.held();
  return run.idle + run.away + held / of.wall / static_cast<double>(of.shape.npus());
}

// A job of n parts of work with a checkpoint between each two takes M exp(R/M) ((n - 1) (exp((a + d)/M) - 1)
// + exp(a/M) - 1), as each part is Daly's.
TEST(JobMix, OfOneSizeTakesWhatDalySays) {
  const double interval = kHours, write = 300, down = 700;
  const int parts = 5, count = 3000;
  for (const bool of_npu : {true, false}) {
    for (const double mtbf : {2 * kHours, 10 * kHours}) {
      // Two jobs of four NPUs fill a node of eight.
      JobMixCase of = pool({1, 4, 8, 1, true}, {interval, write, 0});
      of.wall = 4e5 * kHours;
      const double each = of_npu ? 8 / mtbf : 4 / mtbf;  // of the pool: eight times four NPUs, or four nodes
      of.hazards = {{"one", each * 0.75, 1, 0, 0, 100, down - 100, of_npu},
                    {"other", each * 0.5, 0.5, 0, 0, 100, down - 100, of_npu}};
      const std::vector<Job> jobs = alike(count, 4, parts * interval);
      EXPECT_NEAR(interruptions_per_second(of, jobs[0]) * mtbf, 1, 1e-12);
      const JobMixRun run = run_job_mix(jobs, of, 3);
      ASSERT_EQ(run.classes.size(), 1u);
      const MixClass& got = run.classes[0];
      EXPECT_EQ(got.npus, 4);
      EXPECT_EQ(got.finished, count);
      const double wanted =
          mtbf * std::exp(down / mtbf) *
          ((parts - 1) * std::expm1((interval + write) / mtbf) + std::expm1(interval / mtbf));
      EXPECT_NEAR(got.held() / 4 / count / wanted, 1, 0.03) << of_npu << " " << mtbf;
      EXPECT_NEAR(got.useful / 4 / count / (parts * interval), 1, 1e-9);
      // Interruptions come while jobs hold NPUs, whatever they do.
      EXPECT_NEAR(static_cast<double>(got.interruptions) / (got.held() / 4 / mtbf), 1, 0.03);
      EXPECT_EQ(got.interruptions, run.interruptions[0] + run.interruptions[1]);
      EXPECT_NEAR((run.lost[0] + run.lost[1]) / (got.redo + got.detection + got.restart), 1, 1e-9);
      EXPECT_NEAR(total(run, of), 1, 1e-9);
    }
  }
}

// With checkpoints that are written beside work, a part that is saved is the one before the last where a
// fault comes within `beside` of its end: exp(-beside/M) of those that are begun count.
TEST(JobMix, CheckpointsBesideWorkCountWhenTheyAreWritten) {
  const double mtbf = 5 * kHours, interval = kHours, write = 60, beside = 2400, down = 300;
  JobMixCase of = pool({1, 1, 8, 1, false}, {interval, write, beside});
  of.wall = 40'000 * mtbf;
  of.hazards = {{"one", 1 / mtbf, 1, 0, 0, 100, 200, false}};
  const JobMixRun run = run_job_mix(alike(1, 8, 1e9), of, 1);
  const double wanted = interval * std::exp(-beside / mtbf) /
                        (mtbf * std::exp(down / mtbf) * std::expm1((interval + write) / mtbf));
  EXPECT_NEAR(run.classes[0].useful / (8 * of.wall) / wanted, 1, 0.02);
}

// One job on all nodes but the spares of each supernode is the run that reliability.h has, but for faults
// while it waits: there they are the run's, here it holds no node.
TEST(JobMix, OfOneJobOnAllIsTheRunThatHasThePool) {
  for (const double beside : {0.0, 900.0}) {
    ReliabilityCase whole;
    whole.supernodes = 2;
    whole.nodes = 6;
    whole.spares = 1;
    whole.wall = 2e5 * kHours;
    whole.interval = kHours;
    whole.write = 100;
    whole.beside = beside;
    whole.hazards = {{"npu", 12 / (200 * kHours), 1, 0, 4 * kHours, 60, 600, true},
                     {"node", 12 / (300 * kHours), 0.5, 0.2, 2 * kHours, 10, 30, false}};
    const ReliabilityShares want = run_reliability(whole, 1).shares;
    JobMixCase of = pool({2, 6, 8, 1, false}, {whole.interval, whole.write, beside});
    of.spares = 1;
    of.wall = whole.wall;
    of.hazards = whole.hazards;
    const JobMixRun run = run_job_mix({{"all", 0, 1'000'000'000'000, 40, 2}}, of, 2);
    const MixClass& got = run.classes[0];
    const double all = 80 * of.wall;
    EXPECT_NEAR(got.useful / all / want.useful, 1, 0.01) << beside;
    EXPECT_NEAR(got.redo / all / want.redo, 1, 0.03) << beside;
    EXPECT_NEAR(got.checkpoint / all / want.checkpoint, 1, 0.01) << beside;
    EXPECT_NEAR(got.restart / all / want.restart, 1, 0.04) << beside;
    EXPECT_NEAR(got.detection / all / want.detection, 1, 0.05) << beside;
    EXPECT_NEAR(got.waiting / all / want.waiting, 1, 0.08) << beside;
    EXPECT_NEAR(total(run, of), 1, 1e-9);
  }
}

// The slow part of a node slows the job that it strikes, as in M/G/inf.
TEST(JobMix, SlowPartsTakeTheirShareOfTheirJobs) {
  JobMixCase of = pool({1, 2, 8, 1, false}, {1e5 * kHours, 1, 0});
  of.wall = 4e5 * kHours;
  of.hazards = {{"part", 2 / (10 * kHours), 0, 0.3, 5 * kHours, 0, 0, false}};
  const JobMixRun run = run_job_mix(alike(2, 8, 1e12), of, 9);
  EXPECT_NEAR(run.classes[0].slow / run.classes[0].held() / (0.3 * (1 - std::exp(-0.5))), 1, 0.02);
  EXPECT_EQ(run.interruptions[0], 0);
}

// Where nothing fails jobs start as on a pool that knows no faults, beside spare nodes that nobody has.
TEST(JobMix, WithoutFaultsJobsStartAsInTheQueueAlone) {
  DrawnJobs drawn;
  drawn.count = 5000;
  drawn.per_second = 0.01;
  drawn.duration = "exponential:1485";
  const std::vector<Job> jobs = draw_jobs(drawn, 1).jobs;
  for (const Order order : {Order::fcfs, Order::any}) {
    JobMixCase of = pool({2, 16, 8, 1, false}, {1e9, 1, 0});
    of.order = order;
    of.spares = 4;
    of.wall = 1e9;
    const JobMixRun run = run_job_mix(jobs, of, 1);
    PoolShape shape = of.shape;
    shape.nodes = 12;
    const AllocationResult want = allocate(jobs, shape, {Fit::best, order});
    double queued = 0, wanted = 0, useful = 0, asked = 0;
    std::int64_t finished = 0;
    for (const MixClass& one : run.classes) {
      queued += one.queued;
      finished += one.finished;
      useful += one.useful;
    }
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      wanted += static_cast<double>(want.jobs[k].start_ms - jobs[k].submit_ms) * 1e-3;
      asked += static_cast<double>(jobs[k].duration_ms) * 1e-3 * jobs[k].block;
    }
    EXPECT_EQ(finished, 5000);
    EXPECT_GT(wanted / 5000, 100);  // they do wait
    EXPECT_NEAR(queued / wanted, 1, 1e-6);
    EXPECT_NEAR(useful / asked, 1, 1e-9);
    EXPECT_NEAR(total(run, of), 1, 1e-9);
  }
}

// Nodes that nobody has fail and are repaired by themselves: away with n r / (1 + n r).
TEST(JobMix, NodesAreAwayAsLongAsTheirRepairTakes) {
  JobMixCase of = pool({2, 3, 8, 1, false}, {kHours, 1, 0});
  of.wall = 1e6 * kHours;
  of.hazards = {{"node", 6 / (100 * kHours), 1, 0, 20 * kHours, 0, 0, false}};
  const JobMixRun run = run_job_mix({}, of, 5);
  EXPECT_NEAR(run.away / (0.2 / 1.2), 1, 0.02);
  EXPECT_NEAR(run.away + run.idle, 1, 1e-9);
}

// Worked by hand: an NPU of a shared node fails. Its job takes another node's, the other one stays to its
// end, and only then the repair begins.
TEST(JobMix, ANodeIsRepairedOnceItsOtherJobsHaveLeft) {
  // The first job is struck almost surely at once, as its parts fail every 10 s until nothing is left of the
  // node to fail; three nodes of two NPUs, jobs of one NPU.
  JobMixCase of = pool({1, 2, 2, 1, false}, {1e9, 1, 0});
  of.wall = 1000;
  of.hazards = {{"npu", 4e-4, 1, 0, 400, 0, 0, true}};
  std::int64_t struck = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const JobMixRun run = run_job_mix(alike(2, 1, 500), of, seed);
    EXPECT_NEAR(total(run, of), 1, 1e-9);
    if (run.failures[0] != 1 || run.interruptions[0] != 1) continue;
    ++struck;
    // Both lie on the first node: the one that is not struck ends at 500 s; the node is away from the fault
    // at x until 900 s with one of its NPUs, and from 500 s on with both. What is lost is x.
    const double x = run.classes[0].redo;
    if (x < 500) {
      EXPECT_NEAR(run.away * 4 * of.wall, (500 - x) + 2 * 400, 1e-6) << seed;
    }
    EXPECT_EQ(run.classes[0].finished, 2);
  }
  EXPECT_GT(struck, 20);
}

TEST(JobMix, KeepsSparesForThoseThatLoseNodes) {
  // Three nodes, one of them spare: two jobs of a node run, the third waits though a node is free.
  JobMixCase of = pool({1, 3, 8, 1, false}, {1e9, 1, 0});
  of.spares = 1;
  of.wall = 1000;
  const JobMixRun run = run_job_mix(alike(3, 8, 600), of, 1);
  EXPECT_EQ(run.classes[0].started, 3);
  EXPECT_EQ(run.classes[0].finished, 2);
  EXPECT_NEAR(run.classes[0].queued, 600, 1e-9);
  EXPECT_NEAR(run.classes[0].held(), 8 * (600 + 600 + 400), 1e-6);
  EXPECT_THROW(run_job_mix(alike(1, 17, 1), of, 1), InputError);
  EXPECT_FALSE(run_job_mix(alike(1, 8, 1), of, 1, [] { return false; }).complete);
}

// Who watches sees all NPU time that jobs hold, by what they do, and every repair.
TEST(JobMix, TellsWhoHasWhat) {
  JobMixCase of = pool({2, 6, 8, 1, true}, {2 * kHours, 60, 0});
  of.spares = 1;
  of.wall = 3000 * kHours;
  const double repair = 20 * kHours;
  of.hazards = {{"node", 1 / (30 * kHours), 1, 0, repair, 100, 500, false},
                {"npu", 1 / (20 * kHours), 1, 0, repair, 200, 300, true}};
  std::vector<Job> jobs;
  for (int k = 0; k < 400; ++k)
    jobs.push_back(
        {std::to_string(k), std::int64_t{k} * 6'000'000, (1 + k % 9) * 9'000'000, 1 << (k % 5), 1 + k % 2});
  std::map<std::string, double> by_doing;
  std::map<std::string, int> repairs;
  double waited = 0;
  PoolWatch watch;
  watch.held = [&](std::size_t, const Place& place, std::string_view doing, double from, double to) {
    for (const auto& [node, npus] : place.nodes) by_doing[std::string(doing)] += npus * (to - from);
  };
  watch.waited = [&](std::size_t job, double from, double to) {
    EXPECT_GE(from, static_cast<double>(jobs[job].submit_ms) * 1e-3);
    waited += to - from;
  };
  watch.away = [&](std::size_t node, const std::string& part, double from, double to) {
    EXPECT_LT(node, 12u);
    EXPECT_TRUE(to - from >= repair - 1e-6 || to == of.wall) << from << " " << to;
    ++repairs[part];
  };
  const JobMixRun run = run_job_mix(jobs, of, 4, {}, &watch);
  double held = 0, detection = 0, restart = 0, queued = 0;
  for (const MixClass& one : run.classes) {
    held += one.held();
    detection += one.detection;
    restart += one.restart;
    queued += one.queued;
  }
  EXPECT_NEAR(by_doing["has failed"] / detection, 1, 1e-9);
  EXPECT_NEAR(by_doing["restarts"] / restart, 1, 1e-9);
  EXPECT_NEAR(by_doing["runs"] / (held - detection - restart), 1, 1e-9);
  EXPECT_EQ(by_doing.size(), 3u);
  EXPECT_GE(waited, queued - 1e-6);
  EXPECT_GT(repairs["node"], 50);
  EXPECT_LE(repairs["node"], run.failures[0]);
  EXPECT_GT(repairs["npu"], 50);
  EXPECT_LE(repairs["npu"], run.failures[1]);
}

}  // namespace
}  // namespace cm384::cluster::job_mix_test
