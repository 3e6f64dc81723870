// Options and rows that the studies of the MoE operators share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/combine.h"
#include "studies/options.h"
#include "studies/result.h"

namespace cm384::studies {

// Ranks, tokens, experts, routing, placement, iterations, payload, faults.
void add_moe_options(boost::program_options::options_description& options);
// Fills a setting from them, ranks aside. Throws InputError.
void read_moe_options(const StudyContext& context, DispatchCase& setting);
// Those of combine alone: completion, whether a shared expert's output is added.
void add_combine_options(boost::program_options::options_description& options);
void read_combine_options(const StudyContext& context, CombineCase& setting);
// The trace that the routing is read from, if it is one.
std::vector<std::string> routing_files(const StudyContext& context);

// How one operator is shown.
struct OperatorRows {
  std::string study;  // dispatch, combine: of its published figures too
  int element_bytes;  // of what it sends
  std::vector<const char*> phases;
  Json more;  // columns of its own, the same in every row
};
using MeasureOperator =
    std::function<DispatchReading(int ranks, SimulatorCounts& counts, double from, double to)>;

// One row for each of the numbers of ranks asked for.
StudyResult run_operator(const StudyContext& context, const DispatchCase& setting, const OperatorRows& rows,
                         const MeasureOperator& measure);

// Calls `run` for each number of ranks asked for, with its part of the study's work, until interrupted.
void for_each_ranks(const StudyContext& context, StudyResult& result,
                    const std::function<void(int ranks, double from, double to)>& run);

}  // namespace cm384::studies
