#include "lab/uncertainty/ensemble.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text/error.h"
#include "lab/uncertainty/coverage.h"
#include "testbenches/hw/refusal.h"
#include "workloads/frame/build_info.h"

namespace cm384::uncertainty::ensemble_test {
namespace {

using ::testing::HasSubstr;

class EnsembleFile : public ::testing::Test {
 protected:
  EnsembleFile() { std::filesystem::create_directories(folder_); }
  ~EnsembleFile() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text) {
    const std::string path = (folder_ / "ensemble.json").string();
    std::ofstream(path) << text;
    return path;
  }
  static Ensemble two() {
    Ensemble ensemble{.machine = "node8",
                      .command = "cm384 ensemble build",
                      .build = "0.1.0 abc",
                      .model = std::string(studies::build_info().model),
                      .ranges = ranges_fingerprint(hw::load_machine("node8")),
                      .discrepancy = 0.03,
                      .families = {{"", 3, 2, 0.5}, {"rows", 3, 3, 0.25}},
                      .members = {}};
    ensemble.members.push_back({"node8", {}, {{"t1-nn-read-lat-intra", 1.195}}});
    ensemble.members.push_back(
        {"m001", {{"l2.hit_latency", "50ns"}, {"hbm.write_queue", "17"}}, {{"t1-nn-read-lat-intra", 1.2}}});
    return ensemble;
  }
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("ensemble_" + std::to_string(::getpid()));
};

TEST_F(EnsembleFile, ReadsBackWhatWasWritten) {
  const Ensemble read = read_ensemble(write(to_text(two())));
  EXPECT_EQ(to_text(read), to_text(two()));
  EXPECT_EQ(read.members[1].overrides, two().members[1].overrides);
  EXPECT_EQ(read.discrepancy, 0.03);
  ASSERT_EQ(read.families.size(), 2u);
  EXPECT_EQ(read.families[1].family, "rows");
  EXPECT_EQ(read.families[1].share, 0.25);
}

TEST_F(EnsembleFile, MembersThatNoLongerFitAreNamed) {
  Ensemble ensemble = two();
  ensemble.members[1].overrides[0] = {"l2.hit_latncy", "50ns"};
  EXPECT_THAT(refusal([&] { read_ensemble(write(to_text(ensemble))); }),
              AllOf(HasSubstr("m001: no longer fits the machine"), HasSubstr("no such parameter")));
  ensemble.members[1].overrides[0] = {"l2.hit_latency", "50s"};
  EXPECT_THAT(refusal([&] { read_ensemble(write(to_text(ensemble))); }), HasSubstr("out of range"));
  ensemble = two();
  ensemble.machine = "node9";
  EXPECT_THAT(refusal([&] { read_ensemble(write(to_text(ensemble))); }),
              HasSubstr("'node9' is not a preset"));
}

TEST_F(EnsembleFile, SaysWhatHasChanged) {
  EXPECT_THAT(doubts_of(two()), ::testing::IsEmpty());
  Ensemble ensemble = two();
  ensemble.model = "0123";
  EXPECT_THAT(doubts_of(ensemble), ::testing::ElementsAre(HasSubstr("made by 0.1.0 abc")));
  ensemble = two();
  ensemble.ranges = "xxh3:0";
  EXPECT_THAT(doubts_of(ensemble), ::testing::Contains(HasSubstr("have changed since")));
  // Those of before a checksum are read; a changed digit of others is not.
  std::string text = to_text(two());
  text.replace(text.find("1.195"), 5, "1.295");
  EXPECT_THAT(refusal([&] { read_ensemble(write(text)); }), HasSubstr("its checksum does not match"));
  text.replace(text.find("checksum"), 8, "chacksum");
  EXPECT_THAT(refusal([&] { read_ensemble(write(text)); }), HasSubstr("has no checksum"));
  text.replace(text.find("\"schema\": 3"), 11, "\"schema\": 1");
  EXPECT_THAT(doubts_of(read_ensemble(write(text))), ::testing::Contains(HasSubstr("has no checksum")));
  EXPECT_NE(ranges_fingerprint(hw::load_machine("node8")),
            ranges_fingerprint(hw::load_machine("node8", {"l2.hit_latency=50ns"})));
}

// A bit that flips in one that comes with cm384 is seen wherever it stands.
TEST_F(EnsembleFile, ThatComesWithCm384IsSealed) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CM384_SOURCE_DIR "/hw/ensembles")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    std::ifstream stream(entry.path(), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(stream), {});
    EXPECT_TRUE(read_ensemble(write(text)).checked) << entry.path();
    for (std::size_t at = 0; at < text.size(); at += 997) {
      const char flipped = static_cast<char>(1 << at % 8);
      text[at] = static_cast<char>(text[at] ^ flipped);
      EXPECT_THROW(read_ensemble(write(text)), InputError) << entry.path() << ": byte " << at;
      text[at] = static_cast<char>(text[at] ^ flipped);
    }
  }
  EXPECT_GT(files, 0u);
}

