// `cm384 trace` as a user starts it, in a folder of its own.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testbenches/hw/outcome.h"

namespace cm384 {

class TraceCommand : public ::testing::Test {
 protected:
  TraceCommand() { std::filesystem::create_directories(folder_); }
  ~TraceCommand() override { std::filesystem::remove_all(folder_); }

  Outcome start(const std::string& arguments) const {
    const std::string folder = folder_.string();
    return run_command("cd " + folder + " && " CM384_COMMAND " trace " + arguments, folder + "/errors");
  }
  Outcome done(const std::string& arguments) const {
    Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
    return outcome;
  }
  void expect_refused(const std::string& arguments, const std::string& message) const {
    const Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.output;
    EXPECT_THAT(outcome.errors, ::testing::HasSubstr(message)) << arguments;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }
  nlohmann::json json(const std::string& arguments) const {
    return nlohmann::json::parse(done(arguments).output);
  }

  std::filesystem::path at(const std::string& name) const { return folder_ / name; }
  std::string read(const std::string& name) const {
    std::ifstream stream(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("cm384_trace_" + std::to_string(getpid()));
};

}  // namespace cm384
