// What nights give: moves, drifts, and since when a run is not good.
#include "lab/sweeps/history.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text/error.h"

namespace cm384::sweeps::history_test {
namespace {

namespace fs = std::filesystem;
using report::RunVerdict;
using report::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Series series_of(std::vector<double> values) {
  Series series{"a", "", "kernel_us", {}};
  for (const double value : values)
    series.points.push_back({static_cast<std::int64_t>(series.points.size()) + 1, value});
  return series;
}

TEST(Moves, AreTheStepsOfASeries) {
  const auto moves = moves_of(series_of({5, 5, 6, 6, 5}));
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].night, 3);
  EXPECT_EQ(moves[0].before_night, 2);
  EXPECT_EQ(moves[1].after, 5);
}

TEST(Drift, IsSoFarInSoManyNightsInSmallSteps) {
  const report::DriftRule rule;  // 2 % in five nights
  const auto drift = drift_of(series_of({100, 100, 100.4, 100.8, 101.2, 101.6, 102}), rule);
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->night, 3);
  EXPECT_EQ(drift->before, 100);
  EXPECT_EQ(drift->after, 102);
  // A night earlier it was not so far, and a night later it is no longer.
  EXPECT_FALSE(drift_of(series_of({100, 100, 100.4, 100.8, 101.2, 101.6}), rule));
  EXPECT_TRUE(drift_of(series_of({100, 100.4, 100.8, 101.2, 101.6, 102, 102.5}), rule));
  EXPECT_FALSE(drift_of(series_of({100, 100.4, 100.8, 101.2, 101.6, 102, 102, 102}), rule));
  // Nights without a step belong to it, but not before the first step.
  EXPECT_EQ(drift_of(series_of({100, 100, 100.5, 101, 101.5, 102}), rule).value().night, 3);
  // A step as large as the rule is what a tolerance is for; back and forth is no drift.
  EXPECT_FALSE(drift_of(series_of({100, 100, 100, 102, 102, 102}), rule));
  EXPECT_FALSE(drift_of(series_of({100, 101.5, 101, 101.5, 102, 103}), rule));
  // Downwards as well, and from what it began with.
  const auto down = drift_of(series_of({100, 99.5, 99, 98.5, 98, 97.5, 97}), rule);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->before, 100);
  EXPECT_EQ(down->night, 2);
  EXPECT_FALSE(drift_of(series_of({100, 101, 102}), rule)) << "too few nights";
  EXPECT_FALSE(drift_of(series_of({0, 0, 0, 0, 0, 1}), rule)) << "no share of nothing";
  EXPECT_FALSE(drift_of(series_of({100, 101, 102, 103, 104, 105}), {.share = 0}));
}

class Nights : public ::testing::Test {
 protected:
  Nights() { fs::create_directories(folder_); }
  ~Nights() override { fs::remove_all(folder_); }
  std::string path() const { return (folder_ / "history.sqlite").string(); }

  // One night of one run; `time` < 0: it hung.
  RunVerdict night(double time, const std::string& commit, std::vector<std::string> between = {}) {
    History history(path());
    report::Night tonight;
    tonight.commit = commit;
    tonight.subject = "subject of " + commit;
    tonight.date = "2026-05-0" + std::to_string(++nights_);
    std::vector<RunVerdict> verdicts(1);
    verdicts[0].name = "a";
    verdicts[0].command = "cm384 run kernel a.elf";
    const auto result = [](double value) {
      return Json{{"schema", 1},
                  {"study", "kernel"},
                  {"conditions", {"kernel"}},
                  {"rows", {{{"kernel", "a.elf"}, {"kernel_us", value}}}}};
    };
    report::RunEnd end;
    if (time < 0) end = {139, "signal"};
    report::judge(verdicts[0], baseline_.runs[0], end, time < 0 ? Json() : result(time), result(golden_));
    find_onsets(history, tonight, between, baseline_, verdicts);
    history.add(tonight, between, verdicts, baseline_);
    return verdicts[0];
  }

  report::Baseline baseline_ =
      report::parse_baseline("relative = 0.05\n[[run]]\nname = 'a'\ncommand = 'kernel a.elf'", "b.toml");
  double golden_ = 100;

 private:
  fs::path folder_ = fs::path(::testing::TempDir()) / ("cm384_history_" + std::to_string(getpid()));
  int nights_ = 0;
};

