// The seam for a memory of another model in the place of a die's HBM: its times only, the bytes stay in the
// die's store.
#pragma once

#include <cstdint>

#include "base/text/units.h"

namespace cm384::npu {

class MemoryBehindL2 {
 public:
  // `bytes` within one 512 B line, from `offset`, asked for by L2 at `at`. When the data is back at L2; when
  // the write was taken. Not before `at`.
  virtual Time read(std::uint64_t offset, std::uint32_t bytes, Time at) = 0;
  virtual Time write(std::uint64_t offset, std::uint32_t bytes, Time at) = 0;
  // Read and written so far.
  virtual std::uint64_t bytes() const = 0;

 protected:
  ~MemoryBehindL2() = default;
};

}  // namespace cm384::npu