TEST_F(EnsembleFile, WhatIsNoneIsRefused) {
  EXPECT_THAT(refusal([] { read_ensemble("/nowhere.json"); }),
              HasSubstr("/nowhere.json: cannot be read: No such file"));
  for (const char* text :
       {"", "[]", "{}", "{\"schema\": 1, \"members\": []}", "{\"schema\": 1, \"members\": [3]}",
        "{\"schema\": 1, \"members\": [{}], \"machine\": 4}"})
    EXPECT_THAT(refusal([&] { read_ensemble(write(text)); }), HasSubstr("is not an ensemble")) << text;
  Ensemble ensemble = two();
  ensemble.families[1].share = -0.1;
  EXPECT_THAT(refusal([&] { read_ensemble(write(to_text(ensemble))); }), HasSubstr("share -0.1"));
  ensemble.discrepancy = 1;
  EXPECT_THAT(refusal([&] { read_ensemble(write(to_text(ensemble))); }), HasSubstr("discrepancy 1"));
}

// Of 0 to 100 the middle 90 % are 5 to 95.
TEST(Interval, HoldsNineTenths) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  Ensemble ensemble;
  EXPECT_NEAR(interval_of(values, ensemble, "rows").low, 5, 1e-12);
  EXPECT_NEAR(interval_of(values, ensemble, "rows").high, 95, 1e-12);
  EXPECT_EQ(interval_of({7}, ensemble, "rows").low, 7);
  EXPECT_EQ(interval_of({7}, ensemble, "rows").high, 7);
  ensemble.discrepancy = 0.1;
  EXPECT_NEAR(interval_of(values, ensemble, "rows").low, 4.5, 1e-12);
  EXPECT_NEAR(interval_of(values, ensemble, "rows").high, 104.5, 1e-12);
  // What is learnt stands in place of the one share: of the family, or of those without a row.
  ensemble.families = {{"", 4, 3, 1.0}, {"rows", 3, 3, 0.25}};
  EXPECT_NEAR(interval_of({8}, ensemble, "rows").high, 10, 1e-12);
  EXPECT_NEAR(interval_of({8}, ensemble, "rows").low, 6.4, 1e-12);
  EXPECT_NEAR(interval_of({8}, ensemble, "ems").high, 16, 1e-12);
}

TEST(Interval, StandsBesideEachMean) {
  Json rows = Json::parse(
      R"([{"ranks": 8, "latency_us": {"mean": 10, "p50": 9}, "bandwidth_GBps": 5.5, "correct": null}])");
  const std::vector<Json> members{
      Json::parse(R"([{"ranks": 8, "latency_us": {"mean": 8}, "bandwidth_GBps": 5.0}])"),
      Json::parse(R"([{"ranks": 8, "latency_us": {"mean": 12}, "bandwidth_GBps": 6.0}])")};
  const Json values = add_intervals(rows, members, Ensemble(), "exchange");
  EXPECT_NEAR(rows[0]["latency_us"]["interval"][0].get<double>(), 8.2, 1e-12);
  EXPECT_NEAR(rows[0]["latency_us"]["interval"][1].get<double>(), 11.8, 1e-12);
  EXPECT_NEAR(rows[0]["intervals"]["bandwidth_GBps"][1].get<double>(), 5.95, 1e-12);
  EXPECT_EQ(rows[0]["ensemble"], 2);
  EXPECT_FALSE(rows[0]["intervals"].contains("ranks"));
  EXPECT_EQ(values[0]["latency_us.mean"], (std::vector<double>{8, 12}));
  // What all give to the bit is nothing that they predict; one alone says nothing of that.
  Json same = Json::parse(R"([{"acceptance": 0.7, "step_ms": 5.0}])"), other = same;
  other[0]["step_ms"] = 6.0;
  add_intervals(same, {same, other}, Ensemble(), "decode");
  EXPECT_FALSE(same[0]["intervals"].contains("acceptance"));
  EXPECT_TRUE(same[0]["intervals"].contains("step_ms"));
  add_intervals(other, {other}, Ensemble(), "decode");
  EXPECT_TRUE(other[0]["intervals"].contains("acceptance"));
  EXPECT_THAT(refusal([&] { add_intervals(rows, {Json::array()}, Ensemble(), "exchange"); }),
              HasSubstr("0 rows"));
}

