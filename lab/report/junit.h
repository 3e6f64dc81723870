// Verdicts as JUnit XML, which CI systems show: one suite per run, one test case per row, one for the
// conditions.
#pragma once

#include <string>
#include <vector>

#include "lab/report/comparison.h"
#include "lab/report/verdict.h"

namespace cm384::report {

struct JunitSuite {
  std::string name;
  ResultComparison comparison;
  bool same_conditions = false;  // whether differing conditions fail
};

std::string to_junit(const std::vector<JunitSuite>& suites);

// What all runs of a night share.
struct Night {
  std::string date;             // as date_now() gives it
  std::string commit, subject;  // that was tested; empty: not known
  std::string build;            // of cm384: version and commit
  std::string folder;           // with baseline.toml
  double wall_s = 0;
};

// Of a night: with the time of each run, the command that repeats it and the numbers of each row as
// properties. A run that did not end well is an error, one that a comparison fails a failure.
std::string to_junit(const Night& night, const std::vector<RunVerdict>& verdicts, const Baseline& baseline);

// Text as XML 1.0 can hold it: what it cannot (control characters, what is not UTF-8) becomes '?'.
std::string xml_text(std::string_view text);

}  // namespace cm384::report
