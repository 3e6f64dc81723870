#include "lab/sweeps/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "lab/report/result_file.h"
#include "lab/sweeps/plan_tables.h"

namespace cm384::sweeps {
namespace {

using hw::TomlFile;

constexpr std::size_t kLargestFile = std::size_t{1} << 20;

// The plan that a file or one of its tables is; what a method refuses names file, line and key.
class Reader {
 public:
  Reader(const PlanTable& table, Subject& subject)
      : file_(*table.place.file), table_(table), place_(table.place), subject_(subject) {}

  Plan read(const std::string& name) {
    plan_.name = name;
    plan_.study = table_.study;
    place_.guarded("study", [&] { subject_.choose(plan_.study); });
    if (table_.options) read_fixed(*table_.options);
    for (const AxisTable& axis : table_.axes) read_axis(axis);
    check_repeats();
    read_design();
    read_conditions();
    for (const std::string& metric : table_.metrics) check_metric(place_, "metrics", metric);
    plan_.metrics = table_.metrics;
    plan_.ranks_per_point = table_.ranks_per_point;
    read_goals();
    if (plan_.axes.empty()) place_.refuse("axis", "none is given; allowed: [[axis]]");
    return std::move(plan_);
  }

 private:
  // Tables within are keys with dots: ub.link.bandwidth = "28GB/s".
  void read_fixed(const toml::node& node, const std::string& prefix = "") {
    if (!node.is_table()) file_.refuse(node, "options", "allowed: [options]");
    for (const auto& [name, value] : *node.as_table()) {
      const std::string key = prefix + std::string(name.str());
      if (value.is_table()) {
        read_fixed(value, key + ".");
        continue;
      }
      hw::TomlPlace{&file_, node.as_table()}.guarded(name.str(), [&] { subject_.scale(key); });
      plan_.fixed.emplace_back(key, file_.text_of(value, key));
    }
  }

  double number(const AxisTable& table, std::string_view key, const hw::TomlNode& node,
                const Scale& scale) const {
    if (!node) table.place.refuse(key, "is missing; allowed: a number or a quantity");
    const auto number = table.place.guarded(key, [&] { return scale.number(file_.text_of(*node, key)); });
    if (!number) table.place.refuse(key, "allowed: a number or a quantity");
    return *number;
  }

  void read_axis(const AxisTable& table) {
    if (plan_.axis(table.key) != nullptr)
      file_.refuse(*table.place.table->get("key"), table.key, "is an axis already");
    const auto is_key = [&](const Setting& setting) { return setting.first == table.key; };
    if (std::ranges::any_of(plan_.fixed, is_key))
      file_.refuse(*table.place.table->get("key"), table.key, "has a fixed value in [options] as well");
    const Scale scale = table.place.guarded("key", [&] { return subject_.scale(table.key); });
    Axis axis{table.key, scale, {}, table.zip, std::nullopt, false};
    if (static_cast<bool>(table.values) == static_cast<bool>(table.from))
      table.place.refuse(table.key, "allowed: either `values`, or `from`, `to` and `count`");
    if (table.values) {
      for (const char* other : {"to", "count", "scale"}) {
        if (table.place.has(other)) table.place.refuse(other, "has no effect beside `values`");
      }
      read_values(table, axis);
    } else {
      read_range(table, axis);
    }
    check_zip(table, axis);
    plan_.axes.push_back(std::move(axis));
  }

  void read_values(const AxisTable& table, Axis& axis) const {
    const toml::array* list = table.values.node->as_array();
    if (list == nullptr || list->empty()) table.place.refuse("values", "allowed: a list of values");
    for (const toml::node& element : *list) {
      std::string text = file_.text_of(element, "values");
      // Of axes that advance together each point has another one's value with it.
      if (axis.zip.empty() && std::ranges::find(axis.values, text) != axis.values.end())
        file_.refuse(element, axis.key, fmt::format("{} is listed twice", text));
      axis.values.push_back(std::move(text));
    }
  }

