// What follows from a machine's topology: the lanes it needs, and whether its routing has a choice.
#pragma once

#include "hw/machine.h"

namespace cm384::ub {

// The least ub.link.lanes that keep the machine's topology and routing free of deadlock while all is in
// order, with lanes of their own for each service class. Throws InputError where the parameters of the
// topology do not fit together.
int least_lanes(const hw::Machine& machine);

// Where no file of the user's and no --set has given ub.link.lanes and the preset's are too few: as many as
// it takes, with a note. Notes also where a routing that was asked for has nothing to choose from, lanes
// that no service class has, and service levels that are all of one class. Throws as least_lanes() does, and
// where there are more classes than lanes.
void fit_to_topology(hw::Machine& machine);

}  // namespace cm384::ub
