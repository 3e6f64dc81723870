// The Verilated switch chip (hw/rtl/ub_switch) in the place of a transaction-level one.
#pragma once

#include <memory>

#include "ub_fabric/parameters.h"
#include "ub_fabric/switch_chip.h"

namespace cm384::ub {

// What came through a Verilated chip.
struct RtlSwitchCounters {
  std::uint64_t cycles = 0;  // the RTL was clocked; it stands still while nothing is inside
  std::uint64_t packets = 0;
};

class RtlSwitch : public SwitchChip {
 public:
  virtual const RtlSwitchCounters& counters() const = 0;
};

// A chip with the lanes and buffers of the machine and its first `ports` ports in use, clocked by the flits
// of its links. The RTL is the core of a chip: what ub.switch.pipeline_latency has beyond the RTL's own
// cycles (serialisers and their coding) stands as a delay before it. Which uplink a packet takes is the
// routing policy's choice, as for any chip; the label in the packet's header carries it to the RTL's routing
// table. Throws InputError where the RTL cannot be that chip, or where cm384 was built without Verilator.
std::unique_ptr<RtlSwitch> make_rtl_switch(const Parameters& parameters, unsigned ports);

}  // namespace cm384::ub
