// The case of the MoE operators that follows from a setting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/moe/combine.h"
#include "workloads/operators/combine/combine.h"
#include "workloads/operators/dispatch/dispatch.h"

namespace cm384::studies {

// Tokens, experts and routing of a setting. Reads the trace where it names one.
reference::DispatchCase make_moe_case(std::uint64_t seed, const DispatchCase& setting);

// How many rows dispatch moves, those of shared experts among them.
struct RoutedRows {
  std::vector<std::vector<std::uint32_t>> of_expert;  // [ranks][own experts]: that arrive
  std::vector<std::vector<std::uint64_t>> between;    // [source][target rank]
};
RoutedRows routed_rows(const reference::DispatchCase& dispatch);

// A placement by load that is renewed every so many steps, by the load of the steps since the renewal before.
struct Renewal {
  int every = 0;  // steps; 0: one placement, as make_moe_case has it
  int drift = 0;  // steps after which zipf's weights move on by one expert; 0: they stay
};

// A layer in a step half-way between two renewals.
struct RenewedLayer {
  std::vector<reference::DispatchCase> parts;  // by microbatch, all with one placement
  std::size_t new_copies = 0;                  // most that a rank had to load at the renewal
};

// Steps of the layer are drawn, or taken from the trace, one after another: `every` of them for the placement
// before, `every` for the one in hand, then those up to the one shown.
RenewedLayer make_renewed_layer(std::uint64_t seed, const DispatchCase& setting, int microbatches,
                                const Renewal& renewal);

// Throws InputError where --across relay joins nothing, or more supernodes than a rank has relays in.
void check_relays(int supernodes, bool full_mesh);

inline operators::CombineSetting combine_setting(const CombineCase& setting) {
  return {setting.completion == "atomic", !setting.no_shared_output};
}

}  // namespace cm384::studies
