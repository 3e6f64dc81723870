// plan_check PLAN.toml PROGRAM: every point of a test plan names tests that the program has, and every test
// of the program stands in the plan. Exits 1 where not.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

namespace {

// Suites and tests as GoogleTest lists them; instances of typed and parametrised tests are one test.
std::set<std::string> tests_of(const std::string& program) {
  struct Closer {
    void operator()(std::FILE* file) const { pclose(file); }
  };
  const std::unique_ptr<std::FILE, Closer> list(popen(("'" + program + "' --gtest_list_tests").c_str(), "r"));
  std::set<std::string> tests;
  std::string suite;
  std::array<char, 1024> buffer;
  while (list && std::fgets(buffer.data(), buffer.size(), list.get()) != nullptr) {
    std::string line(buffer.data());
    line.resize(line.find_first_of("#\n"));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (line.empty() || line.starts_with("Running main")) continue;
    if (line.front() != ' ') {
      suite = line.substr(0, line.size() - 1);
      if (const auto slash = suite.find('/'); slash != std::string::npos) {
        // Typed: Suite/0. Parametrised: Instance/Suite.
        const bool typed = suite.find_first_not_of("0123456789", slash + 1) == std::string::npos;
        suite = typed ? suite.substr(0, slash) : suite.substr(slash + 1);
      }
    } else {
      const std::string name = line.substr(2);
      tests.insert(suite + "." + name.substr(0, name.find('/')));
    }
  }
  return tests;
}

int check(const std::string& path, const std::string& program) {
  const toml::table plan = toml::parse_file(path);
  const std::set<std::string> tests = tests_of(program);
  std::set<std::string> planned;
  std::size_t points = 0;
  int status = 0;
  const auto complain = [&](const std::string& what) {
    fmt::print("{}\n", what);
    status = 1;
  };
  const toml::array* list = plan["point"].as_array();
  for (std::size_t k = 0; list != nullptr && k < list->size(); ++k) {
    const toml::table& point = *list->get(k)->as_table();
    const std::string what = point["what"].value_or(std::string());
    const toml::array* named = point["tests"].as_array();
    ++points;
    if (what.empty() || named == nullptr || named->empty()) {
      complain(fmt::format("{}: point {} has no sentence or no tests", path, points));
      continue;
    }
    for (const toml::node& node : *named) {
      const std::string test = node.value_or(std::string());
      planned.insert(test);
      if (tests.count(test) == 0)
        complain(fmt::format("{}: '{}' names {}, which does not exist", path, what, test));
    }
  }
  for (const std::string& test : tests) {
    if (planned.count(test) == 0) complain(fmt::format("{}: {} is in no point", path, test));
  }
  fmt::print("{} points, {} tests\n", points, tests.size());
  if (points == 0 || tests.empty()) complain("an empty plan or program");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print("plan_check PLAN.toml PROGRAM\n");
    return 2;
  }
  try {
    return check(argv[1], argv[2]);
  } catch (const toml::parse_error& error) {
    fmt::print("{}: {}\n", argv[1], error.description());
    return 2;
  }
}
