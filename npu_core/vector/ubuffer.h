// The UBuffer: a vector core's 192 KiB of local memory.
#pragma once

#include "firmware/abi/memory_map.h"
#include "npu_core/pipes/local_buffer.h"

namespace cm384::npu {

inline constexpr std::uint32_t kUBufferBytes = CM384_UBUFFER_BYTES;

class UBuffer : public LocalBuffer {
 public:
  UBuffer() : LocalBuffer(kUBufferBytes) {}
};

}  // namespace cm384::npu
