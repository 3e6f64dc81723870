// Runs the low-latency exchange of DeepEP on accelerators without cores: their transfers, packet by packet.
#pragma once

#include <vector>

#include "workloads/moe/combine.h"
#include "workloads/moe/expert_messages.h"

namespace cm384::studies {

// On dies 0, 1, ... All ranks begin at once; a rank's time goes from its kernel's turn to its end. Throws
// InputError for options that need cores.
DispatchReading measure_messages(const StudyContext& context, const DispatchCase& setting,
                                 ExchangeDirection direction, SimulatorCounts& counts,
                                 double progress_from = 0, double progress_to = 1);

// Throws InputError for options that need cores.
void refuse_options_of_cores(const StudyContext& context);
// Dies 0, 1, ... of so many ranks. Throws InputError where there are not as many.
std::vector<int> first_dies(int ranks, const hw::Topology& topology);

}  // namespace cm384::studies
