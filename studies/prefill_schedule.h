// When the parts of a batch run, where microbatches share a die: each follows its own order, and each part
// needs units that it has alone. Composed of times; nothing is simulated.
#pragma once

#include <vector>

namespace cm384::studies {

// Of a die: all of its cube cores, all of its vector cores, its way to other dies.
enum PrefillUnits : unsigned { kCubeUnit = 1, kVectorUnit = 2, kFabricUnit = 4 };
inline constexpr int kPrefillUnits = 3;

struct PlannedPart {
  double us = 0;
  unsigned units = 0;  // PrefillUnits
};

// The end of each part of each microbatch, from 0 on. A part begins when the one before it has ended and its
// units are free; of those that could begin first, the one that has waited longest, then that of the earlier
// microbatch. No part is kept back for a later one.
std::vector<std::vector<double>> ends_of(const std::vector<std::vector<PlannedPart>>& microbatches);

}  // namespace cm384::studies
