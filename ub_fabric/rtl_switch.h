// The Verilated switch chip (hw/rtl/ub_switch) in the place of a transaction-level one.
#pragma once

#include <memory>
#include <string>

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
  // Writes what the RTL's signals do to an FST file, in simulated time; before the first packet. The clock
  // rises with the flits of the links and stands high while nothing is inside. Throws InputError.
  virtual void write_waves(const std::string& path) = 0;
  // Puts the file under its name, where there is one; without it none appears. Throws InputError.
  virtual void finish_waves() = 0;
};

// A chip with the lanes and buffers of the machine and its first `ports` ports in use, clocked by the flits
// of its links. The RTL is the core of a chip: what ub.switch.pipeline_latency has beyond the RTL's own
// cycles (serialisers and their coding) stands as a delay before it. Which uplink a packet takes is the
// routing policy's choice, as for any chip; the label in the packet's header carries it to the RTL's routing
// table. Throws InputError where the RTL cannot be that chip, or where cm384 was built without Verilator.
std::unique_ptr<RtlSwitch> make_rtl_switch(const Parameters& parameters, unsigned ports);

}  // namespace cm384::ub
