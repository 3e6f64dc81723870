#include "lab/sweeps/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/quantity.h"
#include "base/text/toml_file.h"
#include "lab/report/result_file.h"

namespace cm384::sweeps {
namespace {

using hw::TomlFile;

constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr int kMostValues = 10'000;

// Reads the plan that a file or one of its tables is; what a method refuses names file, line and key.
class Reader {
 public:
  Reader(const TomlFile& file, const toml::table& root, Subject& subject)
      : file_(file), root_(root), subject_(subject) {}

  Plan read(const std::string& name, const std::vector<std::string>& keys) {
    const toml::table& root = root_;
    plan_.name = name;
    file_.check_keys(root, keys);
    plan_.study = file_.text(root, "study");
    guarded(root, "study", [&] { subject_.choose(plan_.study); });
    if (const toml::node* options = root.get("options")) take_fixed(*options);
    for (const toml::table* axis : file_.tables(root, "axis")) take_axis(*axis);
    check_repeats();
    take_design(root);
    take_conditions(root);
    for (const std::string& metric : texts(root, "metrics")) {
      check_metric(*root.get("metrics"), "metrics", metric);
      plan_.metrics.push_back(metric);
    }
    if (root.get("ranks_per_point") != nullptr)
      plan_.ranks_per_point = whole(root, "ranks_per_point", 1, 1024);
    take_goals(root);
    if (plan_.axes.empty()) file_.refuse(root, "axis", "none is given; allowed: [[axis]]");
    return std::move(plan_);
  }

 private:
  // Runs `take`; what it refuses gets file, line and key in front.
  template <class Take>
  void guarded(const toml::node& node, std::string_view key, Take&& take) const {
    try {
      take();
    } catch (const InputError& error) {
      file_.refuse(node, key, error.what());
    }
  }

  // A scalar as the command line takes it; a list with commas between.
  std::string value_text(const toml::node& node, std::string_view key) const {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
    if (const auto* real = node.as_floating_point()) return hw::format(real->get());
    if (const auto* list = node.as_array()) {
      std::string joined;
      for (const toml::node& element : *list) {
        if (!joined.empty()) joined += ',';
        joined += value_text(element, key);
      }
      return joined;
    }
    file_.refuse(node, key, "allowed: a text, a number, true, false, or a list of such");
  }

  std::vector<std::string> texts(const toml::table& table, std::string_view key) const {
    std::vector<std::string> list;
    const toml::node* node = table.get(key);
    if (node == nullptr) return list;
    if (!node->is_array()) file_.refuse(*node, key, "allowed: a list of texts");
    for (const toml::node& element : *node->as_array()) {
      if (!element.is_string()) file_.refuse(element, key, "allowed: a list of texts");
      list.push_back(element.as_string()->get());
    }
    return list;
  }

  // Tables within are keys with dots: ub.link.bandwidth = "28GB/s".
  void take_fixed(const toml::node& node, const std::string& prefix = "") {
    if (!node.is_table()) file_.refuse(node, "options", "allowed: [options]");
    for (const auto& [name, value] : *node.as_table()) {
      const std::string key = prefix + std::string(name.str());
      if (value.is_table()) {
        take_fixed(value, key + ".");
        continue;
      }
      guarded(value, key, [&] { subject_.scale(key); });
      plan_.fixed.emplace_back(key, value_text(value, key));
    }
  }

  double number(const toml::table& table, std::string_view key, const Scale& scale) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) file_.refuse(table, key, "is missing");
    std::optional<double> number;
    guarded(*node, key, [&] { number = scale.number(value_text(*node, key)); });
    if (!number) file_.refuse(*node, key, "allowed: a number or a quantity");
    return *number;
  }

  int whole(const toml::table& table, std::string_view key, int low, int high) const {
    const toml::node* node = table.get(key);
    const auto value = node != nullptr ? node->value_exact<std::int64_t>() : std::nullopt;
    if (!value || *value < low || *value > high)
      file_.refuse(node != nullptr ? *node : static_cast<const toml::node&>(table), key,
                   fmt::format("allowed: a whole number from {} to {}", low, high));
    return static_cast<int>(*value);
  }

  std::string one_of(const toml::table& table, std::string_view key, std::vector<std::string> allowed) const {
    if (table.get(key) == nullptr) return allowed.front();
    const std::string text = file_.text(table, key);
    if (std::ranges::find(allowed, text) == allowed.end())
      file_.refuse(*table.get(key), key, fmt::format("'{}'; allowed: {}", text, fmt::join(allowed, ", ")));
    return text;
  }

