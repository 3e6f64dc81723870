// What a setting of the MoE operators comes to.
#pragma once

#include <cstdint>

#include "operators/combine/combine.h"
#include "operators/dispatch/dispatch.h"
#include "studies/combine.h"

namespace cm384::studies {

// Tokens, experts and routing of a setting. Reads the trace where it names one.
reference::DispatchCase make_moe_case(std::uint64_t seed, const DispatchCase& setting);

inline operators::CombineSetting combine_setting(const CombineCase& setting) {
  return {setting.completion == "atomic", !setting.no_shared_output};
}

}  // namespace cm384::studies
