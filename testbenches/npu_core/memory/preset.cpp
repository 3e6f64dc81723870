#include "testbenches/npu_core/memory/preset.h"

#include "hw/machine.h"

namespace cm384::npu::testing {

hw::Memory preset_memory() {
  return hw::load_machine(std::string(hw::kDefaultMachine)).memory;
}

}  // namespace cm384::npu::testing
