#include "lab/report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

namespace cm384::report {
namespace {

using boost::property_tree::ptree;

std::string line_of(const Change& change) {
  const auto text = [](const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  std::string line = fmt::format("{}: {} -> {}", change.field, text(change.before), text(change.after));
  if (change.relative) line += fmt::format(" ({:+.3g} %)", *change.relative * 100);
  return line + fmt::format("; allowed: {}", change.allowed);
}

struct Property {
  std::string name, value;
};

struct Case {
  std::string name;
  std::vector<std::string> failures{};
  std::vector<Property> properties{};
};

void add_failures(const std::vector<Change>& changes, Case& into) {
  for (const Change& change : changes)
    if (!change.within) into.failures.push_back(line_of(change));
}

std::vector<Case> cases_of(const ResultComparison& comparison, bool same_conditions) {
  std::vector<Case> cases;
  if (same_conditions) add_failures(comparison.conditions, cases.emplace_back(Case{"conditions"}));
  add_failures(comparison.whole, cases.emplace_back(Case{"run"}));
  for (const RowComparison& row : comparison.rows) {
    Case& made = cases.emplace_back(Case{row.key.empty() ? "row" : row.key});
    if (!row.in_after) made.failures.emplace_back("the row is missing");
    if (!row.in_before) made.failures.emplace_back("the row is new");
    add_failures(row.changes, made);
  }
  return cases;
}

void set_attribute(ptree& element, const char* attribute, std::string_view text) {
  element.put(fmt::format("<xmlattr>.{}", attribute), xml_text(text));
}

void add_properties(ptree& element, const std::vector<Property>& properties) {
  if (properties.empty()) return;
  ptree& list = element.add_child("properties", ptree());
  for (const Property& property : properties) {
    ptree& one = list.add_child("property", ptree());
    set_attribute(one, "name", property.name);
    set_attribute(one, "value", property.value);
  }
}

ptree& add_case(ptree& suite, const std::string& classname, const Case& test) {
  ptree& one = suite.add_child("testcase", ptree());
  set_attribute(one, "classname", classname);
  set_attribute(one, "name", test.name);
  add_properties(one, test.properties);
  if (test.failures.empty()) return one;
  ptree& failure =
      one.add_child("failure", ptree(xml_text(fmt::format("{}", fmt::join(test.failures, "\n")))));
  set_attribute(failure, "message", fmt::format("{} past tolerance", test.failures.size()));
  return one;
}

std::size_t failed_of(const std::vector<Case>& cases) {
  std::size_t failed = 0;
  for (const Case& test : cases) failed += test.failures.empty() ? 0 : 1;
  return failed;
}

std::string text_of_document(const ptree& suites) {
  ptree document;
  document.add_child("testsuites", suites);
  std::ostringstream text;
  boost::property_tree::write_xml(text, document,
                                  boost::property_tree::xml_writer_settings<std::string>(' ', 1));
  return std::move(text).str();
}

// What a run is beside its rows: the verdict that a test case of its own shows.
bool is_error(Verdict verdict) {
  return verdict <= Verdict::refused || verdict == Verdict::not_run;
}

std::vector<Case> cases_of(const RunVerdict& run, const Baseline& baseline) {
  std::vector<Case> cases;
  // What is better, or was allowed to differ, has passed: the verdict's own case says so.
  if (run.comparison) cases = cases_of(*run.comparison, true);
  if (run.passes(baseline)) {
    for (Case& test : cases) test.failures.clear();
  }
  for (const MeasuredNumber& number :
       measured_numbers(run.document.is_null() ? Json{{"rows", run.rows}} : run.document)) {
    const std::string name = number.row.empty() ? "row" : number.row;
    auto test = std::ranges::find(cases, name, &Case::name);
    if (test == cases.end()) test = cases.insert(cases.end(), Case{name});
    test->properties.push_back({number.field, fmt::format("{}", number.value)});
  }
  return cases;
}

std::string onset_line(const Onset& onset) {
  std::string line = onset.field.empty() ? std::string("since") : onset.field + " since";
  line += fmt::format(" {} ({} nights)", onset.commit.empty() ? onset.date : onset.commit, onset.nights);
  if (!onset.subject.empty()) line += fmt::format(": {}", onset.subject);
  return line;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xc2 && first < 0xe0 ? 2
                               : first >> 4 == 0xe             ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    std::uint32_t code = length == 1 ? first : length == 0 ? 0 : first & (0x7fu >> length);
    bool good = length != 0 && at + length <= text.size();
    for (std::size_t i = 1; good && i < length; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      good = next >> 6 == 2;
      code = code << 6 | (next & 0x3fu);
    }
    // Longer than it need be, half of a pair, or none of XML's characters.
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    good = good && code >= kLeast[length] && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000) &&
           (code >= 0x20 || code == '\n' || code == '\t') && code != 0x7f && (code & 0xfffe) != 0xfffe;
    out += good ? text.substr(at, length) : std::string_view("?");
    at += good ? length : 1;
  }
  return out;
}

std::string to_junit(const std::vector<JunitSuite>& suites) {
  ptree all;
  for (const JunitSuite& suite : suites) {
    ptree made;
    const std::vector<Case> cases = cases_of(suite.comparison, suite.same_conditions);
    set_attribute(made, "name", suite.name);
    made.put("<xmlattr>.tests", cases.size());
    made.put("<xmlattr>.failures", failed_of(cases));
    for (const Case& test : cases) add_case(made, suite.comparison.study, test);
    all.add_child("testsuite", made);
  }
  return text_of_document(all);
}

std::string to_junit(const Night& night, const std::vector<RunVerdict>& verdicts, const Baseline& baseline) {
  ptree all;
  set_attribute(all, "name", "cm384 baseline");
  set_attribute(all, "time", fmt::format("{:.3f}", night.wall_s));
  std::size_t tests = 0, failures = 0, errors = 0;
  for (const RunVerdict& run : verdicts) {
    ptree made;
    const std::vector<Case> cases = cases_of(run, baseline);
    const bool passes = run.passes(baseline), error = is_error(run.verdict);
    const std::size_t failed = failed_of(cases) + (!passes && !error ? 1 : 0);
    tests += cases.size() + 1;
    failures += failed;
    errors += error ? 1 : 0;
    set_attribute(made, "name", run.name);
    set_attribute(made, "timestamp", night.date.substr(0, 19));
    set_attribute(made, "time", fmt::format("{:.3f}", run.wall_s));
    made.put("<xmlattr>.tests", cases.size() + 1);
    made.put("<xmlattr>.failures", failed);
    made.put("<xmlattr>.errors", error ? 1 : 0);
    std::vector<Property> properties{{"verdict", word_of(run.verdict)},
                                     {"command", run.command},
                                     {"simulated_us", fmt::format("{}", run.simulated_us)},
                                     {"peak_MB", fmt::format("{:.1f}", run.peak_MB)},
                                     {"build", night.build}};
    if (!night.commit.empty()) properties.push_back({"commit", night.commit});
    if (!run.folder.empty()) properties.push_back({"folder", run.folder});
    for (const Onset& onset : run.onsets) properties.push_back({"since", onset_line(onset)});
    add_properties(made, properties);
    ptree& verdict = add_case(made, run.name, {"verdict"});
    set_attribute(verdict, "time", fmt::format("{:.3f}", run.wall_s));
    if (!passes) {
      std::string text = run.reason;
      for (const Onset& onset : run.onsets) text += '\n' + onset_line(onset);
      text += "\nto repeat: " + run.command;
      if (!run.report.empty()) text += "\n\n" + run.report;
      ptree& failure = verdict.add_child(error ? "error" : "failure", ptree(xml_text(text)));
      set_attribute(failure, "type", word_of(run.verdict));
      set_attribute(failure, "message", fmt::format("{}: {}", text_of(run.verdict), run.reason));
    }
    for (const Case& test : cases) add_case(made, run.name, test);
    all.add_child("testsuite", made);
  }
  all.put("<xmlattr>.tests", tests);
  all.put("<xmlattr>.failures", failures);
  all.put("<xmlattr>.errors", errors);
  return text_of_document(all);
}

}  // namespace cm384::report
