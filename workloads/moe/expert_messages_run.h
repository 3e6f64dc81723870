// Runs the low-latency exchange of DeepEP on accelerators without cores: their transfers, packet by packet.
#pragma once

#include <functional>
#include <vector>

#include "workloads/frame/session.h"
#include "workloads/moe/combine.h"
#include "workloads/moe/expert_messages.h"

namespace cm384::studies {

// On dies 0, 1, ... All ranks begin at once; a rank's time goes from its kernel's turn to its end. Throws
// InputError for options that need cores.
DispatchReading measure_messages(const StudyContext& context, const DispatchCase& setting,
                                 ExchangeDirection direction, SimulatorCounts& counts,
                                 double progress_from = 0, double progress_to = 1);

// Runs the rounds of an exchange of `layer`, of which those after the warm-up count. `round` gives each
// rank's microseconds from its kernel's turn to its end, launch and teardown included; none: interrupted.
DispatchReading measure_rounds(Session& session, const DispatchCase& setting,
                               const reference::DispatchCase& layer, const hw::Processor& processor,
                               const std::function<std::vector<double>()>& round, SimulatorCounts& counts);

// Throws InputError for options that need cores.
void refuse_options_of_cores(const StudyContext& context);
// Dies 0, 1, ... of so many ranks. Throws InputError where there are not as many.
std::vector<int> first_dies(int ranks, const hw::Topology& topology);

}  // namespace cm384::studies
