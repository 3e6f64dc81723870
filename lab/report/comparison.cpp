#include "lab/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "base/text/error.h"
#include "lab/report/row_conditions.h"
#include "workloads/frame/middle.h"
#include "workloads/frame/result_json.h"

namespace cm384::report {
namespace {

using Fields = std::vector<std::pair<std::string, Json>>;

// Whether elements of a list can go by their names.
bool is_named(const Json& list) {
  std::set<std::string> names;
  return std::ranges::all_of(list, [&](const Json& element) {
    return element.is_object() && element.contains("name") && element["name"].is_string() &&
           names.insert(element["name"].get<std::string>()).second;
  });
}

// Every leaf is one field: "latency_us.mean", "phases.send.mean_us", "interval[0]".
void collect_leaves(const std::string& name, const Json& value, Fields& leaves) {
  if (!value.is_structured() || (value.is_array() && value.empty())) {
    leaves.emplace_back(name, value);
    return;
  }
  const bool named = value.is_array() && is_named(value);
  for (const auto& [key, entry] : value.items()) {
    if (named) {
      Json rest = entry;
      rest.erase("name");
      collect_leaves(name + '.' + entry["name"].get<std::string>(), rest, leaves);
    } else {
      const std::string inner = value.is_array() ? fmt::format("{}[{}]", name, key)
                                : name.empty()   ? key
                                                 : name + '.' + key;
      collect_leaves(inner, entry, leaves);
    }
  }
}

Fields leaves_of(const Json& object) {
  Fields leaves;
  if (!object.empty()) collect_leaves("", object, leaves);
  return leaves;
}

struct Row {
  std::string key;
  Fields fields;
};

std::vector<Row> rows_of(const Json& document, const Conditions& declared) {
  std::vector<Row> rows;
  std::vector<std::string> keys = keys_of(document, declared);
  for (const Json& row : document["rows"]) {
    Json measured = row;
    const Json conditions = conditions_of(row, declared);
    for (const auto& [name, value] : conditions.items()) measured.erase(name);
    rows.push_back({std::move(keys[rows.size()]), leaves_of(measured)});
  }
  return rows;
}

// Lines of sources move with what stands above them; a kernel is identified by its code, not by them.
std::string without_lines(const std::string& text) {
  static const std::regex kLine("(\\.[a-z]+):[0-9]+");
  return std::regex_replace(text, kLine, "$1");
}

// Notes are words: where numbers may move at all, those in them are not held to anything, as rows have what
// is measured.
bool says_the_same(const std::string& a, const std::string& b, const Tolerance& tolerance) {
  static const std::regex kNumber("[0-9]+(\\.[0-9]+)?");
  return (tolerance.relative > 0 || tolerance.absolute > 0) &&
         std::regex_replace(a, kNumber, "#") == std::regex_replace(b, kNumber, "#");
}

// Numbers by the tolerance, everything else must be equal.
void compare_field(const std::string& name, const Json& before, const Json& after,
                   const Tolerances& tolerances, std::vector<Change>& changes) {
  if (before == after) return;
  const Tolerance& tolerance = tolerances.of(name);
  bool same_words = false;
  if (before.is_string() && after.is_string()) {
    const std::string a = without_lines(before.get<std::string>()),
                      b = without_lines(after.get<std::string>());
    if (a == b) return;
    same_words = name.starts_with("notes") && says_the_same(a, b, tolerance);
  }
  Change change{name, before, after, {}, tolerance.text(), tolerance.ignore};
  if (before.is_number() && after.is_number()) {
    const double a = before.get<double>(), b = after.get<double>();
    if (a != 0) change.relative = (b - a) / (a < 0 ? -a : a);
    change.within = tolerance.allows(a, b);
  } else if (same_words) {
    change.within = true;
  } else if (!tolerance.ignore) {
    change.allowed = "equal";
  }
  changes.push_back(std::move(change));
}

// In the order of `before`, then what `after` has alone. Gives how many fields there are.
std::size_t compare_fields(const Fields& before, const Fields& after, const Tolerances& tolerances,
                           std::vector<Change>& changes) {
  std::map<std::string_view, const Json*> there;
  for (const auto& [name, value] : after) there.emplace(name, &value);
  std::size_t count = 0;
  const Json none;
  for (const auto& [name, value] : before) {
    const auto found = there.find(name);
    compare_field(name, value, found == there.end() ? none : *found->second, tolerances, changes);
    if (found != there.end()) there.erase(found);
    ++count;
  }
  for (const auto& [name, value] : after) {
    if (!there.contains(name)) continue;
    compare_field(name, none, value, tolerances, changes);
    ++count;
  }
  return count;
}

// The values of the members of an ensemble, by row; null: it was run on none.
const Json* member_values(const Json& document) {
  const auto ensemble = document.find("ensemble");
  if (ensemble == document.end() || !ensemble->is_object() || !ensemble->contains("values")) return nullptr;
  const Json& values = (*ensemble)["values"];
  return values.is_array() && values.size() == document["rows"].size() ? &values : nullptr;
}

bool same_members(const Json& before, const Json& after) {
  const auto names = [](const Json& document) { return document["ensemble"].value("names", Json()); };
  return names(before).is_array() && names(before) == names(after);
}

bool is_significant(const Json& before, const Json& after) {
  std::size_t up = 0, down = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].is_number() || !after[i].is_number()) continue;
    const double by = after[i].get<double>() - before[i].get<double>();
    up += by > 0 ? 1 : 0;
    down += by < 0 ? 1 : 0;
  }
  return std::max(up, down) * 10 >= before.size() * 9;
}

