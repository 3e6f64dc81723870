// A sweep file: which runs of a study, over which values, and what is looked for among them. docs/sweeps.md
// has the format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/runs/subject.h"
#include "lab/sweeps/expression.h"
#include "lab/sweeps/scale.h"
#include "workloads/frame/fields.h"

namespace cm384::sweeps {

// One dimension of a sweep: an option of the study, `machine`, `seed`, or a parameter of the machine.
struct Axis {
  std::string key;
  Scale scale;
  std::vector<std::string> values;  // as the command line takes them
  std::string zip;                  // axes with the same name advance together; empty: on its own
  // Of a range alone; a Latin hypercube and `find` take any value between.
  std::optional<std::pair<double, double>> range;
  bool logarithmic = false;
};

enum class Design : std::uint8_t { grid, latin_hypercube };

// The smallest or largest value of an axis at which every row meets a target.
struct Find {
  std::string axis;
  std::string metric;  // a field of a row, as flatten() names it
  double target = 0;
  bool at_most = true;       // the metric may not exceed the target; otherwise it must reach it
  bool smallest = true;      // of the axis
  double resolution = 0.01;  // of the axis, relative: where bisection of a range ends
};

struct Goal {
  std::string metric;  // or the name of a cost
  bool smallest = true;
};

struct Cost {
  std::string name;
  Expression formula;
};

using runs::Setting;

struct Plan {
  std::string name;  // of the file, without its extension
  std::string study;
  std::vector<Setting> fixed;
  std::vector<std::string> metrics;  // columns of the table; empty: those of the study
  int ranks_per_point = 1;           // processes of MPI that simulate a point
  std::vector<Axis> axes;
  Design design = Design::grid;
  int points = 0;         // of a Latin hypercube
  std::int64_t seed = 1;  // of a Latin hypercube
  std::vector<Expression> conditions;
  std::vector<Cost> costs;
  std::optional<Find> find;
  std::vector<Goal> pareto;

  const Axis* axis(const std::string& key) const;
  // The fixed settings, then those of a point.
  std::vector<Setting> settings(const std::vector<Setting>& point) const;
};

// What a sweep has to know of its study, in addition to how it is run.
class Subject : public runs::Subject {
 public:
  // The fields of the study's rows.
  virtual std::span<const studies::Field> fields() const = 0;
  // Of the option or machine parameter that an axis may name. Throws InputError with a suggestion.
  virtual Scale scale(const std::string& key) = 0;
  // Of a name in a condition or a cost: also what is counted of the machine.
  virtual Scale name_scale(const std::string& name) { return scale(name); }
  // The effective value of such a name under these settings.
  virtual std::string value(const std::vector<Setting>& settings, const std::string& key) = 0;
};

// Throws InputError: one line with file, line and key.
Plan parse_plan(std::string_view text, const std::string& file, Subject& subject);
Plan read_plan(const std::string& file, Subject& subject);

// Plans in one file, [[part]] each, over the same machine: what a library is measured over.
struct Grid {
  std::string machine;  // empty: the default one
  std::vector<Plan> parts;
};
// Throws InputError: one line with file, line and key.
Grid parse_grid(std::string_view text, const std::string& file, Subject& subject);
Grid read_grid(const std::string& file, Subject& subject);

// The points of the plan in the order of its file: the last axis changes fastest. The axis of `find` stays
// out. Points that a condition leaves out are not there.
std::vector<std::vector<Setting>> points_of(const Plan& plan, Subject& subject);

}  // namespace cm384::sweeps
