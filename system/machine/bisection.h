// The bisection of a topology: the least that links between two halves of its dies carry.
#pragma once

#include "hw/machine.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/topology/network.h"

namespace cm384::supernode {

// One way, in GB/s by wire rate, over all sub-planes: the smallest cut, by maximum flow, between halves of
// the dies. The halves that are tried follow from the shape, not from numbers: of a grid across every
// dimension (a slice in the middle that both halves share is cut across the longest of the others); of pods
// and groups whole ones; of files by distance from up to 64 chips. So it is an upper bound of the minimum
// over all halves, and met by grids of even lengths, fat trees and stars.
double bisection_GBps(const ub::Parameters& parameters, const ub::Network& network);
// The bisection of one supernode of the machine.
double bisection_GBps(const hw::Machine& machine);

}  // namespace cm384::supernode
