// Which contexts go from prefill instances to dies of a decode instance, and when they would be there in the
// closed form that `run serve` has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine.h"
#include "workloads/service/drawn_requests.h"

namespace cm384::studies {

struct TransferSetting {
  int prefill = 1, prefill_ranks = 32, decode_ranks = 320;
  int requests = 16;  // of each prefill instance
  std::string prompt = "fixed:4096";
  Bytes token{70'272};
  bool spread = false;          // contexts to dies of other groups in turn; otherwise as the service does
  bool decode_moves = false;    // decode reads; otherwise prefill writes
  bool one_at_a_time = false;   // at the link of the side that does not move the bytes, too
  Bytes copy = Bytes{1 << 30};  // of one entry of a stream at most
  std::string placement = "linear";
  // What runs on receiving dies meanwhile; 0 dies: nothing.
  int beside_dies = 0, beside_runs = 3, sequences = 24, kv_len = 4096;
};

struct PlannedContext {
  int instance = 0, decode_rank = 0;
  int sender = 0, receiver = 0;  // dies
  std::int64_t bytes = 0;
  Time closed;  // from the end of the batch until it is there, in closed form
};

// In the order in which they are given: an instance's after another's. Throws InputError where the machine
// has fewer dies, or a die less memory.
std::vector<PlannedContext> plan_contexts(const hw::Machine& machine, const TransferSetting& setting,
                                          std::uint64_t seed);

}  // namespace cm384::studies
