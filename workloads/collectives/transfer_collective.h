// Collectives among accelerators without cores, in one server: parts go from memory to memory as transfers,
// packet by packet, and compute units add what has come. A kernel on each does it, which is launched once.
//
// Rounds are those of copies (workloads/operators/collectives/copy_schedule.h). A rank begins a round when
// all that it sends and gets in the round before is there and added up, poll_latency after the last of it.
#pragma once

#include <optional>
#include <string>

#include "workloads/frame/session.h"
#include "workloads/operators/collectives/copy_schedule.h"
#include "workloads/operators/reference/collectives.h"

namespace cm384::studies {

struct TransferCollectiveCase {
  reference::CollectiveCase collective;
  operators::CopyAlgorithm algorithm = operators::CopyAlgorithm::direct;
  int iterations = 1, warmup = 1;
};

// Means over ranks and iterations.
struct TransferCollectiveReading {
  double task_us = 0, kernel_us = 0;
  double pace_us = 0;     // from the begin of the first to the end of the last rank, over the iterations
  double sent_bytes = 0;  // by a rank, over the server's links
};

// Bytes of a part that a move carries.
std::uint64_t part_bytes(const reference::CollectiveCase& collective);

// Ranks stand on dies 0, 1, ... Empty: interrupted. Throws InputError where the algorithm does not take so
// many ranks.
std::optional<TransferCollectiveReading> run_transfer_collective(const StudyContext& context,
                                                                 const std::string& what,
                                                                 const TransferCollectiveCase& made,
                                                                 SimulatorCounts& counts);

}  // namespace cm384::studies
