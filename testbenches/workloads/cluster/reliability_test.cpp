// A run under failures against closed forms.
#include "workloads/cluster/reliability.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <string>

#include "base/text/error.h"

namespace cm384::cluster::reliability_test {
namespace {

using ::testing::HasSubstr;

constexpr double kHours = 3600;

double total(const ReliabilityShares& s) {
  return s.useful + s.redo + s.checkpoint + s.detection + s.restart + s.waiting + s.slow;
}

ReliabilityCase quiet() {
  ReliabilityCase of;
  of.wall = 1000 * kHours;
  of.interval = kHours;
  of.write = 60;
  return of;
}

TEST(Reliability, WithoutFailuresOnlyCheckpointsCost) {
  const ReliabilityRun run = run_reliability(quiet(), 1);
  EXPECT_NEAR(run.shares.useful, 60.0 / 61, 1e-4);
  EXPECT_NEAR(run.shares.checkpoint, 1.0 / 61, 1e-4);
  EXPECT_NEAR(total(run.shares), 1, 1e-12);
}

// Daly's form holds for failures in work, checkpoints and restarts alike: also where they come as often as
// checkpoints.
TEST(Reliability, GoodputIsDalys) {
  for (const double mtbf : {2.0, 8.0, 40.0}) {
    for (const double interval : {0.25, 1.0, 3.0}) {
      ReliabilityCase of = quiet();
      of.wall = 20'000 * mtbf * kHours;
      of.interval = interval * kHours;
      of.write = 300;
      of.hazards = {{"one", 0.75 / (mtbf * kHours), 1, 0, 0, 400, 500},
                    {"other", 0.25 / (mtbf * kHours), 1, 0, 0, 0, 900}};
      const ReliabilityRun run = run_reliability(of, 3);
      const double m = mtbf * kHours,
                   wanted = of.interval / (m * std::exp(900 / m) * std::expm1((of.interval + 300) / m));
      EXPECT_NEAR(run.shares.useful / wanted, 1, 0.02) << mtbf << " " << interval;
      EXPECT_NEAR(daly_goodput(m, of.interval, 300, 900) / wanted, 1, 1e-12);
      EXPECT_EQ(daly_goodput(1, 1000, 300, 900), 0);
      EXPECT_NEAR(total(run.shares), 1, 1e-9);
      EXPECT_NEAR(static_cast<double>(run.interruptions[0]) / 15'000, 1, 0.03);
      EXPECT_NEAR(static_cast<double>(run.interruptions[1]) / 5'000, 1, 0.06);
      EXPECT_EQ(run.failures, run.interruptions);
      EXPECT_NEAR(run.lost[0] + run.lost[1],
                  (run.shares.redo + run.shares.detection + run.shares.restart) * of.wall, 1e-3);
    }
  }
}

// With checkpoints that are written beside work: the k-th of a run counts where no fault comes before k
// intervals and stops and the time beside.
TEST(Reliability, CheckpointsBesideWorkCountWhenTheyAreWritten) {
  for (const double mtbf : {2.0, 10.0}) {
    for (const double beside : {0.1, 0.75, 1.0}) {
      ReliabilityCase of = quiet();
      of.wall = 20'000 * mtbf * kHours;
      of.write = 120;
      of.beside = beside * kHours;
      of.hazards = {{"one", 1 / (mtbf * kHours), 1, 0, 0, 100, 500}};
      const ReliabilityRun run = run_reliability(of, 4);
      const double m = mtbf * kHours, period = (kHours + 120) / m;
      double wanted = 0;
      for (int k = 1; k < 400; ++k) wanted += kHours * std::exp(-k * period - of.beside / m);
      wanted /= m * std::exp(600 / m);
      EXPECT_NEAR(run.shares.useful / wanted, 1, 0.02) << mtbf << " " << beside;
      EXPECT_NEAR(daly_goodput(m, kHours, 120, 600, of.beside) / wanted, 1, 1e-9);
      EXPECT_NEAR(total(run.shares), 1, 1e-9);
    }
  }
}

// Of all intervals that are not shorter than the time beside.
TEST(Reliability, BestIntervalOfCheckpointsBesideWork) {
  const double m = 24 * kHours;
  for (const double beside : {0.0, 600.0, 1.5 * kHours}) {
    const double best = best_interval(m, 60, beside);
    EXPECT_EQ(best, std::max(young_interval(m, 60), beside));
    for (double interval = std::max(beside, 60.0); interval < 6 * kHours; interval += 60)
      EXPECT_LT(daly_goodput(m, interval, 60, 600, beside),
                daly_goodput(m, best, 60, 600, beside) * (1 + 1e-5))
          << beside << " " << interval;
  }
}

TEST(Reliability, YoungsIntervalIsTheBest) {
  const double m = 24 * kHours, best = young_interval(m, 60);
  EXPECT_NEAR(best / 60, 53.67, 0.01);  // minutes: sqrt(2 x 24 h x 60 s)
  for (const double factor : {0.8, 1.25})
    EXPECT_LT(daly_goodput(m, best * factor, 60, 600), daly_goodput(m, best, 60, 600)) << factor;
  // 3.1 h and 20 s, the figures of 16,384 H100: 6.0 % without restarts.
  EXPECT_NEAR(1 - daly_goodput(3.1 * kHours, young_interval(3.1 * kHours, 20), 20, 0), 0.060, 0.002);
}

// A node is up for exponential times and away for fixed ones: each is away with p = n r / (1 + n r), whatever
// others do.
TEST(Reliability, NodesAwayAreBinomial) {
  ReliabilityCase of = quiet();
  of.supernodes = 1;
  of.nodes = 6;
  of.wall = 4e6 * kHours;
  of.write = 1e-3;
  const double each = 1 / (100 * kHours), repair = 20 * kHours, p = each * repair / (1 + each * repair);
  of.hazards = {{"node", 6 * each, 1, 0, repair, 0, 0}};
  for (of.spares = 0; of.spares < 3; ++of.spares) {
    double more = 0, ways = 1;
    for (int k = 0; k <= 6; ways = ways * (6 - k) / (k + 1), ++k)
      if (k > of.spares) more += ways * std::pow(p, k) * std::pow(1 - p, 6 - k);
    const ReliabilityRun run = run_reliability(of, 5);
    EXPECT_NEAR(run.short_of_spares / more, 1, 0.03) << of.spares;
    // Nothing is detected or restarted: it waits when it is short of nodes.
    EXPECT_NEAR(run.shares.waiting, run.short_of_spares, 1e-9);
    EXPECT_NEAR(interruptions_per_second(of), (6 - of.spares) * each, 1e-15);
    EXPECT_GE(run.failures[0], run.interruptions[0]);
    EXPECT_NEAR(static_cast<double>(run.failures[0]) / (6 * (1 - p) * each * of.wall), 1, 0.02);
  }
}

// Slow parts come and stay as in M/G/inf: none is there with exp(-n r).
TEST(Reliability, SlowPartsTakeTheirShare) {
  ReliabilityCase of = quiet();
  of.wall = 1e6 * kHours;
  of.write = 1e-6;
  of.hazards = {{"part", 1 / (10 * kHours), 0, 0.3, 5 * kHours, 0, 0}};
  const ReliabilityRun run = run_reliability(of, 9);
  EXPECT_NEAR(run.shares.slow / (0.3 * (1 - std::exp(-0.5))), 1, 0.02);
  EXPECT_EQ(run.interruptions[0], 0);
  EXPECT_NEAR(total(run.shares), 1, 1e-9);
  // A spare node's are nobody's.
  of.nodes = 2;
  of.spares = 1;
  EXPECT_NEAR(run_reliability(of, 9).shares.slow / (0.3 * (1 - std::exp(-0.25))), 1, 0.02);
}

TEST(Reliability, ASeedIsACourse) {
  ReliabilityCase of = quiet();
  of.hazards = {{"one", 1e-4, 0.5, 0.1, 3600, 10, 30}};
  EXPECT_EQ(run_reliability(of, 1).shares.useful, run_reliability(of, 1).shares.useful);
  EXPECT_NE(run_reliability(of, 1).shares.useful, run_reliability(of, 2).shares.useful);
  EXPECT_FALSE(run_reliability(of, 1, [] { return false; }).complete);
}

TEST(Reliability, TablesAreChecked) {
  const ReliabilityTable table = ReliabilityTable::load("default");
  for (const FailingPart& part : table.parts) {
    EXPECT_FALSE(part.source.empty()) << part.name;
    EXPECT_LE(part.least, part.fit) << part.name;
    EXPECT_GE(part.most, part.fit) << part.name;
  }
  const std::string level = "name = 'x'\n[[level]]\nname = 'job'\ndetection = 1\nrestart = 2\n";
  const auto refused = [&](const std::string& part) -> std::string {
    try {
      ReliabilityTable::parse(level + part, "t.toml");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refused(""), HasSubstr("t.toml: has no [[part]]"));
  EXPECT_THAT(refused("[[part]]\nname = 'a'\neach = 'nodes'\nfit = 10\nlevel = 'jbo'\n"),
              HasSubstr("t.toml:10: level: 'jbo'"));
  EXPECT_THAT(refused("[[part]]\nname = 'a'\neach = 'nodes'\nfit = 10\nleast = 20\nlevel = 'job'\n"),
              HasSubstr("t.toml:9: fit"));
  EXPECT_THAT(refused("[[part]]\nname = 'a'\neach = 'nodes'\nfit = -1\nlevel = 'job'\n"),
              HasSubstr("t.toml:9: fit"));
}

// Who watches sees the run without a gap, and every failure.
TEST(Reliability, TellsWhatTheRunDoes) {
  ReliabilityCase of = quiet();
  of.supernodes = 2;
  of.nodes = 6;
  of.spares = 1;
  of.hazards = {{"one", 1 / (20 * kHours), 1, 0, 40 * kHours, 400, 500},
                {"slow", 1 / (50 * kHours), 0, 0.3, 10 * kHours, 0, 0}};
  std::map<std::string, double> by_doing;
  std::vector<std::int64_t> failures(2), stopped(2);
  double now = 0;
  CourseWatch watch;
  watch.did = [&](std::string_view doing, double from, double to) {
    EXPECT_EQ(from, now);
    EXPECT_LT(from, to);
    now = to;
    by_doing[std::string(doing)] += (to - from) / of.wall;
  };
  watch.failed = [&](std::size_t hazard, int supernode, bool stops, double from, double to) {
    EXPECT_TRUE(supernode == 0 || supernode == 1);
    EXPECT_NEAR(to - from, of.hazards[hazard].repair, 1e-6);
    ++failures[hazard];
    if (stops) ++stopped[hazard];
  };
  const ReliabilityRun run = run_reliability(of, 2, {}, &watch);
  EXPECT_EQ(now, of.wall);
  EXPECT_EQ(failures, run.failures);
  EXPECT_EQ(stopped, run.interruptions);
  EXPECT_GT(stopped[0], 20);
  EXPECT_NEAR(by_doing["has failed"], run.shares.detection, 1e-9);
  EXPECT_NEAR(by_doing["restarts"], run.shares.restart, 1e-9);
  EXPECT_NEAR(by_doing["waits for a node"], run.shares.waiting, 1e-9);
  EXPECT_GT(run.shares.waiting, 0.01);
}

}  // namespace
}  // namespace cm384::cluster::reliability_test