  void read_range(const AxisTable& table, Axis& axis) const {
    if (!axis.scale.numeric()) table.place.refuse(axis.key, "has names, not numbers; allowed: `values`");
    const double from = number(table, "from", table.from, axis.scale),
                 to = number(table, "to", table.to, axis.scale);
    axis.logarithmic = table.scale == "logarithmic";
    if (!(from < to)) table.place.refuse(axis.key, "`from` is not below `to`");
    if (axis.logarithmic && from <= 0) table.place.refuse(axis.key, "a logarithmic range begins above 0");
    axis.range = {from, to};
    const int count = table.count;
    for (int i = 0; i < count; ++i) {
      const double place = static_cast<double>(i) / (count - 1);
      const double value = axis.logarithmic ? from * std::pow(to / from, place) : from + (to - from) * place;
      std::string text = axis.scale.text(i == count - 1 ? to : value);
      if (axis.values.empty() || axis.values.back() != text) axis.values.push_back(std::move(text));
    }
  }

  void check_zip(const AxisTable& table, const Axis& axis) const {
    if (axis.zip.empty()) return;
    for (const Axis& other : plan_.axes) {
      if (other.zip == axis.zip && other.values.size() != axis.values.size())
        table.place.refuse(axis.key, fmt::format("has {} values, and {} that it advances with has {}",
                                                 axis.values.size(), other.key, other.values.size()));
    }
  }

  // Of axes that advance together each may have a value again, but not all of them the same ones.
  void check_repeats() const {
    std::map<std::string, std::vector<const Axis*>> groups;
    for (const Axis& axis : plan_.axes) {
      if (!axis.zip.empty()) groups[axis.zip].push_back(&axis);
    }
    for (const auto& [zip, axes] : groups) {
      std::set<std::vector<std::string>> seen;
      for (std::size_t n = 0; n < axes.front()->values.size(); ++n) {
        std::vector<std::string> values;
        for (const Axis* axis : axes) values.push_back(axis->values[n]);
        if (!seen.insert(values).second)
          place_.refuse("axis", fmt::format("{}: {} is listed twice", zip, fmt::join(values, ", ")));
      }
    }
  }

  void read_design() {
    if (table_.design == "latin-hypercube") {
      if (!place_.has("points")) place_.refuse("points", "is missing; allowed: a whole number");
      plan_.design = Design::latin_hypercube;
      plan_.points = table_.points;
      plan_.seed = table_.seed;
      return;
    }
    for (const char* key : {"points", "seed"}) {
      if (place_.has(key))
        place_.refuse(key, "has no effect with a grid; allowed with design = \"latin-hypercube\"");
    }
  }

  // A number of the study's rows, or a cost.
  void check_metric(const hw::TomlPlace& place, std::string_view key, const std::string& metric) const {
    if (std::ranges::find(plan_.costs, metric, &Cost::name) != plan_.costs.end()) return;
    if (studies::find_field(subject_.fields(), metric) != nullptr) return;
    std::vector<std::string> names;
    for (const studies::Field& field : subject_.fields()) {
      names.emplace_back(field.name);
      for (const studies::Field& part : field.parts)
        names.push_back(fmt::format("{}.{}", field.name, part.name));
    }
    place.refuse(key, fmt::format("'{}': no such field of a row of `run {}`{}", metric, plan_.study,
                                  hw::suggestion(metric, names)));
  }

  void check_names(const hw::TomlPlace& place, std::string_view key, const Expression& expression) const {
    for (const std::string& name : expression.names()) place.guarded(key, [&] { subject_.name_scale(name); });
  }

  // A column of its own: not the name of an axis, another cost, or a field of the rows.
  void check_cost_name(const hw::TomlPlace& place, const std::string& name) const {
    const auto taken = [&](std::string_view by) {
      place.refuse("name", fmt::format("'{}' is the name of {} already; allowed: another one", name, by));
    };
    if (plan_.axis(name) != nullptr) taken("an axis");
    if (std::ranges::find(plan_.costs, name, &Cost::name) != plan_.costs.end()) taken("a cost");
    if (studies::find_field(subject_.fields(), name) != nullptr) taken("a field of the rows");
    for (const char* own : {"failed", "pareto"})
      if (name == own) taken("a column of sweeps");
  }

