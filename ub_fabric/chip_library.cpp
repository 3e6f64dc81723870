// The library of switch chips as RTL that comes with cm384, loaded by rtl_switch.cpp where one is asked for.
#include "ub_fabric/chip_library.h"

#include "Vub_switch16.h"
#include "Vub_switch16_classes.h"
#include "Vub_switch48.h"

namespace cm384::ub {
namespace {

struct Chip16 {
  using Model = Vub_switch16;
  static constexpr unsigned ports = 16, classes = 1;
};
struct Chip48 {
  using Model = Vub_switch48;
  static constexpr unsigned ports = 48, classes = 1;
};

// Twice as long to simulate.
struct Chip16Classes {
  using Model = Vub_switch16_classes;
  static constexpr unsigned ports = 16, classes = 4;
};

}  // namespace

extern "C" const char* cm384_chip_abi() {
  return kChipAbi;
}

extern "C" RtlSwitch* cm384_make_chip(const Parameters& parameters, const ServiceClasses& classes,
                                      const ChipTiming& timing, unsigned ports) {
  return make_chip<Chip16, Chip48, Chip16Classes>(parameters, classes, timing, ports).release();
}

}  // namespace cm384::ub
