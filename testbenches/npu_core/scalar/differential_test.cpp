// Random instruction streams on the scalar core and under qemu-riscv64: the same registers, flags and memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "testbenches/npu_core/scalar/random_program.h"
#include "testbenches/npu_core/scalar/surroundings.h"

namespace cm384::npu::testing::differential_test {
namespace {

std::string qemu() {
  const char* named = std::getenv("CM384_QEMU_RISCV64");
  return named != nullptr ? named : CM384_QEMU;
}

void build(std::uint64_t seed, int streams, int length, const std::string& stem) {
  std::ofstream(stem + ".S") << RandomProgram::generate(seed, streams, length);
  const std::string command =
      std::string(CM384_RISCV_GCC) +
      " -march=rv64imafc_zicsr_zifencei -mabi=lp64f -nostdlib -nostartfiles -static -T " + CM384_SOURCE_DIR +
      "/testbenches/npu_core/scalar/programs/p_environment.ld " + stem + ".S -o " + stem + ".elf";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

std::vector<std::byte> run_qemu(const std::string& stem) {
  const std::string command = qemu() + " " + stem + ".elf > " + stem + ".out";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream in(stem + ".out", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::byte> out(all.size());
  std::memcpy(out.data(), all.data(), all.size());
  return out;
}

std::vector<std::byte> run_ours(const std::string& stem, std::size_t bytes, bool traced) {
  const hw::ScalarCoreParameters parameters = small_core();
  Surroundings surroundings;
  surroundings.park_fills = traced;
  const auto image = ElfImage::read(stem + ".elf");
  ScalarCore core(parameters, surroundings, 0);
  core.start(std::make_shared<Program>(image, parameters), 0);
  const std::uint32_t one = 1;
  core.write_memory(image->symbol("on_cm384").value(), std::as_bytes(std::span(&one, 1)));
  std::FILE* trace = traced ? std::tmpfile() : nullptr;
  core.set_trace(trace);
  for (;;) {
    const Stop stop = core.run(core.cycle() + (traced ? 64 : 1000));
    if (stop == Stop::ended) break;
    if (stop == Stop::parked) core.resume(core.cycle());
  }
  if (trace != nullptr) std::fclose(trace);
  std::vector<std::byte> out(bytes);
  EXPECT_TRUE(core.read_memory(image->symbol("dump").value(), out));
  return out;
}

std::string name_of(std::size_t in_dump) {
  if (in_dump < 31 * 8) return fmt::format("x{}", 1 + in_dump / 8);
  if (in_dump < 31 * 8 + 32 * 4) return fmt::format("f{}", (in_dump - 31 * 8) / 4);
  return "fflags";
}

void compare(std::uint64_t seed, int streams, int length, bool traced) {
  const std::string stem = ::testing::TempDir() + "/cm384_differential_" + std::to_string(seed);
  ASSERT_NO_FATAL_FAILURE(build(seed, streams, length, stem));
  const std::vector<std::byte> theirs = run_qemu(stem);
  const std::size_t dump = RandomProgram::kDumpBytes * static_cast<std::size_t>(streams);
  ASSERT_EQ(theirs.size(), dump + RandomProgram::kScratchBytes * static_cast<std::size_t>(streams));
  const std::vector<std::byte> ours = run_ours(stem, theirs.size(), traced);
  int differences = 0;
  for (std::size_t i = 0; i < theirs.size() && differences < 10; ++i) {
    if (theirs[i] == ours[i]) continue;
    ++differences;
    const bool in_dump = i < dump;
    const std::size_t stream =
        in_dump ? i / RandomProgram::kDumpBytes : (i - dump) / RandomProgram::kScratchBytes;
    ADD_FAILURE() << stem << ".S, stream " << stream << ": "
                  << (in_dump ? name_of(i % RandomProgram::kDumpBytes)
                              : fmt::format("memory byte {}", (i - dump) % RandomProgram::kScratchBytes))
                  << " is " << std::to_integer<int>(ours[i]) << ", expected "
                  << std::to_integer<int>(theirs[i]);
  }
}

TEST(Differential, AgreesWithQemu) {
  ASSERT_FALSE(qemu().empty()) << "qemu-riscv64 is not installed";
  compare(1, 200, 500, false);
}

// The variant of the interpreter that traces and follows payload, with every cache miss parked once.
TEST(Differential, AgreesWithQemuWhenTracedAndParked) {
  ASSERT_FALSE(qemu().empty()) << "qemu-riscv64 is not installed";
  compare(2, 20, 500, true);
}

// More streams on demand: CM384_DIFFERENTIAL_SEEDS=100 takes seeds 3 to 102.
TEST(Differential, AgreesWithQemuForMoreSeeds) {
  const char* seeds = std::getenv("CM384_DIFFERENTIAL_SEEDS");
  if (seeds == nullptr) GTEST_SKIP() << "CM384_DIFFERENTIAL_SEEDS is not set";
  for (int i = 0; i < std::atoi(seeds) && !HasFailure(); ++i)
    compare(3 + static_cast<std::uint64_t>(i), 200, 500, false);
}

}  // namespace
}  // namespace cm384::npu::testing::differential_test