  void take_axis(const toml::table& table) {
    file_.check_keys(table, {"key", "values", "from", "to", "count", "scale", "zip"});
    const std::string key = file_.text(table, "key");
    if (plan_.axis(key) != nullptr) file_.refuse(*table.get("key"), key, "is an axis already");
    const auto is_key = [&](const Setting& setting) { return setting.first == key; };
    if (std::ranges::any_of(plan_.fixed, is_key))
      file_.refuse(*table.get("key"), key, "has a fixed value in [options] as well");
    std::optional<Scale> scale;
    guarded(*table.get("key"), "key", [&] { scale = subject_.scale(key); });
    Axis axis{key, *scale, {}, "", std::nullopt, false};
    if (table.get("zip") != nullptr) axis.zip = file_.text(table, "zip");
    const bool listed = table.get("values") != nullptr;
    if (listed == (table.get("from") != nullptr))
      file_.refuse(table, key, "allowed: either `values`, or `from`, `to` and `count`");
    if (listed) {
      for (const char* other : {"to", "count", "scale"}) {
        if (const toml::node* node = table.get(other))
          file_.refuse(*node, other, "has no effect beside `values`");
      }
      take_values(table, axis);
    } else {
      take_range(table, axis);
    }
    check_zip(table, axis);
    plan_.axes.push_back(std::move(axis));
  }

  void take_values(const toml::table& table, Axis& axis) const {
    const toml::node& node = *table.get("values");
    if (!node.is_array() || node.as_array()->empty())
      file_.refuse(node, "values", "allowed: a list of values");
    for (const toml::node& element : *node.as_array()) {
      std::string text = value_text(element, "values");
      // Of axes that advance together each point has another one's value with it.
      if (axis.zip.empty() && std::ranges::find(axis.values, text) != axis.values.end())
        file_.refuse(element, axis.key, fmt::format("{} stands twice", text));
      axis.values.push_back(std::move(text));
    }
  }

  void take_range(const toml::table& table, Axis& axis) const {
    if (!axis.scale.numeric()) file_.refuse(table, axis.key, "has names, not numbers; allowed: `values`");
    const double from = number(table, "from", axis.scale), to = number(table, "to", axis.scale);
    axis.logarithmic = one_of(table, "scale", {"linear", "logarithmic"}) == "logarithmic";
    if (!(from < to)) file_.refuse(table, axis.key, "`from` is not below `to`");
    if (axis.logarithmic && from <= 0) file_.refuse(table, axis.key, "a logarithmic range begins above 0");
    axis.range = {from, to};
    const int count = table.get("count") != nullptr ? whole(table, "count", 2, kMostValues) : 2;
    for (int i = 0; i < count; ++i) {
      const double place = static_cast<double>(i) / (count - 1);
      const double value = axis.logarithmic ? from * std::pow(to / from, place) : from + (to - from) * place;
      std::string text = axis.scale.text(i == count - 1 ? to : value);
      if (axis.values.empty() || axis.values.back() != text) axis.values.push_back(std::move(text));
    }
  }

