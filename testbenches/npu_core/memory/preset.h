// The memory of the default machine.
#pragma once

#include "hw/parameters/memory.h"

namespace cm384::npu::testing {

hw::Memory preset_memory();

}  // namespace cm384::npu::testing
