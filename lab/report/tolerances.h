// How far a figure may move before it counts: a TOML file.
//
// clang-format off
//     relative = 0.01                # of every number that no [[field]] below names; 0 where not given
//     absolute = 0.0
//
//     [[field]]                      # the first whose name fits decides
//     name = "latency_us.*"          # of the flattened field, as in the columns of --format csv; * fits anything
//     relative = 0.05
//     direction = "up"               # only growth counts; down: only fall; default: both
//     better = "lower"               # which way it improves: lower, higher, neither; default: by its unit
//
//     [[field]]
//     name = "notes*"
//     ignore = true
// clang-format on
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/toml_file.h"
#include "workloads/frame/fields.h"

namespace cm384::report {

struct Tolerance {
  double relative = 0, absolute = 0;  // a number may move by the larger of both
  enum class Direction { both, up, down } direction = Direction::both;
  bool ignore = false;
  std::optional<studies::Better> better{};  // where it is not what the field's unit says

  // Whether a number may go from `before` to `after`.
  bool allows(double before, double after) const;
  // Whether that is an improvement of a field of this name, by any amount.
  bool improves(std::string_view field, double before, double after) const;
  std::string text() const;  // "5 %", "0.1", "exact", "growth of 5 %"
};

class Tolerances {
 public:
  const Tolerance& of(std::string_view field) const;
  void set_default(const Tolerance& tolerance) { fallback_ = tolerance; }
  void add(std::string name, const Tolerance& tolerance) { rules_.push_back({std::move(name), tolerance}); }
  // These rules behind the own ones, and their default.
  void append(const Tolerances& others);

 private:
  struct Rule {
    std::string name;
    Tolerance tolerance;
  };
  Tolerance fallback_;
  std::vector<Rule> rules_;
};

// Throws InputError: file:line: key: what was found; what is allowed.
Tolerances read_tolerances(const std::string& path);
Tolerances parse_tolerances(std::string_view text, const std::string& name);

// `relative`, `absolute` and the [[field]] of a file, or of one of its tables.
struct ToleranceTable {
  struct Field {
    std::string name, direction = "both", better;  // better empty: by the field's unit
    double relative = 0, absolute = 0;
    bool ignore = false;

    static hw::OneOf directions() { return {{"both", "up", "down"}}; }       // as Tolerance::Direction
    static hw::OneOf betters() { return {{"neither", "lower", "higher"}}; }  // as studies::Better

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      using hw::kNoLimit;
      using hw::Range;
      visit("name", self.name, "of the flattened field; * fits anything", hw::Required{});
      visit("relative", self.relative, Range{0.0, kNoLimit},
            "that a number may move by, as a share of itself");
      visit("absolute", self.absolute, Range{0.0, kNoLimit}, "that a number may move by");
      visit("direction", self.direction, directions(), "that counts");
      visit("better", self.better, betters(), "which way it improves; default: by its unit");
      visit("ignore", self.ignore, "it may be anything");
    }
  };
  double relative = 0, absolute = 0;
  std::vector<Field> fields;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::kNoLimit;
    using hw::Range;
    visit("relative", self.relative, Range{0.0, kNoLimit}, "of every number that no [[field]] names");
    visit("absolute", self.absolute, Range{0.0, kNoLimit}, "of every number that no [[field]] names");
    visit("field", self.fields);
  }

  // `fallback`: what stands behind these, a default included.
  Tolerances tolerances(const Tolerances& fallback) const;
};

// Whether `name` fits `pattern`, in which `*` stands for any text.
bool fits(std::string_view pattern, std::string_view name);

}  // namespace cm384::report
