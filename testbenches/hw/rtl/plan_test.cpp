// The test plan of an RTL block against its test programs: every point's tests exist, every test is in the
// plan, once. CM384_PLAN names the plan, CM384_PROGRAMS the programs, separated by spaces.
#include <gmock/gmock.h>
#include <toml++/toml.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace cm384::rtl::plan_test {
namespace {

std::set<std::string> tests_of(const std::string& program) {
  const std::unique_ptr<FILE, int (*)(FILE*)> list(popen((program + " --gtest_list_tests").c_str(), "r"),
                                                   pclose);
  if (!list) throw std::runtime_error("cannot run " + program);
  std::set<std::string> tests;
  std::string suite;
  std::array<char, 512> line;
  while (std::fgets(line.data(), line.size(), list.get()) != nullptr) {
    std::istringstream words(line.data());
    std::string word;
    words >> word;
    if (line[0] != ' ') {
      if (word.ends_with('.')) suite = word;
    } else {
      tests.insert(suite + word);
    }
  }
  return tests;
}

TEST(Plan, NamesEveryTestAndOnlyTests) {
  std::multiset<std::string> planned;
  const toml::table plan = toml::parse_file(CM384_PLAN);
  const toml::array* points = plan["point"].as_array();
  ASSERT_NE(points, nullptr);
  for (const toml::node& node : *points) {
    const toml::table& point = *node.as_table();
    EXPECT_TRUE(point["what"].is_string()) << point;
    const toml::array* tests = point["tests"].as_array();
    ASSERT_TRUE(tests != nullptr && !tests->empty()) << point;
    for (const toml::node& test : *tests) planned.insert(test.value_or(std::string()));
  }
  std::set<std::string> existing;
  std::istringstream programs(CM384_PROGRAMS);
  for (std::string program; programs >> program;) existing.merge(tests_of(program));
  EXPECT_THAT(planned, testing::UnorderedElementsAreArray(existing));
}

}  // namespace
}  // namespace cm384::rtl::plan_test
