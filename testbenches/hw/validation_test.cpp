#include "workloads/frame/validation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "testbenches/hw/refusal.h"

namespace cm384::studies::validation_test {
namespace {

using ::testing::HasSubstr;

class Silent final : public Progress {
  void update(double, Time, std::uint64_t) override {}
};

std::vector<Comparison> compare(std::span<const Predictor> predictors, std::string_view only = "") {
  static const hw::Machine machine = hw::load_machine("cloudmatrix384");
  static Silent progress;
  static const volatile std::sig_atomic_t interrupted = 0;
  return compare_with_published({machine, 1, progress, interrupted}, predictors, only);
}

const Comparison& of(const std::vector<Comparison>& all, std::string_view id) {
  return *std::ranges::find_if(all, [&](const Comparison& c) { return c.figure.id == id; });
}

TEST(Validation, AllPublishedFiguresAreThere) {
  const auto figures = published_figures();
  EXPECT_EQ(figures.size(), 239u);
  EXPECT_EQ(std::ranges::count_if(figures, [](const Figure& f) { return f.id.starts_with("t1-"); }), 16);
  for (const Figure& figure : figures) {
    EXPECT_TRUE(figure.value > 0 || !figure.conditions) << figure.id << ": errors are relative";
    EXPECT_NE(figure.conditions.has_value(), !figure.missing.empty()) << figure.id;
    EXPECT_TRUE(figure.role == Role::bound || (figure.tolerance >= 0.01 && figure.tolerance <= 0.35))
        << figure.id;
  }
}

TEST(Validation, NothingModelledNeverPasses) {
  const auto all = compare({});
  for (const Comparison& c : all) EXPECT_FALSE(c.within());
  for (const Row& row : to_rows(all)) {
    check_row(row, kValidationFields);
    EXPECT_TRUE(*row["status"].text() == "not modelled" || *row["status"].text() == "left out");
    EXPECT_TRUE(row["predicted"].empty());
    EXPECT_TRUE(row["error"].empty());
  }
  EXPECT_TRUE(holds(all));
}

// A row has a cell for each word of its table's header, and the command that gives the figure in the last
// one.
TEST(Validation, RowsOfThePageAreWhole) {
  std::istringstream page(to_markdown(compare({}), hw::load_machine("cloudmatrix384")));
  std::string line;
  std::ptrdiff_t header = 0, rows = 0;
  while (std::getline(page, line)) {
    const std::ptrdiff_t cells = std::ranges::count(line, '|');
    if (cells > 0 && header > 0) {
      EXPECT_EQ(cells, header) << line;
    }
    header = cells;
    if (!line.starts_with("| `hx-roce-2m`")) continue;
    ++rows;
    EXPECT_THAT(line, HasSubstr("| `run p2p "));
  }
  EXPECT_EQ(rows, 1);
}

TEST(Validation, ToleranceIsTightOnBothSides) {
  static double predicted = 0;
  static const Predictor table[] = {{{"s-moe"}, [](const ValidationContext&, const Wanted&) {
                                       return Predictions{{"s-moe-basic", predicted}};
                                     }}};
  for (const auto& [value, within] : {std::pair{800 * 1.149, true}, std::pair{800 * 1.151, false},
                                      std::pair{800 * 0.851, true}, std::pair{800 * 0.849, false}}) {
    predicted = value;
    const auto all = compare(table);
    EXPECT_EQ(of(all, "s-moe-basic").within(), within) << value;
    EXPECT_EQ(holds(all), within) << value;
    EXPECT_NEAR(of(all, "s-moe-basic").error(), value / 800 - 1, 1e-12);
  }
}

TEST(Validation, ACalibrationFigureThatIsOffDoesNotFail) {
  static const Predictor table[] = {{{"t1-"}, [](const ValidationContext&, const Wanted&) {
                                       return Predictions{{"t1-nn-read-bw-inter", 1.0}};
                                     }}};
  const auto all = compare(table);
  EXPECT_FALSE(of(all, "t1-nn-read-bw-inter").within());
  EXPECT_TRUE(holds(all));
}

TEST(Validation, AnUpperBoundHoldsFromBelow) {
  static double predicted = 0;
  static const Predictor table[] = {{{"s-aiv"}, [](const ValidationContext&, const Wanted&) {
                                       return Predictions{{"s-aiv-startup", predicted}};
                                     }}};
  predicted = 0.2;
  EXPECT_TRUE(holds(compare(table)));
  predicted = 1.01;
  EXPECT_FALSE(holds(compare(table)));
}

TEST(Validation, OnlyWhatIsAskedForIsRun) {
  static int runs = 0;
  static const Predictor table[] = {{{"t7-"}, [](const ValidationContext&, const Wanted&) {
                                       ++runs;
                                       return Predictions{};
                                     }}};
  EXPECT_EQ(compare(table, "t1-").size(), 16u);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(compare(table, "t7-").size(), 4u);
  EXPECT_EQ(runs, 1);
}

TEST(Validation, APredictorLearnsWhichFiguresAreWanted) {
  static std::vector<bool> wanted;
  static const Predictor table[] = {{{"t7-"}, [](const ValidationContext&, const Wanted& asked) {
                                       wanted = {asked("t7-dispatch-8"), asked("t7-dispatch-256")};
                                       return Predictions{};
                                     }}};
  compare(table, "t7-dispatch-8");
  EXPECT_EQ(wanted, (std::vector<bool>{true, false}));
  compare(table);
  EXPECT_EQ(wanted, (std::vector<bool>{true, true}));
}

TEST(Validation, APrefixThatNoFigureHasIsRefused) {
  EXPECT_THAT(refusal([] { compare({}, "zzz"); }), HasSubstr("--only: no figure's id begins with 'zzz'"));
  EXPECT_THAT(refusal([] { compare({}, "t7-dispach-8"); }), HasSubstr("did you mean t7-dispatch-8?"));
}

TEST(Validation, FiguresBehindAnInterruptionWereNotRun) {
  static volatile std::sig_atomic_t interrupted = 0;
  static const Predictor table[] = {
      {{"t1-"},
       [](const ValidationContext&, const Wanted&) {
         interrupted = 1;
         return Predictions{{"t1-nn-read-bw-inter", 164.0}};
       }},
      {{"t7-"}, [](const ValidationContext&, const Wanted&) { return Predictions{}; }}};
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  Silent progress;
  const auto all = compare_with_published({machine, 1, progress, interrupted}, table);
  const auto status = [&](std::string_view id) {
    for (const Row& row : to_rows(all)) {
      if (*row["id"].text() == id) return *row["status"].text();
    }
    return std::string();
  };
  EXPECT_EQ(status("t1-nn-read-bw-inter"), "within");
  EXPECT_EQ(status("t1-nn-read-bw-intra"), "not run");
  EXPECT_EQ(status("t7-combine-8"), "not run");
  EXPECT_EQ(status("t9-mla-bw"), "not modelled");
  EXPECT_EQ(status("t4-tpot-96"), "left out");
  EXPECT_EQ(status("cr-v4f-7168"), "not modelled");
}

// One that could give any figure has no chance to give those that nothing predicts.
TEST(Validation, AFigureWithoutAModelIsNoVictimOfAnInterruption) {
  static volatile std::sig_atomic_t interrupted = 0;
  static const Predictor table[] = {{{""}, [](const ValidationContext&, const Wanted&) {
                                       interrupted = 1;
                                       return Predictions{};
                                     }}};
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  Silent progress;
  for (const Row& row : to_rows(compare_with_published({machine, 1, progress, interrupted}, table)))
    EXPECT_EQ(*row["status"].text() == "not run",
              is_run(*std::ranges::find(published_figures(), *row["id"].text(), &Figure::id), "", false));
}

TEST(Validation, WhatTakesLongIsRunOnlyWhereItIsAskedFor) {
  static std::set<std::string> wanted;
  static const Predictor table[] = {{{""}, [](const ValidationContext&, const Wanted& asked) {
                                       wanted.clear();
                                       for (const Figure& figure : published_figures()) {
                                         if (asked(figure.id)) wanted.insert(figure.id);
                                       }
                                       return Predictions{};
                                     }}};
  compare(table);
  EXPECT_FALSE(wanted.contains("t4-tpot-96"));
  EXPECT_TRUE(wanted.contains("t7-dispatch-8"));
  const auto named = compare(table, "t4-tpot-96");
  EXPECT_EQ(wanted, std::set<std::string>{"t4-tpot-96"});
  EXPECT_FALSE(of(named, "t4-tpot-96").left_out);
  EXPECT_TRUE(of(compare(table, "t4-"), "t4-tpot-96").left_out);
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  Silent progress;
  static volatile std::sig_atomic_t interrupted = 0;
  compare_with_published({machine, 1, progress, interrupted}, table, "t4-", true);
  EXPECT_TRUE(wanted.contains("t4-tpot-96"));
}

TEST(Validation, PageNamesTheWorstErrorOfEachRole) {
  static const Predictor table[] = {
      {{"t1-nn-read-bw", "t7-", "s-moe"}, [](const ValidationContext&, const Wanted&) {
         return Predictions{{"s-moe-basic", 760.0},         {"t7-combine-8", 119.0},
                            {"t7-combine-256", 141.55},     {"s-moe-fused", 500.0},
                            {"t1-nn-read-bw-inter", 150.0}, {"t1-nn-read-bw-intra", 167.0}};
       }}};
  const std::string page = to_markdown(compare(table), hw::load_machine("cloudmatrix384"));
  EXPECT_THAT(page, HasSubstr("The worst validation error is -5.0 % (s-moe-basic)."));
  EXPECT_THAT(page, HasSubstr("The worst selected error is -5.0 % (t7-combine-256)."));
  EXPECT_THAT(page, HasSubstr("The worst calibration error is -8.5 % (t1-nn-read-bw-inter)."));
  EXPECT_THAT(page, HasSubstr("Within tolerance: calibration 1 of 2, selected 2 of 2, validation 1 of 1."));
  // By role and family: the median of two is their middle, and calibration stands last.
  EXPECT_THAT(page, HasSubstr(" | 1 | 1 | 5.0 % | -5.0 % `s-moe-basic` |"));
  EXPECT_THAT(page, HasSubstr(" | 2 | 2 | 2.9 % | -5.0 % `t7-combine-256` |"));
  const std::size_t calibration = page.find("| calibration | ub | 16 | 2 | 1 | 4.3 % | -8.5 % `t1-nn-read");
  ASSERT_NE(calibration, std::string::npos);
  EXPECT_LT(page.rfind("\n| validation | "), calibration);
  // Families without any prediction stand in one line, by role.
  EXPECT_EQ(page.find("| validation | decode | "), std::string::npos);
  EXPECT_THAT(page, HasSubstr("\nWithout a prediction: validation aic 4, collective 1, decode 20, "));
  EXPECT_THAT(page, HasSubstr("; selected hbm 1, "));
}

// Rows of their own, or a row for each reason why no study gives them.
TEST(Validation, PageNamesEveryFigureOnce) {
  static const Predictor table[] = {{{"t7-"}, [](const ValidationContext&, const Wanted&) {
                                       return Predictions{{"t7-combine-8", 119.0}};
                                     }}};
  const auto all = compare(table);
  const std::string page = to_markdown(all, hw::load_machine("cloudmatrix384"));
  const std::size_t reasons = page.find("| why | figures |");
  ASSERT_NE(reasons, std::string::npos);
  for (const Comparison& c : all) {
    const bool grouped = !c.reading && !c.figure.conditions;
    const std::string name = grouped ? fmt::format("`{}` ({} {})", c.figure.id, c.figure.value, c.figure.unit)
                                     : fmt::format("\n| `{}` | ", c.figure.id);
    const std::size_t at = page.find(name);
    ASSERT_NE(at, std::string::npos) << c.figure.id;
    EXPECT_EQ(at > reasons, grouped) << c.figure.id;
    EXPECT_EQ(page.find(name, at + 1), std::string::npos) << c.figure.id;
    if (!grouped) continue;
    const std::string why = "\n| " + c.figure.missing + " | ";
    EXPECT_EQ(page.find(why), page.rfind(why)) << c.figure.missing;
  }
}

// Neither what was chosen by the figure nor what other figures add up to decides the exit code.
TEST(Validation, OnlyValidationAndBoundsFail) {
  static std::string id;
  static const Predictor table[] = {{{""}, [](const ValidationContext&, const Wanted&) {
                                       return Predictions{{id, 10'000.0}};
                                     }}};
  for (const auto& [figure, fails] : {std::pair{"t7-combine-8", false}, std::pair{"s-moe-fused", false},
                                      std::pair{"s-aiv-startup", true}, std::pair{"s-sdma-startup", true}}) {
    id = figure;
    const auto all = compare(table);
    EXPECT_FALSE(of(all, id).within()) << id;
    EXPECT_EQ(holds(all), !fails) << id;
  }
}

// What follows from others says from which, and is their sum; a rate is its batch over a time per token.
TEST(Validation, WhatFollowsIsMadeOfOthers) {
  for (const Figure& figure : published_figures()) {
    EXPECT_EQ(figure.because.empty(), figure.role == Role::calibration || figure.role == Role::validation)
        << figure.id;
    if (figure.role != Role::follows) continue;
    double sum = 0;
    for (const Figure& part : published_figures()) {
      if (figure.because.find(part.id) == std::string::npos) continue;
      EXPECT_NE(part.role, Role::follows) << part.id;
      sum += part.value;
    }
    if (figure.id.starts_with("t4-")) sum = figure.conditions->row["batch"].number() * 1000 / sum;
    if (figure.id == "t4-eff-96") sum /= 1504;
    EXPECT_NEAR(sum / figure.value, 1, 0.01) << figure.id;
  }
}

TEST(Validation, TaskAndKernelStandSideBySide) {
  static const Predictor table[] = {{{"t7-"}, [](const ValidationContext&, const Wanted&) {
                                       Reading reading = 119;
                                       reading.task = 119;
                                       reading.kernel = 107.5;
                                       return Predictions{{"t7-combine-8", reading}};
                                     }}};
  const auto all = compare(table, "t7-combine-8");
  const Row row = to_rows(all).front();
  EXPECT_EQ(row["task"].number(), 119);
  EXPECT_EQ(row["kernel"].number(), 107.5);
  EXPECT_THAT(to_markdown(all, hw::load_machine("cloudmatrix384")), HasSubstr("| 119 us | 107.5 us |"));
}

}  // namespace
}  // namespace cm384::studies::validation_test
