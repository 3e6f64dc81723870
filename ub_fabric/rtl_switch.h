// Switch chips as RTL (hw/rtl/ub_switch, Verilated) in the place of transaction-level ones. They stand in a
// library of their own, `lib/cm384/libcm384_rtl.so`, that is loaded when a run asks for such a chip: building
// it takes minutes, and most runs need none.
#pragma once

#include <memory>
#include <string>

#include "ub_fabric/link_timing.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/service_classes.h"
#include "ub_fabric/switch_chip.h"

namespace cm384::ub {

// Counters of a Verilated chip.
struct RtlSwitchCounters {
  std::uint64_t cycles = 0;  // the RTL was clocked; it stands still while nothing is inside
  std::uint64_t packets = 0;
};

class RtlSwitch : public SwitchChip {
 public:
  virtual const RtlSwitchCounters& counters() const = 0;
  // Writes what the RTL's signals do to an FST file, in simulated time; before the first packet. The clock
  // rises with the flits of the links and stands high while nothing is inside. Throws OutputError.
  virtual void write_waves(const std::string& path) = 0;
  // Completes the file, which appears under its name only then. Throws OutputError.
  virtual void finish_waves() = 0;
};

// A chip with the lanes and buffers of the machine and its first `ports` ports in use, clocked by the flits
// of its fastest link. The RTL is the core of a chip: what the chip's pipeline has beyond the RTL's own
// cycles (serialisers and their coding) stands as a delay before it. Which uplink a packet takes is the
// routing policy's choice, as for any chip; the label in the packet's header carries it to the RTL's routing
// table. `library`: of chips of a user's own, made by `cm384 rtl build`; empty: those that come with cm384.
// Throws InputError where the RTL cannot be that chip, or where the library is not there.
std::unique_ptr<RtlSwitch> make_rtl_switch(const Parameters& parameters, const ChipTiming& timing,
                                           unsigned ports, const std::string& library = {});

// What a library of chips exports with C linkage; kChipAbi changes with anything that it shares with the
// simulator.
inline constexpr char kChipAbi[] = "cm384 switch chips 4";
extern "C" const char* cm384_chip_abi();
extern "C" RtlSwitch* cm384_make_chip(const Parameters& parameters, const ServiceClasses& classes,
                                      const ChipTiming& timing, unsigned ports);

}  // namespace cm384::ub
