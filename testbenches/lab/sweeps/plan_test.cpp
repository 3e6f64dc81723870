// Sweep files: axes, designs, conditions, goals; and what is refused.
#include <gmock/gmock.h>

#include <set>

#include "testbenches/lab/sweeps/stand_in_subject.h"

namespace cm384::sweeps::plan_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Plan plan_of(const std::string& text) {
  StandInSubject subject;
  return parse_plan("study = \"dispatch\"\n" + text, "some/links.toml", subject);
}

// The points as "ranks=8 mode=flow".
std::vector<std::string> points(const std::string& text) {
  StandInSubject subject;
  std::vector<std::string> lines;
  for (const auto& point : points_of(plan_of(text), subject)) {
    std::string line;
    for (const auto& [key, value] : point) line += (line.empty() ? "" : " ") + key + "=" + value;
    lines.push_back(line);
  }
  return lines;
}

std::string refusal(const std::string& text) {
  try {
    points(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const std::string kRanks = "[[axis]]\nkey = \"ranks\"\nvalues = [8, 16]\n";
const std::string kMode = "[[axis]]\nkey = \"mode\"\nvalues = [\"spray\", \"flow\"]\n";

TEST(Plan, GridTurnsTheLastAxisFastest) {
  EXPECT_THAT(points(kRanks + kMode), ElementsAre("ranks=8 mode=spray", "ranks=8 mode=flow",
                                                  "ranks=16 mode=spray", "ranks=16 mode=flow"));
}

TEST(Plan, RangesAreLinearOrLogarithmicWithBothEnds) {
  EXPECT_THAT(points("[[axis]]\nkey = \"load\"\nfrom = 0.1\nto = 0.9\ncount = 5"),
              ElementsAre("load=0.1", "load=0.3", "load=0.5", "load=0.7", "load=0.9"));
  EXPECT_THAT(points("[[axis]]\nkey = \"link.rate\"\nfrom = \"7GB/s\"\nto = \"56GB/s\"\ncount = 4\n"
                     "scale = \"logarithmic\""),
              ElementsAre("link.rate=7GB/s", "link.rate=14GB/s", "link.rate=28GB/s", "link.rate=56GB/s"));
  // Values stand on the step of the option, and each stands once.
  EXPECT_THAT(points("[[axis]]\nkey = \"ranks\"\nfrom = 2\nto = 6\ncount = 5"),
              ElementsAre("ranks=2", "ranks=4", "ranks=6"));
}

TEST(Plan, ZippedAxesAdvanceTogether) {
  const std::string zipped =
      "[[axis]]\nkey = \"ranks\"\nvalues = [8, 16]\nzip = \"size\"\n"
      "[[axis]]\nkey = \"load\"\nvalues = [0.2, 0.4]\nzip = \"size\"\n";
  // Each may have a value again.
  EXPECT_THAT(points("[[axis]]\nkey = \"ranks\"\nvalues = [8, 8, 16]\nzip = \"size\"\n"
                     "[[axis]]\nkey = \"load\"\nvalues = [0.2, 0.4, 0.4]\nzip = \"size\"\n"),
              ::testing::ElementsAre("ranks=8 load=0.2", "ranks=8 load=0.4", "ranks=16 load=0.4"));
  EXPECT_THAT(points(zipped + kMode),
              ElementsAre("ranks=8 load=0.2 mode=spray", "ranks=8 load=0.2 mode=flow",
                          "ranks=16 load=0.4 mode=spray", "ranks=16 load=0.4 mode=flow"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"ranks\"\nvalues = [8, 16]\nzip = \"a\"\n"
                      "[[axis]]\nkey = \"load\"\nvalues = [0.2]\nzip = \"a\"\n"),
              HasSubstr("load: has 1 values, and ranks that it advances with has 2"));
}

TEST(Plan, LatinHypercubeDrawsFromEveryStratumOnce) {
  const std::string cube =
      "design = \"latin-hypercube\"\npoints = 10\nseed = 7\n"
      "[[axis]]\nkey = \"load\"\nfrom = 0.0\nto = 1.0\n" +
      kMode;
  StandInSubject subject;
  const auto drawn = points_of(plan_of(cube), subject);
  ASSERT_THAT(drawn, SizeIs(10));
  std::set<int> strata;
  int sprays = 0;
  for (const auto& point : drawn) {
    strata.insert(static_cast<int>(std::stod(point[0].second) * 10));
    sprays += point[1].second == "spray" ? 1 : 0;
  }
  EXPECT_THAT(strata, SizeIs(10));
  EXPECT_EQ(sprays, 5);
  EXPECT_EQ(points(cube), points(cube));
  std::string other = cube;
  other.replace(other.find("seed = 7"), 8, "seed = 8");
  EXPECT_NE(points(cube), points(other));
}

TEST(Plan, ConditionsLeavePointsOut) {
  EXPECT_THAT(points("where = [\"ranks <= 8 || mode == 'flow'\"]\n" + kRanks + kMode),
              ElementsAre("ranks=8 mode=spray", "ranks=8 mode=flow", "ranks=16 mode=flow"));
  // Options that are no axis count with their value; quantities count in base units.
  EXPECT_THAT(points("where = [\"link.rate * link.latency == 2800 && link.latency < 200ns\"]\n" + kRanks),
              SizeIs(2));
  EXPECT_THAT(points("where = [\"link.rate > 28GB/s || ranks == 8\"]\n" + kRanks), SizeIs(1));
  EXPECT_THAT(points("where = [\"link.rate/28GB/s == 1 && -ranks < -(8)\"]\n" + kRanks), SizeIs(1));
  EXPECT_THAT(refusal("where = [\"ranks > 100\"]\n" + kRanks), HasSubstr("no point is left"));
  EXPECT_THAT(refusal("where = [\"ranks <\"]\n" + kRanks), HasSubstr("some/links.toml:2: where: 'ranks <':"));
  EXPECT_THAT(refusal("where = [\"rank < 9\"]\n" + kRanks), HasSubstr("'rank': no such option"));
  EXPECT_THAT(refusal("where = [\"1 / 0\"]\n" + kRanks), HasSubstr("no finite value"));
}

TEST(Plan, FixedOptionsMayBeNestedTables) {
  const Plan plan = plan_of("[options]\nranks = 16\nlink.latency = \"50ns\"\n" + kMode);
  EXPECT_THAT(plan.fixed, ElementsAre(Setting{"link.latency", "50ns"}, Setting{"ranks", "16"}));
  EXPECT_EQ(plan.name, "links");
}

TEST(Plan, TheAxisOfASearchIsNoDimensionOfTheGrid) {
  const std::string find = "[find]\naxis = \"link.rate\"\nmetric = \"latency_us.mean\"\nat_most = 150\n";
  const std::string rate = "[[axis]]\nkey = \"link.rate\"\nfrom = \"1GB/s\"\nto = \"100GB/s\"\n";
  EXPECT_THAT(points(kRanks + rate + find), ElementsAre("ranks=8", "ranks=16"));
  EXPECT_THAT(refusal(kRanks + find), HasSubstr("'link.rate' is not an [[axis]]"));
  EXPECT_THAT(refusal(rate + "[find]\naxis = \"link.rate\"\nmetric = \"latency\"\nat_most = 1"),
              HasSubstr("'latency': no such field"));
  EXPECT_THAT(refusal(rate + "[find]\naxis = \"link.rate\"\nmetric = \"share\""),
              HasSubstr("either `at_most` or `at_least`"));
}

TEST(Plan, MistakesNameFileLineAndKey) {
  EXPECT_THAT(refusal(""), HasSubstr("some/links.toml:1: axis: none is given"));
  EXPECT_THAT(refusal("metric = [\"share\"]\n" + kRanks),
              HasSubstr("links.toml:2: metric: no such key; did you mean"));
  EXPECT_THAT(refusal("metrics = [\"sharp\"]\n" + kRanks), HasSubstr("did you mean share?"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"rank\"\nvalues = [8]"), HasSubstr("'rank': no such option"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"ranks\"\nvalues = [8, 8]"), HasSubstr("8 is listed twice"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"ranks\"\nvalues = [8, 16, 8]\nzip = \"a\"\n"
                      "[[axis]]\nkey = \"load\"\nvalues = [0.2, 0.2, 0.2]\nzip = \"a\"\n"),
              HasSubstr("a: 8, 0.2 is listed twice"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"ranks\"\nvalues = []"), HasSubstr("allowed: a list of values"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"ranks\"\nvalues = [8]\ncount = 3"),
              HasSubstr("no effect beside `values`"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"ranks\"\nfrom = 8\nto = 8"), HasSubstr("`from` is not below `to`"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"mode\"\nfrom = 8\nto = 9"), HasSubstr("has names, not numbers"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"load\"\nfrom = 0\nto = 1\nscale = \"logarithmic\""),
              HasSubstr("begins above 0"));
  EXPECT_THAT(refusal(kRanks + kRanks), HasSubstr("is an axis already"));
  EXPECT_THAT(refusal("[options]\nranks = 8\n" + kRanks),
              HasSubstr("has a fixed value in [options] as well"));
  EXPECT_THAT(refusal("points = 5\n" + kRanks), HasSubstr("has no effect with a grid"));
  EXPECT_THAT(refusal("design = \"latin-hypercube\"\n" + kRanks),
              HasSubstr("points: is missing; allowed: a whole number"));
  EXPECT_THAT(refusal(kRanks + "[[pareto]]\nmetric = \"share\""), HasSubstr("two or more"));
  EXPECT_THAT(refusal(kRanks + "[[cost]]\nname = \"c\"\nformula = \"ranks *\""),
              HasSubstr("formula: 'ranks *'"));
}

TEST(Grid, IsOfPartsOverOneMachine) {
  StandInSubject subject;
  const std::string part = "[[part]]\nstudy = \"dispatch\"\noptions = { load = 0.25 }\n";
  const std::string axis = "[[part.axis]]\nkey = \"ranks\"\nvalues = [8, 16]\n";
  const Grid grid = parse_grid("machine = \"m.toml\"\n" + part + axis + part + axis, "g.toml", subject);
  EXPECT_EQ(grid.machine, "m.toml");
  ASSERT_THAT(grid.parts, SizeIs(2));
  EXPECT_EQ(grid.parts[1].study, "dispatch");
  EXPECT_THAT(grid.parts[1].fixed, ElementsAre(Setting("load", "0.25"), Setting("machine", "m.toml")));
  EXPECT_THAT(points_of(grid.parts[1], subject), SizeIs(2));
  const auto refused = [&](const std::string& text) {
    try {
      parse_grid(text, "g.toml", subject);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused("machine = \"m\"\n"), HasSubstr("g.toml:1: part: none is given"));
  EXPECT_THAT(refused("study = \"dispatch\"\n" + axis), HasSubstr("g.toml:1: study: no such key"));
  EXPECT_THAT(refused(part), HasSubstr("g.toml:1: axis: none is given"));
  EXPECT_THAT(refused(part + axis + "[part.find]\n"), HasSubstr("g.toml:7: find: no such key"));
  EXPECT_THAT(refused(part + "[[part.axis]]\nkey = \"link.latency\"\nvalues = [\"1us\"]\n"),
              HasSubstr("g.toml:1: link.latency: is of the machine"));
}

// Of axes that advance together a value may come again: the point is another one.
TEST(Plan, ZippedAxesMayRepeatValues) {
  EXPECT_THAT(points("[[axis]]\nkey = \"ranks\"\nvalues = [8, 8]\nzip = \"a\"\n"
                     "[[axis]]\nkey = \"mode\"\nvalues = [\"spray\", \"flow\"]\nzip = \"a\"\n"),
              ElementsAre("ranks=8 mode=spray", "ranks=8 mode=flow"));
  EXPECT_THAT(refusal("[[axis]]\nkey = \"ranks\"\nvalues = [8, 8]\n"), HasSubstr("is listed twice"));
}

TEST(Plan, ConditionsCompareAndDoNotAssign) {
  EXPECT_THAT(refusal("where = [\"ranks = 8\"]\n" + kRanks),
              HasSubstr("'ranks = 8': = would change a value"));
  for (const char* holds : {"ranks == 8", "ranks <= 8", "ranks != 16"})
    EXPECT_THAT(points(std::string("where = ['") + holds + "']\n" + kRanks), ElementsAre("ranks=8")) << holds;
  EXPECT_THAT(points("where = ['mode != \"a = b\"']\n" + kMode), SizeIs(2));
}

TEST(Plan, CostsHaveNamesOfTheirOwn) {
  const auto named = [](const std::string& name) {
    return refusal(kRanks + "[[cost]]\nname = \"" + name + "\"\nformula = \"ranks\"\n");
  };
  EXPECT_EQ(named("price"), "accepted");
  EXPECT_THAT(named("latency_us.mean"), HasSubstr("is the name of a field of the rows already"));
  EXPECT_THAT(named("ranks"), HasSubstr("is the name of an axis already"));
  EXPECT_THAT(named("failed"), HasSubstr("a column of sweeps"));
  EXPECT_THAT(
      refusal(kRanks + "[[cost]]\nname = \"c\"\nformula = \"1\"\n[[cost]]\nname = \"c\"\nformula = \"2\"\n"),
      HasSubstr("is the name of a cost already"));
}

}  // namespace
}  // namespace cm384::sweeps::plan_test