  void check_zip(const toml::table& table, const Axis& axis) const {
    if (axis.zip.empty()) return;
    for (const Axis& other : plan_.axes) {
      if (other.zip == axis.zip && other.values.size() != axis.values.size())
        file_.refuse(table, axis.key,
                     fmt::format("has {} values, and {} that it advances with has {}", axis.values.size(),
                                 other.key, other.values.size()));
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
          file_.refuse(root_, "axis", fmt::format("{}: {} stands twice", zip, fmt::join(values, ", ")));
      }
    }
  }

  void take_design(const toml::table& root) {
    const bool cube = one_of(root, "design", {"grid", "latin-hypercube"}) == "latin-hypercube";
    if (cube) {
      plan_.design = Design::latin_hypercube;
      plan_.points = whole(root, "points", 1, 1'000'000);
      if (root.get("seed") != nullptr) plan_.seed = whole(root, "seed", 0, std::numeric_limits<int>::max());
      return;
    }
    for (const char* key : {"points", "seed"}) {
      if (const toml::node* node = root.get(key))
        file_.refuse(*node, key, "has no effect with a grid; allowed with design = \"latin-hypercube\"");
    }
  }

  // A number of the study's rows, or a cost.
  void check_metric(const toml::node& node, std::string_view key, const std::string& metric) const {
    if (std::ranges::find(plan_.costs, metric, &Cost::name) != plan_.costs.end()) return;
    if (studies::find_field(subject_.fields(), metric) != nullptr) return;
    std::vector<std::string> names;
    for (const studies::Field& field : subject_.fields()) {
      names.emplace_back(field.name);
      for (const studies::Field& part : field.parts)
        names.push_back(fmt::format("{}.{}", field.name, part.name));
    }
    file_.refuse(node, key,
                 fmt::format("'{}': no such field of a row of `run {}`{}", metric, plan_.study,
                             hw::suggestion(metric, names)));
  }

  void check_names(const toml::node& node, std::string_view key, const Expression& expression) const {
    for (const std::string& name : expression.names()) guarded(node, key, [&] { subject_.scale(name); });
  }

  // A column of its own: not the name of an axis, another cost, or a field of the rows.
  void check_cost_name(const toml::table& table, const std::string& name) const {
    const toml::node& node = *table.get("name");
    const auto taken = [&](std::string_view by) {
      file_.refuse(node, "name",
                   fmt::format("'{}' is the name of {} already; allowed: another one", name, by));
    };
    if (plan_.axis(name) != nullptr) taken("an axis");
    if (std::ranges::find(plan_.costs, name, &Cost::name) != plan_.costs.end()) taken("a cost");
    if (studies::find_field(subject_.fields(), name) != nullptr) taken("a field of the rows");
    for (const char* own : {"failed", "pareto"})
      if (name == own) taken("a column of sweeps");
  }

  void take_conditions(const toml::table& root) {
    for (const std::string& text : texts(root, "where")) {
      guarded(*root.get("where"), "where", [&] { plan_.conditions.emplace_back(text); });
      check_names(*root.get("where"), "where", plan_.conditions.back());
    }
    for (const toml::table* table : file_.tables(root, "cost")) {
      file_.check_keys(*table, {"name", "formula"});
      const std::string name = file_.text(*table, "name");
      const std::string formula = file_.text(*table, "formula");
      check_cost_name(*table, name);
      guarded(*table, "formula", [&] { plan_.costs.push_back({name, Expression(formula)}); });
      check_names(*table, "formula", plan_.costs.back().formula);
    }
  }

  void take_goals(const toml::table& root) {
    for (const toml::table* table : file_.tables(root, "pareto")) {
      file_.check_keys(*table, {"metric", "best"});
      check_metric(*table, "metric", file_.text(*table, "metric"));
      plan_.pareto.push_back(
          {file_.text(*table, "metric"), one_of(*table, "best", {"smallest", "largest"}) == "smallest"});
    }
    if (plan_.pareto.size() == 1)
      file_.refuse(*root.get("pareto"), "pareto", "one goal has no trade-off; allowed: two or more");
    if (const toml::node* find = root.get("find")) {
      if (!find->is_table()) file_.refuse(*find, "find", "allowed: [find]");
      take_find(*find->as_table());
    }
  }

  void take_find(const toml::table& table) {
    file_.check_keys(table, {"axis", "metric", "at_most", "at_least", "best", "resolution"});
    Find find;
    find.axis = file_.text(table, "axis");
    const Axis* axis = plan_.axis(find.axis);
    if (axis == nullptr)
      file_.refuse(table, "axis", fmt::format("'{}' is no [[axis]] of this file", find.axis));
    if (!axis->range && axis->values.size() < 2) file_.refuse(table, "axis", "has one value");
    if (!axis->zip.empty()) file_.refuse(table, "axis", "advances with others; allowed: one on its own");
    if (plan_.design != Design::grid) file_.refuse(table, "find", "allowed with design = \"grid\"");
    find.metric = file_.text(table, "metric");
    check_metric(table, "metric", find.metric);
    find.at_most = table.get("at_most") != nullptr;
    if (find.at_most == (table.get("at_least") != nullptr))
      file_.refuse(table, "find", "allowed: either `at_most` or `at_least`");
    const toml::node& target = *table.get(find.at_most ? "at_most" : "at_least");
    if (!target.is_number()) file_.refuse(target, "find", "allowed: a number, in the metric's unit");
    find.target = *target.value<double>();
    find.smallest = one_of(table, "best", {"smallest", "largest"}) == "smallest";
    find.resolution = file_.real(table, "resolution", find.resolution);
    if (find.resolution <= 0 || find.resolution >= 1)
      file_.refuse(*table.get("resolution"), "resolution", "allowed: between 0 and 1, such as 0.01");
    plan_.find = find;
  }

  const TomlFile& file_;
  const toml::table& root_;
  Subject& subject_;
  Plan plan_;
};

// All parts of a grid are of one machine, which the grid names.
void check_one_machine(const TomlFile& file, const toml::table& part, const Plan& plan) {
  const auto check = [&](const std::string& key) {
    if (key == "machine" || key.find('.') != std::string::npos)
      file.refuse(part, key, "is of the machine; allowed: `machine` of the whole grid, a preset or a file");
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
  return Reader(toml, toml.root(), subject)
      .read(std::filesystem::path(file).stem().string(),
            {"study", "metrics", "ranks_per_point", "options", "axis", "design", "points", "seed", "where",
             "cost", "find", "pareto"});
}

Plan read_plan(const std::string& file, Subject& subject) {
  return parse_plan(report::read_text(file, kLargestFile), file, subject);
}

Grid parse_grid(std::string_view text, const std::string& file, Subject& subject) {
  const TomlFile toml(text, file);
  toml.check_keys(toml.root(), {"machine", "part"});
  Grid grid;
  if (toml.root().get("machine") != nullptr) grid.machine = toml.text(toml.root(), "machine");
  for (const toml::table* part : toml.tables("part")) {
    Plan plan = Reader(toml, *part, subject)
                    .read(fmt::format("part {}", grid.parts.size() + 1),
                          {"study", "metrics", "options", "axis", "where"});
    check_one_machine(toml, *part, plan);
    if (!grid.machine.empty()) plan.fixed.emplace_back("machine", grid.machine);
    grid.parts.push_back(std::move(plan));
  }
  if (grid.parts.empty()) toml.refuse(toml.root(), "part", "none is given; allowed: [[part]]");
  return grid;
}

Grid read_grid(const std::string& file, Subject& subject) {
  return parse_grid(report::read_text(file, kLargestFile), file, subject);
}

}  // namespace cm384::sweeps
