// What the fabric is built from: the four sections of a machine that describe it, and which supernode's it
// is.
#pragma once

#include "hw/parameters/ub.h"

namespace cm384::ub {

struct Parameters {
  hw::Topology topology;
  hw::UnifiedBus ub;
  hw::CpuSocket cpu;
  hw::PackageLink package_link;
  // Of several supernodes the one whose Unified Bus this is: its dies and CPU sockets are numbered from here
  // on, and `topology` is of it alone.
  int supernodes = 1, first_die = 0, first_socket = 0;
};

// Throws InputError with one line where values do not fit together (odd lanes, page size).
void check(const Parameters& parameters);

// Flits of a CPU socket's port to a sub-plane: its share of the socket's bandwidth.
Clock socket_port_clock(const Parameters& parameters, int plane);

// Nothing crosses from a die, a CPU socket or a sub-plane to another in less: the width of a window
// (sim/event_queue.h).
Time lookahead(const Parameters& parameters);

}  // namespace cm384::ub
