// Batches of blocks between memories, copied by SDMA engines: as caches of keys and values move between dies
// and hosts, block by block.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/units.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

// One row. A pair is a die whose SDMA engine copies, and its peer; D is a die's memory, H that of its CPU
// socket, and r marks the peer's.
struct CopiesPoint {
  std::string copy = "d2rd";          // from where to where: d2rd, rd2d, d2rh, rh2d, h2rd, rd2h, h2rh, rh2h
  std::string peer = "intra-node";    // sibling-die, intra-node, inter-node, inter-supernode
  std::vector<Bytes> blocks{64_KiB};  // sizes, which repeat in this order
  Bytes volume = 16_MiB;              // of all blocks of a pair
  int streams = 1;                    // of each pair, which take its blocks in turn
  int pairs = 1;                      // at the same time
  bool by_aicpu = false;              // an AICPU writes the entries in the host's place
  bool rdma = false;                  // by the RDMA plane instead of the Unified Bus

  std::string block_text() const;
};

// The sizes in "128KiB+16KiB". Throws InputError.
std::vector<Bytes> blocks_of(std::string_view text);

// The dies of a pair, and the sockets that take part.
struct CopiesPair {
  int die = 0, peer = 0;
  int socket = -1, peer_socket = -1;  // -1: none takes part
};
// How many pairs of such peers the machine has.
int most_pairs(const CopiesPoint& point, const hw::Topology& topology);
// Throws InputError where the machine has not as many, or the plane does not join the two sides.
std::vector<CopiesPair> pairs_of(const CopiesPoint& point, const hw::Topology& topology);

struct CopiesReading {
  double latency_us = 0;         // from the first call of a host to the last completion seen by one
  double submit_us = 0;          // from the first call until the last entry was at its die
  std::vector<double> block_us;  // of each block, from its entry's turn in its stream to its completion
  std::size_t arrived = 0;       // blocks whose first and last bytes are there
};

// Copies the first blocks of each stream once to warm up translations, then the batch. Empty: interrupted.
std::optional<CopiesReading> measure_copies(const StudyContext& context, const CopiesPoint& point,
                                            SimulatorCounts& counts);

}  // namespace cm384::studies
