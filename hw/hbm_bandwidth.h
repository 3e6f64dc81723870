// One knob for HBM's bandwidth, and the values that it is coupled with.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "hw/machine.h"

namespace cm384::hw {

// Command cycles from one burst of a line to the next, all rows open: tCCD_S, or tCCD_L shared by the bank
// groups that a line's bursts alternate over.
std::int64_t burst_cycles(const Hbm& hbm);

// All pseudo-channels together, each a burst every burst_cycles().
Bandwidth hbm_peak(const Hbm& hbm);

// What the cores of a die read at most of what misses in L2: each by a port of its own.
Bandwidth hbm_reads_of_cores(const Machine& machine);

// After a layer of values (a file, or all of --set) was read onto `before`; `given`: the keys that it named.
// Where that is hbm.bandwidth, what it is coupled with follows as far as the layer does not name it:
// stacks for whole doublings, the clock, the times of a burst, and, upwards only, what keeps enough reads on
// their way to use it. Otherwise hbm.bandwidth becomes what the parts give. Says in Machine::notes what binds
// where a value that was named has not the effect that it was named for. Throws InputError for a bandwidth
// that no clock gives.
void settle_hbm(Machine& machine, const Machine& before, const std::set<std::string, std::less<>>& given);

// Where the layer gives the die more cores than the memory has ports for, and does not name
// on_die_network.core_ports: one port per core.
void settle_core_ports(Machine& machine, const std::set<std::string, std::less<>>& given);

}  // namespace cm384::hw