std::optional<std::pair<double, double>> interval_of_change(const Json& before, const Json& after) {
  std::vector<double> relative;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].is_number() || !after[i].is_number()) continue;
    const double from = before[i].get<double>();
    if (from == 0) return {};
    relative.push_back((after[i].get<double>() - from) / std::abs(from));
  }
  if (relative.empty()) return {};
  const auto [low, high] = studies::middle_of(std::move(relative));
  return std::pair{low, high};
}

// `before` and `after`: the members' values of one row, by field.
void add_significance(std::vector<Change>& changes, const Json& before, const Json& after) {
  for (Change& change : changes) {
    if (!before.contains(change.field) || !after.contains(change.field)) continue;
    const Json &first = before[change.field], &second = after[change.field];
    if (first.is_array() && second.is_array() && !first.empty() && first.size() == second.size()) {
      change.significant = is_significant(first, second);
      change.interval = interval_of_change(first, second);
    }
  }
}

bool has_inputs(const Json& document) {
  return document.contains("inputs") && document["inputs"].is_array();
}

// What identifies an input file: of a kernel where both results know it the code it loads, of any other file
// its bytes.
Json mark_of_input(const Json& document, const Json& other, std::size_t number) {
  const Json& input = document["inputs"][number];
  if (!input.is_object()) return nullptr;
  const bool code = input.contains("code") && has_inputs(other) && number < other["inputs"].size() &&
                    other["inputs"][number].is_object() && other["inputs"][number].contains("code");
  return input.value(code ? "code" : "hash", Json());
}

// What a run was given. Of its input files only what is in them counts.
Fields conditions_of_run(const Json& document, const Json& other) {
  Json given = Json::object();
  for (const char* name : {"machine", "seed", "parameters", "machine_overrides"})
    if (document.contains(name)) given[name] = document[name];
  Fields fields = leaves_of(given);
  if (!has_inputs(document)) return fields;
  for (std::size_t number = 0; number < document["inputs"].size(); ++number) {
    Json mark = mark_of_input(document, other, number);
    if (!mark.is_null()) fields.emplace_back(fmt::format("inputs[{}]", number), std::move(mark));
  }
  return fields;
}

Fields facts_of_run(const Json& document) {
  Json facts = Json::object();
  for (const char* name : {"complete", "notes"})
    if (document.contains(name)) facts[name] = document[name];
  return leaves_of(facts);
}

bool all_within(const std::vector<Change>& changes) {
  return std::ranges::all_of(changes, &Change::within);
}

studies::Value cell_of(const Json& value) {
  if (value.is_structured()) return plain_text(value);
  return studies::value_of(value);
}

void add_row(studies::Rows& rows, const std::string& row, const Change& change, bool condition) {
  using studies::Value;
  rows.push_back(
      {{"row", row},
       {"field", change.field},
       {"before", cell_of(change.before)},
       {"after", cell_of(change.after)},
       {"change", change.relative ? Value(fmt::format("{:+.3g} %", *change.relative * 100)) : Value()},
       {"allowed", condition ? Value() : Value(change.allowed)},
       {"status", condition       ? "condition"
                  : change.within ? "within"
                                  : "past"}});
  if (!change.significant) return;
  rows.back().set("significant", *change.significant);
  if (change.interval)
    rows.back().set("interval", fmt::format("{:+.3g} to {:+.3g} %", change.interval->first * 100,
                                            change.interval->second * 100));
}

}  // namespace

