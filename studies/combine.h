// FusedCombine by AIV-Direct over many ranks: dispatch first, then one launch of kernel `combine` a rank and
// iteration on what that left.
#pragma once

#include "studies/dispatch.h"

namespace cm384::studies {

struct CombineCase : DispatchCase {
  std::string completion = "flag";  // flag or atomic
  bool shared_output = true;        // add a shared expert's output that each rank made itself
};

// Readings of both operators from one machine. Phases of combine are those of enum cm384_combine_phase; its
// rows are right only where those of dispatch are.
struct CombineReading {
  DispatchReading dispatch, combine;
};

// Warm-up and counted iterations of dispatch, then as many of combine; that of dispatch is what
// measure_dispatch gives for the same setting.
CombineReading measure_combine(const StudyContext& context, const CombineCase& setting,
                               SimulatorCounts& counts, double progress_from = 0, double progress_to = 1);

}  // namespace cm384::studies