  void read_conditions() {
    for (const std::string& text : table_.where) {
      place_.guarded("where", [&] { plan_.conditions.emplace_back(text); });
      check_names(place_, "where", plan_.conditions.back());
    }
    for (const CostTable& table : table_.costs) {
      check_cost_name(table.place, table.name);
      table.place.guarded("formula", [&] { plan_.costs.push_back({table.name, Expression(table.formula)}); });
      check_names(table.place, "formula", plan_.costs.back().formula);
    }
  }

  void read_goals() {
    for (const GoalTable& table : table_.goals) {
      check_metric(table.place, "metric", table.metric);
      plan_.pareto.push_back({table.metric, table.best == "smallest"});
    }
    if (plan_.pareto.size() == 1) place_.refuse("pareto", "one goal has no trade-off; allowed: two or more");
    if (table_.find.place.table != nullptr) read_find(table_.find);
  }

  void read_find(const FindTable& table) {
    const hw::TomlPlace& place = table.place;
    const Axis* axis = plan_.axis(table.axis);
    if (axis == nullptr)
      place.refuse("axis", fmt::format("'{}' is not an [[axis]] of this file", table.axis));
    if (!axis->range && axis->values.size() < 2) place.refuse("axis", "has one value");
    if (!axis->zip.empty()) place.refuse("axis", "advances with others; allowed: one on its own");
    if (plan_.design != Design::grid) place_.refuse("find", "allowed with design = \"grid\"");
    check_metric(place, "metric", table.metric);
    const bool at_most = place.has("at_most");
    if (at_most == place.has("at_least")) place.refuse("find", "allowed: either `at_most` or `at_least`");
    if (table.resolution <= 0 || table.resolution >= 1)
      place.refuse("resolution", "allowed: between 0 and 1, such as 0.01");
    plan_.find = {.axis = table.axis,
                  .metric = table.metric,
                  .target = at_most ? table.at_most : table.at_least,
                  .at_most = at_most,
                  .smallest = table.best == "smallest",
                  .resolution = table.resolution};
  }

  const TomlFile& file_;
  const PlanTable& table_;
  const hw::TomlPlace& place_;
  Subject& subject_;
  Plan plan_;
};

// All parts of a grid are of one machine, which the grid names.
void check_one_machine(const hw::TomlPlace& part, const Plan& plan) {
  const auto check = [&](const std::string& key) {
    if (key == "machine" || key.find('.') != std::string::npos)
      part.refuse(key, "is of the machine; allowed: `machine` of the whole grid, a preset or a file");
  };
  for (const Setting& setting : plan.fixed) check(setting.first);
  for (const Axis& axis : plan.axes) check(axis.key);
}

}  // namespace

const Axis* Plan::axis(const std::string& key) const {
  const auto found = std::ranges::find(axes, key, &Axis::key);
  return found == axes.end() ? nullptr : &*found;
}

std::vector<Setting> Plan::settings(const std::vector<Setting>& point) const {
  std::vector<Setting> all = fixed;
  all.insert(all.end(), point.begin(), point.end());
  return all;
}

Plan parse_plan(std::string_view text, const std::string& file, Subject& subject) {
  const TomlFile toml(text, file);
  PlanTable table;
  toml.read(table);
  return Reader(table, subject).read(std::filesystem::path(file).stem().string());
}

Plan read_plan(const std::string& file, Subject& subject) {
  return parse_plan(report::read_text(file, kLargestFile), file, subject);
}

Grid parse_grid(std::string_view text, const std::string& file, Subject& subject) {
  const TomlFile toml(text, file);
  GridTable table;
  toml.read(table);
  Grid grid{table.machine, {}};
  for (const PartTable& part : table.parts) {
    PlanTable whole;
    static_cast<PartTable&>(whole) = part;
    Plan plan = Reader(whole, subject).read(fmt::format("part {}", grid.parts.size() + 1));
    check_one_machine(part.place, plan);
    if (!grid.machine.empty()) plan.fixed.emplace_back("machine", grid.machine);
    grid.parts.push_back(std::move(plan));
  }
  if (grid.parts.empty()) table.place.refuse("part", "none is given; allowed: [[part]]");
  return grid;
}

Grid read_grid(const std::string& file, Subject& subject) {
  return parse_grid(report::read_text(file, kLargestFile), file, subject);
}

}  // namespace cm384::sweeps