void for_each_measure(
    const Json& document,
    const std::function<void(const std::string& row, const std::string& field, const Json& value)>& visit) {
  for (const Row& row : rows_of(document, declared_conditions(document))) {
    for (const auto& [name, value] : row.fields) visit(row.key, name, value);
  }
}

bool RowComparison::within() const {
  return in_before && in_after && all_within(changes);
}

std::size_t ResultComparison::fields() const {
  std::size_t sum = 0;
  for (const RowComparison& row : rows) sum += row.fields;
  return sum;
}

std::size_t ResultComparison::moved() const {
  std::size_t sum = whole.size();
  for (const RowComparison& row : rows) sum += row.changes.size();
  return sum;
}

bool ResultComparison::within() const {
  return all_within(whole) && std::ranges::all_of(rows, &RowComparison::within);
}

bool ResultComparison::same_conditions() const {
  return all_within(conditions);
}

ResultComparison compare_results(const Json& before, const Json& after, const Tolerances& tolerances) {
  if (before["study"] != after["study"])
    throw InputError(fmt::format("a result of `{}` cannot be compared with one of `{}`",
                                 plain_text(before["study"]), plain_text(after["study"])));
  ResultComparison comparison;
  comparison.study = before["study"].get<std::string>();
  compare_fields(conditions_of_run(before, after), conditions_of_run(after, before), {},
                 comparison.conditions);
  for (Change& change : comparison.conditions) change.within = change.before.is_null();
  compare_fields(facts_of_run(before), facts_of_run(after), tolerances, comparison.whole);

  const Conditions declared = shared_conditions(before, after);
  const std::vector<Row> first = rows_of(before, declared), second = rows_of(after, declared);
  const Json *members = member_values(before), *others = member_values(after);
  const bool paired = members != nullptr && others != nullptr && same_members(before, after);
  std::map<std::string_view, const Row*> there;
  for (const Row& row : second) there.emplace(row.key, &row);
  for (const Row& row : first) {
    RowComparison& made = comparison.rows.emplace_back();
    made.key = row.key;
    const auto found = there.find(row.key);
    made.in_after = found != there.end();
    if (!made.in_after) continue;
    made.fields = compare_fields(row.fields, found->second->fields, tolerances, made.changes);
    if (paired)
      add_significance(made.changes, (*members)[static_cast<std::size_t>(&row - first.data())],
                       (*others)[static_cast<std::size_t>(found->second - second.data())]);
    there.erase(found);
  }
  for (const Row& row : second) {
    if (there.contains(row.key)) comparison.rows.push_back({row.key, false, true, 0, {}});
  }
  return comparison;
}

studies::Rows change_rows(const ResultComparison& comparison) {
  studies::Rows rows;
  for (const Change& change : comparison.conditions) add_row(rows, "", change, true);
  for (const Change& change : comparison.whole) add_row(rows, "", change, false);
  for (const RowComparison& row : comparison.rows) {
    if (!row.in_before || !row.in_after)
      rows.push_back({{"row", row.key},
                      {"field", "(row)"},
                      {"before", row.in_before ? "there" : "missing"},
                      {"after", row.in_after ? "there" : "missing"},
                      {"change", {}},
                      {"allowed", "equal"},
                      {"status", "past"}});
    for (const Change& change : row.changes) add_row(rows, row.key, change, false);
  }
  // A column, if any of them has it.
  for (const char* name : {"significant", "interval"}) {
    if (std::ranges::none_of(rows, [name](const studies::Row& row) { return row.contains(name); })) continue;
    for (studies::Row& row : rows) row.set(name, studies::Value(row[name]));
  }
  return rows;
}

std::string summary_line(const ResultComparison& comparison) {
  std::size_t past = 0, lonely = 0;
  const auto count = [&](const std::vector<Change>& changes) {
    past += static_cast<std::size_t>(std::ranges::count(changes, false, &Change::within));
  };
  count(comparison.whole);
  for (const RowComparison& row : comparison.rows) {
    count(row.changes);
    lonely += row.in_before && row.in_after ? 0 : 1;
  }
  std::string line = fmt::format("{}: {} rows, {} fields compared: ", comparison.study,
                                 comparison.rows.size(), comparison.fields());
  line += comparison.moved() == 0 ? "nothing moved"
                                  : fmt::format("{} moved, {} past tolerance", comparison.moved(), past);
  if (lonely > 0) line += fmt::format("; {} rows are in one result only", lonely);
  if (!comparison.conditions.empty())
    line += fmt::format("; {} conditions differ", comparison.conditions.size());
  return line;
}

}  // namespace cm384::report
