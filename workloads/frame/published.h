// Published figures, the conditions under which they hold, and which of them the rows of a run predict.
//
// hw/published/published.csv has the figures, hw/published/conditions.toml their conditions. A result shows a
// figure only where all of its conditions hold; `cm384 validate` measures it under these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "workloads/frame/row.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

// What a run must have been for a figure to hold; see conditions.toml.
struct Conditions {
  using Settings =
      std::vector<std::pair<std::string, std::string>>;  // of options, as the command line has them

  std::string machine;  // unchanged
  std::string study;
  std::string takes;  // so long that validation leaves it out unless asked; empty: it does not
  std::string field;  // of the row that predicts the figure, flattened
  double scale = 1;   // the figure's unit per the field's
  Row row;            // fields that this row has, whose names are those of options
  Row chosen;         // the same of fields that are no options: which one of the rows of a run it is
  Settings options, at_least;
  std::vector<std::string> any;

  // What follows `cm384 run STUDY` to measure the figure.
  std::vector<std::string> arguments() const;
  // The whole command, for people: "run dispatch --ranks 8 ...".
  std::string command() const;
  // The figure, as this row predicts it; nothing where it is not the row that is meant.
  std::optional<double> predicted_by(const Row& row) const;
};

// What agreement with a figure says.
enum class Role : std::uint8_t {
  calibration,  // nothing: a parameter was fitted to it
  selected,     // little: one of several alternatives was chosen after the figure had been seen
  validation,   // something: nothing was fitted to it or chosen by it
  bound,        // that the machine does not contradict it: published as "below"
  follows,      // nothing of its own: it is other figures added up
};
std::string_view to_string(Role role);

// One line of hw/published/published.csv.
struct Figure {
  std::string id, area, metric, stated;  // `stated`: conditions, in the publication's words
  double value = 0;
  std::string unit, source;
  Role role = Role::validation;
  double tolerance = 0;  // allowed |error|, relative; of a bound: allowed excess
  std::string because;   // what was selected, or which figures it follows from
  std::optional<Conditions> conditions;
  std::string missing;  // where there are none: why no run is compared with it
};

// Whether validation runs what gives the figure: if its id begins with `only`, and what takes long only if it
// is named in full, or all such are wanted.
bool is_run(const Figure& figure, std::string_view only, bool with_long);

// The preset whose figures a machine is compared with: its own where there are any, otherwise the default
// one.
std::string machine_of_figures(const hw::Machine& machine);

// All of them. Throws InputError where the files are not as they should be.
const std::vector<Figure>& published_figures();

// A study's own options, read as `cm384 run` reads them.
class StudySettings {
 public:
  // Throws InputError.
  StudySettings(const Study& study, const std::vector<std::string>& arguments);
  StudySettings(const StudySettings&) = delete;
  StudySettings& operator=(const StudySettings&) = delete;

  std::vector<hw::Parameter>& list() { return groups_.front().options; }
  Row effective() const { return effective_options(groups_.front().options); }
  void settle(const hw::Machine& machine) { own_->settle(machine); }
  StudyResult run(StudyContext context) const;

 private:
  std::unique_ptr<StudyOptions> own_;
  FabricOptions fabric_;
  std::vector<OptionGroup> groups_;
  Given given_;
};

// A figure that a row predicts.
struct Prediction {
  const Figure* figure = nullptr;
  std::string field;  // of the row, flattened
  double value = 0;   // in the figure's unit
};

// The figures whose conditions hold for a run as a whole.
class PublishedFigures {
 public:
  // `parameters`: its effective options, as in result.json. `unchanged_machine`: the name of its machine;
  // empty where anything of that was changed.
  PublishedFigures(const Study& study, const Json& parameters, std::string_view unchanged_machine);

  // Those that this row predicts.
  std::vector<Prediction> of(const Row& row) const;

 private:
  std::vector<const Figure*> figures_;
};

}  // namespace cm384::studies
