// Bare-metal programs of the conformance kind, and what is said about files that are no such program.
#include "npu_core/scalar/bare_metal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/text/error.h"
#include "testbenches/npu_core/scalar/surroundings.h"

namespace cm384::npu::testing::bare_metal_test {
namespace {

std::string path_of(const std::string& name) {
  return std::string(CM384_SCALAR_PROGRAMS) + "/" + name + ".elf";
}

class Conformance : public ::testing::TestWithParam<std::string> {};

TEST_P(Conformance, Passes) {
  const BareMetalResult result = run_bare_metal(path_of(GetParam()), small_core(), {});
  EXPECT_TRUE(result.passed) << "test " << result.failed_test;
  EXPECT_GT(result.instructions, 100u);
  EXPECT_GT(result.cycles, static_cast<std::int64_t>(result.instructions));
}

INSTANTIATE_TEST_SUITE_P(Programs, Conformance,
                         ::testing::Values("ui", "um", "ua", "uf", "uc", "ui_double", "um_double",
                                           "ua_double", "uf_double", "uc_double"),
                         [](const auto& test) { return test.param; });

TEST(BareMetal, NamesTheTestThatFails) {
  const BareMetalResult result = run_bare_metal(path_of("fail"), small_core(), {});
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.failed_test, 5u);
}

TEST(BareMetal, AHangEndsWithWhereItHangs) {
  BareMetalOptions options;
  options.most_instructions = 10'000;
  try {
    run_bare_metal(path_of("hang"), small_core(), options);
    FAIL() << "no error";
  } catch (const MachineError& e) {
    EXPECT_NE(std::string(e.what()).find("no end after"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("spin"), std::string::npos) << e.what();
  }
}

TEST(BareMetal, SlowerMemoryTakesLongerAndNoMoreInstructions) {
  BareMetalOptions fast, slow;
  fast.fill_cycles = 10;
  slow.fill_cycles = 500;
  const BareMetalResult a = run_bare_metal(path_of("ui"), small_core(), fast);
  const BareMetalResult b = run_bare_metal(path_of("ui"), small_core(), slow);
  EXPECT_EQ(a.instructions, b.instructions);
  EXPECT_GT(b.cycles, a.cycles);
}

void expect_input_error(const std::string& path, const std::string& part) {
  try {
    ElfImage::read(path);
    FAIL() << path << ": no error";
  } catch (const InputError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

std::string scratch(const std::string& name) {
  return ::testing::TempDir() + "/cm384_scalar_" + name;
}

TEST(Elf, SaysWhatIsWrong) {
  expect_input_error("/nowhere/kernel.elf", "cannot be read");
  expect_input_error("/proc/self/exe", "RISC-V");
  const std::string text = scratch("text");
  std::ofstream(text) << "no program";
  expect_input_error(text, "no ELF");
}

TEST(Elf, EveryTruncationIsAnErrorOrHarmless) {
  std::ifstream in(path_of("ui"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string cut = scratch("cut");
  int errors = 0;
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += whole.size() / 61 + 1) {
    std::ofstream(cut, std::ios::binary | std::ios::trunc) << whole.substr(0, bytes);
    try {
      ElfImage::read(cut);
    } catch (const InputError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 20);
  std::ofstream(cut, std::ios::binary | std::ios::trunc) << whole.substr(0, 0x1010);
  expect_input_error(cut, "truncated");
}

TEST(Elf, FindsSymbols) {
  const auto image = ElfImage::read(path_of("hang"));
  ASSERT_TRUE(image->symbol("spin").has_value());
  EXPECT_EQ(image->symbol_at(*image->symbol("spin")), "spin");
  EXPECT_EQ(image->symbol_at(*image->symbol("write_tohost") + 4), "write_tohost+0x4");
  EXPECT_FALSE(image->symbol("nothing").has_value());
  EXPECT_EQ(image->symbol_at(0x1000), "?");
}

}  // namespace
}  // namespace cm384::npu::testing::bare_metal_test
