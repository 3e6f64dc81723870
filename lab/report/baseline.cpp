#include "lab/report/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/parsers.hpp>
#include <filesystem>

#include "base/text/error.h"
#include "base/text/quantity.h"
#include "base/text/toml_file.h"
#include "base/text/units.h"

namespace cm384::report {
namespace {

constexpr std::size_t kLargestBaseline = std::size_t{1} << 20;

bool is_file_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

// "90s", "10min", "2h": of the host, in seconds.
double wall_limit_of(const hw::TomlFile& file, const toml::table& table) {
  const std::string text = file.text(table, "wall_limit");
  const auto refuse = [&] {
    file.refuse(*table.get("wall_limit"), "wall_limit",
                fmt::format("'{}'; allowed: a time of 1s to 168h, in s, min or h", text));
  };
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string unit = end == std::string::npos ? "" : text.substr(end);
  const double factor = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  double seconds = 0;
  try {
    seconds = factor * hw::parse_real(std::string_view(text).substr(0, end));
  } catch (const InputError&) {
    refuse();
  }
  if (!(seconds >= 1 && seconds <= 168 * 3600)) refuse();
  return seconds;
}

std::string time_limit_of(const hw::TomlFile& file, const toml::table& table) {
  const std::string text = file.text(table, "time_limit");
  try {
    if (hw::parse_time(text) >= 1_us) return text;
  } catch (const InputError&) {
  }
  file.refuse(*table.get("time_limit"), "time_limit",
              fmt::format("'{}'; allowed: a simulated time of 1us or more", text));
}

std::vector<std::string> patterns_of(const hw::TomlFile& file, const toml::table& table) {
  const toml::node& node = *table.get("may_differ");
  std::vector<std::string> patterns;
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& entry : *list) {
      const auto text = entry.value_exact<std::string>();
      if (!text || text->empty())
        file.refuse(entry, "may_differ", "has an entry that is no name of a condition");
      patterns.push_back(*text);
    }
    return patterns;
  }
  file.refuse(node, "may_differ", "is no list; allowed: names of conditions, such as [\"inputs*\"]");
}

// What a table says of limits, in the place of `others`.
BaselineRun with_limits(const hw::TomlFile& file, const toml::table& table, const BaselineRun& others) {
  BaselineRun run = others;
  if (table.contains("wall_limit")) run.wall_limit_s = wall_limit_of(file, table);
  if (table.contains("time_limit")) run.time_limit = time_limit_of(file, table);
  if (table.contains("may_differ")) run.may_differ = patterns_of(file, table);
  return run;
}

bool improved_passes(const hw::TomlFile& file) {
  if (!file.root().contains("improved")) return true;
  const std::string word = file.text(file.root(), "improved");
  if (word != "pass" && word != "fail")
    file.refuse(*file.root().get("improved"), "improved", fmt::format("'{}'; allowed: pass, fail", word));
  return word == "pass";
}

DriftRule drift_of(const hw::TomlFile& file) {
  DriftRule rule;
  rule.share = file.real(file.root(), "drift", rule.share);
  const double nights = file.real(file.root(), "drift_nights", rule.nights);
  if (!(nights >= 2 && nights <= 1000) || nights != static_cast<int>(nights))
    file.refuse(*file.root().get("drift_nights"), "drift_nights", "allowed: a whole number from 2 to 1000");
  rule.nights = static_cast<int>(nights);
  return rule;
}

}  // namespace

Baseline parse_baseline(std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  file.check_keys(file.root(), {"relative", "absolute", "field", "run", "wall_limit", "time_limit",
                                "may_differ", "improved", "drift", "drift_nights"});
  Baseline baseline;
  baseline.tolerances = tolerances_of(file);
  baseline.improved_passes = improved_passes(file);
  baseline.drift = drift_of(file);
  const BaselineRun limits = with_limits(file, file.root(), {});
  for (const toml::table* table : file.tables("run")) {
    file.check_keys(*table, {"name", "command", "relative", "absolute", "field", "wall_limit", "time_limit",
                             "may_differ"});
    BaselineRun run = with_limits(file, *table, limits);
    run.tolerances = tolerances_of(file, *table, baseline.tolerances);
    run.name = file.text(*table, "name");
    if (!is_file_name(run.name))
      file.refuse(*table, "name", fmt::format("'{}'; allowed: letters, digits, '-', '_'", run.name));
    if (std::ranges::find(baseline.runs, run.name, &BaselineRun::name) != baseline.runs.end())
      file.refuse(*table, "name", fmt::format("'{}' stands twice", run.name));
    const std::string command = file.text(*table, "command");
    try {
      run.arguments = boost::program_options::split_unix(command);
    } catch (const std::exception&) {
      file.refuse(*table, "command", fmt::format("'{}' has an escape that does not end", command));
    }
    if (run.arguments.empty()) file.refuse(*table, "command", "names no study");
    baseline.runs.push_back(std::move(run));
  }
  if (baseline.runs.empty()) file.refuse(file.root(), "run", "names no run; allowed: [[run]]");
  return baseline;
}

Baseline read_baseline(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "baseline.toml").string();
  return parse_baseline(read_text(path, kLargestBaseline), path);
}

std::string golden_text(const Json& document) {
  Json kept = document;
  kept.erase("invocation");
  kept.erase("simulator");
  return kept.dump(1) + "\n";
}

}  // namespace cm384::report