// A step's kernels are off each by itself: 3 us of two launches of one kernel, and 1 us of another.
TEST(Interval, OfARowOfKernelsIsComposed) {
  Ensemble ensemble;
  ensemble.families = {{"", 4, 3, 1.0}, {"products", 3, 3, 0.25}};
  Json rows = Json::parse(R"([{"step_ms": 10.5, "kernels": [
      {"name": "prolog", "start_us": 0.0, "end_us": 1.0}, {"name": "dispatch", "start_us": 1.0, "end_us": 2.0},
      {"name": "prolog", "start_us": 5.0, "end_us": 7.0}]}])");
  add_intervals(rows, {rows}, ensemble, "decode");
  EXPECT_NEAR(rows[0]["intervals"]["step_ms"][1].get<double>(),
              10.5 * std::exp(std::hypot(0.75 * std::log(1.25), 0.25 * std::log(2.0))), 1e-9);
}

studies::Figure figure_of(std::string id, std::string area, studies::Role role) {
  studies::Figure figure;
  figure.id = std::move(id);
  figure.area = std::move(area);
  figure.role = role;
  figure.value = 100;
  return figure;
}

TEST(Coverage, CountsByFamilyAndRole) {
  using studies::Role;
  const auto a = figure_of("a", "ub", Role::validation), b = figure_of("b", "ub", Role::validation),
             c = figure_of("c", "aic", Role::selected), d = figure_of("d", "ub", Role::bound),
             e = figure_of("e", "moe", Role::follows), f = figure_of("f", "hbm", Role::validation);
  const std::vector<ScoredFigure> scored{{&a, 95, {100, 110}}, {&b, 90, {80, 99.999}}, {&c, 100, {90, 120}},
                                         {&d, 1, {0, 1}},      {&e, 1, {0, 1}},        {&f, 1, {70, 100}}};
  EXPECT_TRUE(scored[0].inside());
  EXPECT_FALSE(scored[1].inside());
  EXPECT_TRUE(scored[5].inside());
  const auto all = coverage_of(scored);
  ASSERT_EQ(all.size(), 3u);
  const auto& ub = *std::ranges::find(all, "ub", &Coverage::family);
  EXPECT_EQ(ub.figures, 2u);
  EXPECT_EQ(ub.inside, 1u);
  EXPECT_NEAR(ub.median_width, (0.1 + 0.19999) / 2, 1e-12);
  EXPECT_EQ(std::ranges::find(all, "aic", &Coverage::family)->role, Role::selected);
  EXPECT_EQ(std::ranges::count(all, "hbm", &Coverage::family), 1);
  EXPECT_FALSE(is_enough(scored));
}

// By what a run is of, whatever figures say.
TEST(Coverage, AFamilyIsWhatRuns) {
  for (const auto& [study, settings, family] :
       std::vector<std::tuple<std::string, runs::Settings, std::string>>{
           {"p2p", {}, "bus"},
           {"p2p", {{"path", "aiv-direct"}}, "bus"},
           {"p2p", {{"path", "sdma"}}, "copies"},
           {"copies", {}, "copies"},
           {"stream", {}, "memory"},
           {"op", {{"name", "batch-matmul"}}, "products"},
           {"gemm", {}, "products"},
           {"op", {{"name", "grouped-attention"}}, "attention"},
           {"mla", {}, "attention"},
           {"op", {{"name", "reduce-scatter"}}, "collectives"},
           {"op", {{"name", "all-to-all"}}, "collectives"},
           {"op", {{"name", "gate"}}, "rows"},
           {"combine", {}, "exchange"},
           {"decode", {}, "decode"}})
    EXPECT_EQ(family_of(study, settings), family);
}

TEST(Coverage, TheFloorIsNineOfTenAndAQuarter) {
  const auto figure = figure_of("a", "ub", studies::Role::validation);
  std::vector<ScoredFigure> scored(9, {&figure, 100, {90, 115}});
  scored.push_back({&figure, 100, {101, 126}});
  EXPECT_TRUE(is_enough(scored));
  scored.push_back({&figure, 100, {101, 126}});
  EXPECT_FALSE(is_enough(scored));
  const auto calibration = figure_of("c", "ub", studies::Role::calibration);
  for (int i = 0; i < 9; ++i) scored.push_back({&calibration, 100, {90, 110}});
  EXPECT_FALSE(is_enough(scored));
  EXPECT_FALSE(is_enough({{&figure, 100, {90, 115.1}}}));
  EXPECT_TRUE(is_enough({}));
}

}  // namespace
}  // namespace cm384::uncertainty::ensemble_test
