// A comparison as JUnit XML, which CI systems show: one test case per row, one for the conditions.
#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"

namespace cm384::report {

struct JunitSuite {
  std::string name;
  ResultComparison comparison;
  bool same_conditions = false;  // whether differing conditions fail
};

std::string to_junit(const std::vector<JunitSuite>& suites);

}  // namespace cm384::report
