// Reads of cached blocks by dies: from the DRAM of CPU sockets through the Unified Bus, simulated; from
// another node through the VPC, by a formula.
#pragma once

#include <vector>

#include "studies/confidence.h"
#include "studies/study.h"

namespace cm384::studies {

struct BlockReads {
  std::vector<double>
      latency_us;            // of each reader's block, from its first core's start to its last one's end
  int servers = 0;           // sockets that have one of the blocks
  int most_at_a_server = 0;  // readers of one socket
};

// `readers` dies, spread over the machine, each read `bytes` with 48 AIVs at the same time; each block lies
// on the socket that the ring of the memory service gives it. Empty: interrupted.
BlockReads measure_block_reads(const StudyContext& context, int readers, Bytes bytes,
                               SimulatorCounts& counts);

// What is assumed of the VPC; nothing of it is simulated.
struct Vpc {
  Bandwidth rate{50'000'000'000};  // of a node: 400 Gbit/s
  double share = 0.5;              // of it that copies get
  Time latency{50'000'000};        // of a request
};
double vpc_read_us(const Vpc& vpc, int readers_of_a_node, Bytes bytes);

}  // namespace cm384::studies
