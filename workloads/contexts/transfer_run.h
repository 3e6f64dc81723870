// Contexts on their way from prefill to decode, copy by copy over the simulated RDMA plane.
#pragma once

#include <optional>
#include <vector>

#include "workloads/contexts/transfer_plan.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

// Points of time count from the end of the batch.
struct SentContext {
  Time begun;  // its first requests may leave
  Time there;  // the last of its bytes are acknowledged
};

// Of cores that attention runs on: those of a stream of decode ([P] 4.2).
// Groups of cores that attention beside a transfer runs on: two thirds, as in a decode layer.
inline int beside_groups(const hw::Die& die) {
  return die.groups() * 2 / 3;
}

// Attention on dies that receive.
struct BesideReading {
  double alone_us = 0, beside_us = 0;  // mean over dies and launches
  int dies = 0, launches = 0;          // beside: those within a transfer to their die
};

struct TransferReading {
  std::vector<SentContext> contexts;  // in the order of the plan
  std::size_t arrived = 0;            // of these
  std::optional<BesideReading> beside;
};

// Empty: interrupted. Throws InputError where a die's memory is too small.
std::optional<TransferReading> measure_transfer_of(const StudyContext& context,
                                                   const TransferSetting& setting,
                                                   const std::vector<PlannedContext>& plan,
                                                   SimulatorCounts& counts);

// The most contexts that are under way at a time, of those with the same `die`.
int most_at_a_time(const std::vector<PlannedContext>& plan, const std::vector<SentContext>& sent,
                   int PlannedContext::*die);

}  // namespace cm384::studies
