// Inputs that a fuzz target once failed on, named in found/TARGET/, through that target: they end as every
// input must, in a value or an InputError, within 10 s and 1 GB. Kept so that every run of the tests tries
// them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace fs = std::filesystem;

// One for each target of the folder; CMakeLists.txt gives them these names.
using Target = int(const std::uint8_t* data, std::size_t size);
extern "C" {
Target fuzz_baseline, fuzz_chakra, fuzz_elf, fuzz_machine, fuzz_model, fuzz_ns3ub, fuzz_requests, fuzz_result,
    fuzz_routing, fuzz_schedules, fuzz_traffic, fuzz_traffic_csv;
}

namespace cm384::fuzz::found_test {
namespace {

const std::map<std::string, Target*>& targets() {
  static const std::map<std::string, Target*> all{
      {"baseline", fuzz_baseline},   {"chakra", fuzz_chakra},   {"elf", fuzz_elf},
      {"machine", fuzz_machine},     {"model", fuzz_model},     {"ns3ub", fuzz_ns3ub},
      {"requests", fuzz_requests},   {"result", fuzz_result},   {"routing", fuzz_routing},
      {"schedules", fuzz_schedules}, {"traffic", fuzz_traffic}, {"traffic_csv", fuzz_traffic_csv}};
  return all;
}

fs::path folder() {
  return fs::path(CM384_SOURCE_DIR) / "testbenches/fuzz";
}

std::vector<fs::path> found() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder() / "found")) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// Address sanitizers take their own terabytes.
void limit_memory() {
#ifndef __SANITIZE_ADDRESS__
  const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
#endif
}

class Found : public ::testing::TestWithParam<fs::path> {};

TEST_P(Found, EndsAsEveryInputMust) {
  const std::string target = GetParam().parent_path().filename();
  ASSERT_TRUE(targets().contains(target)) << "no such fuzz target: " << target;
  std::ifstream stream(GetParam(), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  ASSERT_FALSE(bytes.empty());
  limit_memory();
  alarm(10);  // ends the program
  targets().at(target)(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  alarm(0);
}

INSTANTIATE_TEST_SUITE_P(Inputs, Found, ::testing::ValuesIn(found()), [](const auto& input) {
  std::string name = input.param.parent_path().filename().string() + "_" + input.param.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST(FuzzTargets, AllStandInTheTable) {
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    const std::string name = entry.path().filename();
    if (!name.ends_with("_fuzz.cpp")) continue;
    ++files;
    EXPECT_TRUE(targets().contains(name.substr(0, name.size() - 9))) << name;
  }
  EXPECT_EQ(files, targets().size());
  EXPECT_GE(found().size(), 12u);
}

}  // namespace
}  // namespace cm384::fuzz::found_test
