// A plain bare-metal ELF on one scalar core alone: linked at 0x80000000, ends by writing `tohost`.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "hw/parameters/scalar_core.h"

namespace cm384::npu {

class GdbStub;

struct BareMetalOptions {
  std::uint64_t most_instructions = 100'000'000;  // then it counts as hung
  // Latency of a fill of either cache and of a write-back, in core cycles.
  std::int64_t fill_cycles = 100;
  std::int64_t write_back_cycles = 0;
  std::FILE* console = nullptr;  // what the program prints (CM384_HOST_WRITE); null: dropped
  std::FILE* trace = nullptr;
  GdbStub* debugger = nullptr;
};

struct BareMetalResult {
  bool passed = false;
  std::uint64_t failed_test = 0;  // the test number the program gave, where it did not pass
  std::uint64_t instructions = 0;
  std::int64_t cycles = 0;
};

// Runs the program until it stores a non-zero value to `tohost`: 1 is pass, another odd value fails test
// value / 2; an even one is an HTIF request, which is not served and fails too. A program that calls
// CM384_HOST_EXIT passes when its status is 0. Throws InputError for a bad ELF or one without `tohost` that
// does not exit, MachineError for an unhandled trap, a pipe instruction (there are no pipes) or a hang.
BareMetalResult run_bare_metal(const std::string& path, const hw::ScalarCoreParameters& parameters,
                               const BareMetalOptions& options);

}  // namespace cm384::npu