TEST_F(Nights, TheFirstBadCommitOfAFieldIsNamed) {
  EXPECT_TRUE(night(100, "c1").onsets.empty());
  night(104, "c2");  // within
  const RunVerdict first = night(106, "c3", {"c3 slower", "c2b other"});
  ASSERT_EQ(first.onsets.size(), 1u);
  EXPECT_EQ(first.onsets[0].commit, "c3");
  EXPECT_EQ(first.onsets[0].good_commit, "c2");
  EXPECT_EQ(first.onsets[0].nights, 1);
  EXPECT_THAT(first.onsets[0].between, ElementsAre("c3 slower", "c2b other"));
  const RunVerdict later = night(107, "c4", {"c4 x"});
  ASSERT_EQ(later.onsets.size(), 1u);
  EXPECT_EQ(later.onsets[0].commit, "c3");
  EXPECT_EQ(later.onsets[0].subject, "subject of c3");
  EXPECT_EQ(later.onsets[0].nights, 2);
  EXPECT_THAT(later.onsets[0].between, ElementsAre("c3 slower", "c2b other"));
  // Good again, then bad again: since then.
  night(100, "c5");
  EXPECT_EQ(night(106, "c6").onsets.at(0).commit, "c6");
}

TEST_F(Nights, ARunThatDoesNotEndIsSoSinceTheFirstNightInARow) {
  night(100, "c1");
  night(-1, "c2");
  const RunVerdict second = night(-1, "c3");
  EXPECT_EQ(second.verdict, Verdict::crashed);
  ASSERT_EQ(second.onsets.size(), 1u);
  EXPECT_EQ(second.onsets[0].commit, "c2");
  EXPECT_EQ(second.onsets[0].good_commit, "c1");
  EXPECT_EQ(second.onsets[0].nights, 2);
  // What was worse when it ran again may have come with any commit of the nights without a number.
  const RunVerdict back = night(110, "c4", {"c4"});
  EXPECT_EQ(back.onsets.at(0).commit, "c4");
  EXPECT_EQ(back.onsets.at(0).good_commit, "c1");
  // A night in which it ended, if worse, is one in which it ended.
  const RunVerdict again = night(-1, "c5");
  EXPECT_EQ(again.onsets.at(0).commit, "c5");
  EXPECT_EQ(again.onsets.at(0).good_commit, "c4");
}

TEST_F(Nights, ADriftIsSeenThoughEachStepIsWithinTolerance) {
  night(100, "c1");
  for (int n = 2; n <= 5; ++n)
    EXPECT_EQ(night(100 + 0.4 * (n - 1), "c" + std::to_string(n)).verdict, Verdict::passed);
  const RunVerdict made = night(102, "c6");
  EXPECT_EQ(made.verdict, Verdict::drifted);
  EXPECT_FALSE(made.passes(baseline_));
  EXPECT_EQ(made.onsets.at(0).commit, "c2");
  EXPECT_NEAR(made.onsets.at(0).drift.value(), 0.02, 1e-9);
  EXPECT_THAT(made.reason, HasSubstr("kernel_us +2 % in 5 nights"));
  // It stays one until it is gone back on, or taken over into the golden result.
  const RunVerdict later = night(102, "c7");
  EXPECT_EQ(later.verdict, Verdict::drifted);
  EXPECT_EQ(later.onsets.at(0).commit, "c2");
  EXPECT_EQ(night(100.5, "c8").verdict, Verdict::passed);
  EXPECT_EQ(night(102, "c9").verdict, Verdict::drifted);
  golden_ = 102;
  EXPECT_EQ(night(102, "c10").verdict, Verdict::passed);
}

TEST_F(Nights, WhatGetsBetterSlowlyIsNoDrift) {
  for (int n = 0; n < 5; ++n) night(100 - 0.5 * n, "c");
  EXPECT_EQ(night(97.5, "c").verdict, Verdict::passed);
}

TEST_F(Nights, NightsAreKept) {
  night(100, "c1");
  night(-1, "c2", {"c2 x", "c1b y"});
  History history(path());
  const auto nights = history.nights();
  ASSERT_EQ(nights.size(), 2u);
  EXPECT_EQ(nights[1].commit, "c2");
  EXPECT_THAT(nights[1].between, ElementsAre("c2 x", "c1b y"));
  EXPECT_EQ(history.nights(1).at(0).number, 2);
  const auto verdicts = history.verdicts();
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_TRUE(verdicts[0].passes);
  EXPECT_EQ(verdicts[1].verdict, Verdict::crashed);
  EXPECT_EQ(verdicts[1].reason, "signal");
  const auto series = history.series("a");
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].row, "kernel=a.elf");
  EXPECT_EQ(series[0].points.size(), 1u);
  EXPECT_TRUE(history.series("a", "another command").empty());
}

TEST_F(Nights, AnotherFileIsRefused) {
  std::ofstream(path()) << "no database at all, but a text that is long enough for a header";
  EXPECT_THROW(History{path()}, InputError);
  EXPECT_THROW(History(path() + ".none", false), InputError);
}

}  // namespace
}  // namespace cm384::sweeps::history_test
