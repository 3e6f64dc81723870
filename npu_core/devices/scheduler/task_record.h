// One entry of a stream and the times at which it passed each stage.
#pragma once

#include <cstdint>

#include "base/text/units.h"
#include "npu_core/devices/sdma/sdma_engine.h"

namespace cm384::npu {

struct TaskRecord {
  std::uint32_t stream = 0;
  std::uint32_t number = 0;  // the submitter's
  std::uint8_t type = 0;     // enum cm384_task_type
  std::uint32_t status = 0;  // enum cm384_task_status
  std::uint64_t fault = 0;
  Time turn;        // it is at the head of its stream, and its submission is known
  Time fetched;     // read from memory
  Time decoded;     // its work begins
  Time done;        // its work is done
  Time completed;   // the next entry of the stream may start
  SdmaRecord copy;  // of an SDMA entry
};

}  // namespace cm384::npu
