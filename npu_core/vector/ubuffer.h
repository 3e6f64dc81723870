// The UBuffer: a vector core's 192 KiB of local memory.
#pragma once

#include "npu_core/pipes/local_buffer.h"

namespace cm384::npu {

inline constexpr std::uint32_t kUBufferBytes = 192 * 1024;
inline constexpr std::uint32_t kUBufferBlocks = kUBufferBytes / sim::kBlockBytes;

class UBuffer : public LocalBuffer {
 public:
  UBuffer() : LocalBuffer(kUBufferBytes) {}
};

}  // namespace cm384::npu
