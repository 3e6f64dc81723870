// Reads of cached blocks by dies over the VPC plane (ub_fabric/planes/vpc/vpc_plane.h).
#pragma once

#include <vector>

#include "ub_fabric/planes/vpc/parameters.h"
#include "workloads/contexts/ems_read.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

struct VpcReads {
  std::vector<double> latency_us;  // of each reader, from the moment all ask; empty: interrupted
  int readers_of_a_card = 0;       // most readers of one node
  int blocks_of_a_card = 0;        // most blocks that one node serves
  double inward = 0, outward = 0;  // of the time until the last block is there: the busiest card's share
};

VpcReads measure_vpc_reads(const StudyContext& context, const vpc::Parameters& parameters,
                           const BlockPlaces& places, Bytes bytes, SimulatorCounts& counts);

}  // namespace cm384::studies
