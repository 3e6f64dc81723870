#include "report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

namespace cm384::report {
namespace {

using boost::property_tree::ptree;

// XML 1.0 has no way to write most control characters.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; }, '?');
  return text;
}

std::string line_of(const Change& change) {
  const auto text = [](const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  std::string line = fmt::format("{}: {} -> {}", change.field, text(change.before), text(change.after));
  if (change.relative) line += fmt::format(" ({:+.3g} %)", *change.relative * 100);
  return line + fmt::format("; allowed: {}", change.allowed);
}

struct Case {
  std::string name;
  std::vector<std::string> failures;
};

void take_failures(const std::vector<Change>& changes, Case& into) {
  for (const Change& change : changes)
    if (!change.within) into.failures.push_back(line_of(change));
}

std::vector<Case> cases_of(const JunitSuite& suite) {
  const ResultComparison& comparison = suite.comparison;
  std::vector<Case> cases;
  if (suite.same_conditions) take_failures(comparison.conditions, cases.emplace_back(Case{"conditions", {}}));
  take_failures(comparison.whole, cases.emplace_back(Case{"run", {}}));
  for (const RowComparison& row : comparison.rows) {
    Case& made = cases.emplace_back(Case{row.key.empty() ? "row" : row.key, {}});
    if (!row.in_after) made.failures.emplace_back("the row is missing");
    if (!row.in_before) made.failures.emplace_back("the row is new");
    take_failures(row.changes, made);
  }
  return cases;
}

}  // namespace

std::string to_junit(const std::vector<JunitSuite>& suites) {
  ptree all;
  for (const JunitSuite& suite : suites) {
    ptree made;
    std::size_t failed = 0;
    const std::vector<Case> cases = cases_of(suite);
    for (const Case& test : cases) failed += test.failures.empty() ? 0 : 1;
    made.put("<xmlattr>.name", printable(suite.name));
    made.put("<xmlattr>.tests", cases.size());
    made.put("<xmlattr>.failures", failed);
    for (const Case& test : cases) {
      ptree& one = made.add_child("testcase", ptree());
      one.put("<xmlattr>.classname", printable(suite.comparison.study));
      one.put("<xmlattr>.name", printable(test.name));
      if (test.failures.empty()) continue;
      ptree& failure =
          one.add_child("failure", ptree(printable(fmt::format("{}", fmt::join(test.failures, "\n")))));
      failure.put("<xmlattr>.message", fmt::format("{} past tolerance", test.failures.size()));
    }
    all.add_child("testsuite", made);
  }
  ptree document;
  document.add_child("testsuites", all);
  std::ostringstream text;
  boost::property_tree::write_xml(text, document,
                                  boost::property_tree::xml_writer_settings<std::string>(' ', 1));
  return std::move(text).str();
}

}  // namespace cm384::report
