// Runs the normal exchange of DeepEP on accelerators without cores: units by their rates, rows packet by
// packet.
#pragma once

#include "workloads/moe/combine.h"
#include "workloads/moe/expert_messages.h"

namespace cm384::studies {

// As measure_messages(), with setting.normal. Throws InputError for options that need cores, and for ranks
// that do not fill servers.
DispatchReading measure_normal(const StudyContext& context, const DispatchCase& setting,
                               ExchangeDirection direction, SimulatorCounts& counts, double progress_from = 0,
                               double progress_to = 1);

}  // namespace cm384::studies
