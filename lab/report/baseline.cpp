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
double wall_limit_of(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string_view unit = end == std::string_view::npos ? "" : text.substr(end);
  const double factor = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  double seconds = 0;
  try {
    seconds = factor * hw::parse_real(text.substr(0, end));
  } catch (const InputError&) {
  }
  if (!(seconds >= 1 && seconds <= 168 * 3600))
    throw InputError(fmt::format("'{}'; allowed: a time of 1s to 168h, in s, min or h", text));
  return seconds;
}

void check_wall_limit(std::string_view text) {
  wall_limit_of(text);
}

void check_time_limit(std::string_view text) {
  try {
    if (hw::parse_time(text) >= 1_us) return;
  } catch (const InputError&) {
  }
  throw InputError(fmt::format("'{}'; allowed: a simulated time of 1us or more", text));
}

void check_run_name(std::string_view text) {
  if (!is_file_name(text)) throw InputError(fmt::format("'{}'; allowed: letters, digits, '-', '_'", text));
}

// Tolerances and limits: of the file, or of one run.
struct LimitsTable : ToleranceTable {
  std::string wall_limit, time_limit;
  hw::Texts may_differ;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Form;
    ToleranceTable::describe(self, visit);
    visit("wall_limit", self.wall_limit, Form{"TIME", check_wall_limit}, "of a run on the host");
    visit("time_limit", self.time_limit, Form{"TIME", check_time_limit}, "of simulated time");
    visit("may_differ", self.may_differ, Form{"names of conditions, such as \"inputs*\""},
          "that may differ from those of the golden result");
  }

  // What the table says, in the place of `others`.
  BaselineRun run(const BaselineRun& others) const {
    BaselineRun run = others;
    if (!wall_limit.empty()) run.wall_limit_s = wall_limit_of(wall_limit);
    if (!time_limit.empty()) run.time_limit = time_limit;
    if (place.has("may_differ")) run.may_differ = may_differ;
    return run;
  }
};

struct RunTable : LimitsTable {
  std::string name, command;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    LimitsTable::describe(self, visit);
    visit("name", self.name, hw::Form{"letters, digits, '-', '_'", check_run_name}, "its result is NAME.json",
          hw::Required{});
    visit("command", self.command, "what follows `cm384 run`", hw::Required{});
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> words;
    try {
      words = boost::program_options::split_unix(command);
    } catch (const std::exception&) {
      place.refuse("command", fmt::format("'{}' has an escape that does not end", command));
    }
    if (words.empty()) place.refuse("command", "names no study");
    return words;
  }
};

struct BaselineTable : LimitsTable {
  std::vector<RunTable> runs;
  std::string improved = "pass";
  DriftRule drift;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    LimitsTable::describe(self, visit);
    visit("run", self.runs);
    visit("improved", self.improved, hw::OneOf{{"pass", "fail"}}, "what got better past its tolerance does");
    visit("drift", self.drift.share, Range{0.0, hw::kNoLimit},
          "what moves so far has drifted; 0: not looked for");
    visit("drift_nights", self.drift.nights, Range{2, 1000}, "that it moves over");
  }
};

}  // namespace

Baseline parse_baseline(std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  BaselineTable table;
  file.read(table);
  Baseline baseline;
  baseline.tolerances = table.tolerances({});
  baseline.improved_passes = table.improved == "pass";
  baseline.drift = table.drift;
  const BaselineRun limits = table.run({});
  for (const RunTable& given : table.runs) {
    BaselineRun run = given.run(limits);
    run.tolerances = given.tolerances(baseline.tolerances);
    run.name = given.name;
    if (std::ranges::find(baseline.runs, run.name, &BaselineRun::name) != baseline.runs.end())
      given.place.refuse("name", fmt::format("'{}' is listed twice", run.name));
    run.arguments = given.arguments();
    baseline.runs.push_back(std::move(run));
  }
  if (baseline.runs.empty()) table.place.refuse("run", "names no run; allowed: [[run]]");
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
