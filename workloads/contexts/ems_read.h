// Reads of cached blocks by dies, from the DRAM of CPU sockets through the Unified Bus. Those over the VPC:
// ems_vpc.h.
#pragma once

#include <vector>

#include "workloads/frame/confidence.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

// Which die reads which socket's block. Readers are spread over the first `nodes` nodes (0: all); a block
// lies on the socket that the ring of the memory service gives it.
struct BlockPlaces {
  std::vector<int> dies, sockets;  // of each reader
  int servers = 0;                 // sockets that have one of the blocks
  int most_at_a_server = 0;        // readers of one socket
};
// Throws InputError where the machine has no sockets, or there are fewer nodes or dies than that.
BlockPlaces place_block_reads(const StudyContext& context, int readers, int nodes);

// Each reader reads `bytes` with all its AIVs, all at the same time. What each took, in us, from its first
// core's start to its last one's end. Empty: interrupted.
std::vector<double> measure_block_reads(const StudyContext& context, const BlockPlaces& places, Bytes bytes,
                                        SimulatorCounts& counts);

}  // namespace cm384::studies
