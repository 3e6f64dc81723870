// What the parts of two microbatches take from each other where one's exchange runs beside the other's
// kernels: measured on the machine, all dies of the instance with firmware.
#pragma once

#include <vector>

#include "workloads/prefill/overlap.h"
#include "workloads/prefill/prefill_parts.h"

namespace cm384::studies {

struct PrefillOverlap {
  PartKind kind = PartKind::product;  // of the operators beside the exchange
  Overlap measured;
};

// Of each kind that cores compute, what a layer with experts has of it, all cut to the same share, some
// hundred microseconds together. None where no part is an exchange; after an interruption fewer.
std::vector<PrefillOverlap> measure_prefill_overlaps(const StudyContext& context, int ranks,
                                                     const std::vector<PrefillPart>& parts,
                                                     StudyResult& result);

// Each kind against exchanges; kernels beside kernels and exchanges beside exchanges take nothing.
Slowdowns slowdowns_of(const std::vector<PrefillOverlap>& overlaps);

}  // namespace cm384::studies
