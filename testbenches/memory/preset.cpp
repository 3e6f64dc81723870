#include "testbenches/memory/preset.h"

#include "hw/machine.h"
#include "hw/machine_reader.h"

namespace cm384::npu::testing {

hw::Memory preset_memory() {
  return hw::read_layers(std::string(hw::kDefaultMachine)).memory;
}

}  // namespace cm384::npu::testing
