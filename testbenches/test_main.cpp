// The main function of every test program. Besides what GoogleTest takes, `--source=hang_test.cpp`, once or
// several times, runs the tests of these sources alone: one program holds the tests of a folder, and CTest
// starts it once for each. `--parameter=dispatch64` takes of them those of this parameter's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

// A filter of GoogleTest with the tests that stand in these sources and, where one is given, have a parameter
// of this name; empty where there are none.
std::string tests_in(const std::vector<std::string>& sources, const std::string& parameter) {
  std::string filter;
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *unit.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string_view file = test.file();
      const std::string_view name = file.substr(file.rfind('/') + 1);
      if (!parameter.empty() && !std::string_view(test.name()).ends_with("/" + parameter)) continue;
      for (const std::string& source : sources) {
        if (source == name)
          filter += std::string(filter.empty() ? "" : ":") + suite.name() + "." + test.name();
      }
    }
  }
  return filter;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> sources;
  std::string parameter;
  std::vector<char*> others;
  for (int a = 0; a < count; ++a) {
    const std::string_view argument = arguments[a];
    constexpr std::string_view of_source = "--source=", of_parameter = "--parameter=";
    if (argument.starts_with(of_source)) {
      sources.emplace_back(argument.substr(of_source.size()));
    } else if (argument.starts_with(of_parameter)) {
      parameter = argument.substr(of_parameter.size());
    } else {
      others.push_back(arguments[a]);
    }
  }
  others.push_back(nullptr);
  int other_count = static_cast<int>(others.size()) - 1;
  testing::InitGoogleMock(&other_count, others.data());
  for (const std::string& source : sources) {
    if (!tests_in({source}, parameter).empty()) continue;
    std::cerr << "no test of " << source << (parameter.empty() ? "" : " for " + parameter)
              << " is in this program\n";
    return 2;
  }
  if (!sources.empty()) GTEST_FLAG_SET(filter, tests_in(sources, parameter));
  return RUN_ALL_TESTS();
}
