// What a topology can carry of a pattern of traffic, from its table alone, without simulation.
#pragma once

#include "hw/machine.h"
#include "workloads/fabric/switch_pattern.h"

namespace cm384::studies {

struct TrafficBounds {
  // Payload that a die could send at most, in GB/s: its ports at their rate, of dies that differ the slowest
  // one's, less headers. Load 1.
  double capacity_GBps = 0;
  // The largest load at which no link has to carry more than it can, if all shortest ways share the packets
  // evenly (the channel load of Dally and Towles), or ways by any chip for routing valiant; negative: routing
  // that has no such figure (ugal).
  double busiest_link_load = 0;
  // The load at which a die's controller can issue, or that of the die that gets most can serve, no more
  // requests.
  double controller_load = 0;
  // Between halves of the dies (system/machine/bisection.h).
  double bisection_GBps = 0;
};

// Messages of requests of at most 512 B between all dies of the machine.
TrafficBounds traffic_bounds(const hw::Machine& machine, const Destinations& destinations, bool writes,
                             int bytes);

}  // namespace cm384::studies
