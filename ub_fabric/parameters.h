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

}  // namespace cm384::ub
