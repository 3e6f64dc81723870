// Numbers of harts (mhartid): unique in the machine, and what they say.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace cm384::npu {

inline constexpr std::uint32_t kHartsPerDie = 128;

// "die 3 core 7", as every message names a core.
inline std::string hart_name(std::uint32_t number) {
  return fmt::format("die {} core {}", number / kHartsPerDie, number % kHartsPerDie);
}

}  // namespace cm384::npu
