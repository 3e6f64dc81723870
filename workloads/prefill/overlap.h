// What operators and an exchange by SDMA take from each other while both run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/kernels/op_run.h"

namespace cm384::studies {

// Operators of a die that follow one another.
using Sequence = std::vector<MakeOperator>;

// Means over ranks.
struct Overlap {
  double operator_us = 0, exchange_us = 0;              // each alone; of all operators
  double operator_slowdown = 1, exchange_slowdown = 1;  // while both run: how many times as long it takes
};

// Of one of two that run at some time: from the time it takes alone, the time it took and for how long of
// that the other ran. 1 where the other took nothing of it, and where they did not meet.
double slowdown_while_both(double alone_us, double took_us, double both_us);

// The operators run on all cores of every rank, in a captured graph, again and again if they are short, and
// an exchange between all ranks, as many bytes to each, begins with them and takes about as long. Empty:
// interrupted.
std::optional<Overlap> measure_overlap(const StudyContext& context, const std::string& what, int ranks,
                                       const Sequence& sequence, SimulatorCounts& counts);

}  // namespace cm384::studies
