// The normal exchange of DeepEP (deepseek-ai/DeepEP@dd758caf, docs/legacy.md) as work of units and rows
// between them, for accelerators without cores. Half of the units given to it send, half receive and forward,
// in pairs that are channels; a channel has a contiguous share of each rank's tokens.
//
// Dispatch: a token's row goes once to each server that has experts for it, by RDMA to the GPU of the
// sender's number there, which stores it to each GPU of its server that has some of them. Combine: the way
// back, added up on each of these GPUs and once more where the token is from. In one server senders store to
// the GPUs themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "base/text/units.h"
#include "hw/machine.h"
#include "workloads/moe/expert_messages.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::studies {

// What a unit does in one go, once `needs` rows have come; then it sends rows of its own, each to another
// work.
struct UnitWork {
  std::uint16_t rank = 0, unit = 0;
  std::uint32_t needs = 0;
  std::uint32_t first = 0, rows = 0;  // in NormalExchange::rows
  Time time;
  std::uint32_t moved = 0;  // rows that it reads and writes
};

struct NormalExchange {
  std::uint32_t bytes = 0;  // of a row
  std::vector<UnitWork> works;
  std::vector<std::uint32_t> rows;  // the work that each goes to
  // What the published bandwidths count, of all ranks. Of one server: rows that GPUs get of tokens, the
  // sender's own inside; of several: rows that they send to servers, their own inside.
  std::uint64_t counted = 0;

  std::uint64_t count(const hw::Topology& topology, Carrier carrier) const;
};

// A row: FP8 with a scale of 4 B per 128 elements, BF16 on the way back.
std::uint32_t normal_row_bytes(ExchangeDirection direction, int hidden);

// Rank r is on die r; all servers that take part have as many ranks. `units`: of a rank, an even number.
NormalExchange make_normal_exchange(const reference::DispatchCase& layer, const hw::Machine& machine,
                                    ExchangeDirection direction, int units);

}  // namespace cm384::studies
