// In place of rtl_switch.cpp where there is no Verilator.
#include "hw/error.h"
#include "ub_fabric/rtl_switch.h"

namespace cm384::ub {

std::unique_ptr<RtlSwitch> make_rtl_switch(const Parameters&, unsigned) {
  throw InputError("RTL switch chips: this cm384 was built without Verilator");
}

}  // namespace cm384::ub
