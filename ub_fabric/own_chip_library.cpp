// A library with one chip of a user's own, which `cm384 rtl build` makes: Verilated as class Vown_switch,
// with CM384_CHIP_PORTS ports and CM384_CHIP_CLASSES service classes.
#include "Vown_switch.h"
#include "ub_fabric/chip_library.h"

namespace cm384::ub {
namespace {

struct OwnChip {
  using Model = Vown_switch;
  static constexpr unsigned ports = CM384_CHIP_PORTS, classes = CM384_CHIP_CLASSES;
};

}  // namespace

extern "C" const char* cm384_chip_abi() {
  return kChipAbi;
}

extern "C" RtlSwitch* cm384_make_chip(const Parameters& parameters, const ServiceClasses& classes,
                                      const ChipTiming& timing, unsigned ports) {
  return make_chip<OwnChip>(parameters, classes, timing, ports).release();
}

}  // namespace cm384::ub
