#include "report/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/parsers.hpp>
#include <filesystem>

#include "hw/toml_file.h"

namespace cm384::report {
namespace {

constexpr std::size_t kLargestBaseline = std::size_t{1} << 20;

bool is_file_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

Baseline parse_baseline(std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  file.check_keys(file.root(), {"relative", "absolute", "field", "run"});
  Baseline baseline;
  baseline.tolerances = take_tolerances(file);
  for (const toml::table* table : file.tables("run")) {
    file.check_keys(*table, {"name", "command"});
    BaselineRun run;
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
