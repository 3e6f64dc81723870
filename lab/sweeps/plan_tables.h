// What the file of a sweep or a grid may hold, table by table (docs/sweeps.md).
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/text/toml_file.h"
#include "lab/sweeps/plan.h"

namespace cm384::sweeps {

using hw::OneOf;
using hw::Range;
using hw::Required;

inline constexpr int kMostValues = 10'000;  // of a range

// [[axis]].
struct AxisTable {
  std::string key, scale = "linear", zip;
  hw::TomlNode values, from, to;
  int count = 2;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("key", self.key, "an option or a parameter of the machine", Required{});
    visit("values", self.values, "a list");
    visit("from", self.from, "the first value of a range");
    visit("to", self.to, "the last one");
    visit("count", self.count, Range{2, kMostValues}, "values of a range");
    visit("scale", self.scale, OneOf{{"linear", "logarithmic"}}, "of a range");
    visit("zip", self.zip, "axes with the same name advance together");
  }
};

// [[cost]].
struct CostTable {
  std::string name, formula;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "a column of its own", Required{});
    visit("formula", self.formula, "of names of options and parameters", Required{});
  }
};

inline OneOf ends() {
  return {{"smallest", "largest"}};
}

// [[pareto]].
struct GoalTable {
  std::string metric, best = "smallest";
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("metric", self.metric, "a field of a row, or a cost", Required{});
    visit("best", self.best, ends(), "which value is");
  }
};

// [find].
struct FindTable {
  std::string axis, metric, best = "smallest";
  double at_most = 0, at_least = 0, resolution = Find{}.resolution;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("axis", self.axis, "that is searched", Required{});
    visit("metric", self.metric, "a field of a row, or a cost", Required{});
    visit("at_most", self.at_most, "what the metric may not exceed, in its unit");
    visit("at_least", self.at_least, "what it must reach");
    visit("best", self.best, ends(), "which value of the axis is");
    visit("resolution", self.resolution, Range{0.0, 1.0}, "of the axis, relative: where the search ends");
  }
};

// [[part]] of a grid, and what a sweep has as well.
struct PartTable {
  std::string study;
  hw::Texts metrics, where;
  hw::TomlNode options;
  std::vector<AxisTable> axes;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("study", self.study, "a subject of `cm384 run`", Required{});
    visit("metrics", self.metrics, "columns of the table");
    visit("options", self.options, "of the study, or parameters of the machine");
    visit("axis", self.axes);
    visit("where", self.where, "conditions that a point meets");
  }
};

struct PlanTable : PartTable {
  int ranks_per_point = 1, points = 0, seed = 1;
  std::string design = "grid";
  std::vector<CostTable> costs;
  std::vector<GoalTable> goals;
  FindTable find;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    PartTable::describe(self, visit);
    visit("ranks_per_point", self.ranks_per_point, Range{1, 1024}, "processes of MPI that simulate a point");
    visit("design", self.design, OneOf{{"grid", "latin-hypercube"}}, "which points");
    visit("points", self.points, Range{1, 1'000'000}, "of a Latin hypercube");
    visit("seed", self.seed, Range{0, std::numeric_limits<int>::max()}, "of a Latin hypercube");
    visit("cost", self.costs);
    visit("find", self.find);
    visit("pareto", self.goals);
  }
};

struct GridTable {
  std::string machine;
  std::vector<PartTable> parts;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("machine", self.machine, "of all parts: a preset or a file");
    visit("part", self.parts);
  }
};

}  // namespace cm384::sweeps
