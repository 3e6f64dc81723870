// FusedCombine by AIV-Direct over many ranks: dispatch first, then one launch of kernel `combine` a rank and
// iteration on what that left.
#pragma once

#include "workloads/moe/dispatch.h"

namespace cm384::studies {

struct CombineCase : DispatchCase {
  std::string completion = "flag";  // flag or atomic
  bool no_shared_output = false;    // of a shared expert, which each rank made itself

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    DispatchCase::describe(self, visit);
    visit("completion", self.completion, OneOf{{"flag", "atomic"}},
          "how a row says that it has arrived: a 32 B flag of its own, or an atomic add to its token's flag");
    visit(
        "no-shared-output", self.no_shared_output,
        "leave out the output of a shared expert, made on the token's own rank, that is added with weight 1");
  }
  static OptionValues of_model(const models::Model& model);
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
