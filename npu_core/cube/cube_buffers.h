// The local buffers of a cube core.
#pragma once

#include "npu_core/pipes/local_buffer.h"

namespace cm384::npu {

inline constexpr std::uint32_t kL1Bytes = 512 * 1024;
inline constexpr std::uint32_t kL0aBytes = 64 * 1024;
inline constexpr std::uint32_t kL0bBytes = 64 * 1024;
inline constexpr std::uint32_t kL0cBytes = 128 * 1024;
inline constexpr std::uint32_t kBiasBytes = 1024;
inline constexpr std::uint32_t kFixpipeBytes = 2048;

inline constexpr std::uint32_t kFractalRows = 16;
inline constexpr std::uint32_t kFractalBytes = 512;         // 16 rows of 32 B
inline constexpr std::uint32_t kAccumulatorFractal = 1024;  // 16 x 16 of 4 B

struct CubeBuffers {
  LocalBuffer l1{kL1Bytes}, l0a{kL0aBytes}, l0b{kL0bBytes}, l0c{kL0cBytes};
  LocalBuffer bias{kBiasBytes}, fixpipe{kFixpipeBytes};
};

constexpr std::uint32_t blocks_of(std::uint32_t elements, std::uint32_t block) {
  return (elements + block - 1) / block;
}

}  // namespace cm384::npu
