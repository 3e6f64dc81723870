// Random streams of instructions for the differential test, as assembly that runs alike under a user-mode
// emulator and on the scalar core.
#pragma once

#include <cstdint>
#include <string>

namespace cm384::npu::testing {

struct RandomProgram {
  static constexpr std::uint64_t kScratchBytes = 512;
  // x1..x31 (8 B each), f0..f31 (4 B each), fflags (8 B).
  static constexpr std::uint64_t kDumpBytes = 31 * 8 + 32 * 4 + 8;

  // `streams` streams of about `length` instructions. Labels: `dump` (kDumpBytes per stream), `scratch`
  // (kScratchBytes per stream), right behind each other; `on_cm384`: a word that is set non-zero where the
  // program is to end by a host call instead of writing both to standard output.
  static std::string generate(std::uint64_t seed, int streams, int length);
};

}  // namespace cm384::npu::testing
