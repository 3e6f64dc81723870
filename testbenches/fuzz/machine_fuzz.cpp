// Machine files: anything ends in a machine or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text/error.h"
#include "hw/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  try {
    const hw::Machine machine =
        hw::parse_machine(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml");
    hw::to_json(machine);
  } catch (const InputError&) {
  }
  return 0;
}
