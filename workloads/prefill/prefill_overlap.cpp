#include "workloads/prefill/prefill_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cm384::studies {
namespace {

// What is cut short: long against its start, short enough to be run on all dies.
constexpr double kAbout_us = 400;

// The same share of all that a layer with experts has of a kind.
Sequence some_of(const std::vector<PrefillPart>& parts, PartKind kind) {
  const auto counts = [kind](const PrefillPart& part) {
    return part.kind == kind && part.cut &&
           (part.of == PrefillPart::Of::attention || part.of == PrefillPart::Of::moe);
  };
  double us = 0;
  for (const PrefillPart& part : parts) us += counts(part) ? part.us : 0;
  Sequence made;
  for (const PrefillPart& part : parts) {
    if (!counts(part)) continue;
    for (MakeOperator& make : part.cut(std::min(1.0, kAbout_us / us))) made.push_back(std::move(make));
  }
  return made;
}

}  // namespace

std::vector<PrefillOverlap> measure_prefill_overlaps(const StudyContext& context, int ranks,
                                                     const std::vector<PrefillPart>& parts,
                                                     StudyResult& result) {
  std::vector<PrefillOverlap> made;
  if (std::ranges::find(parts, PartKind::exchange, &PrefillPart::kind) == parts.end()) return made;
  constexpr std::array kKinds{PartKind::product, PartKind::attention, PartKind::rows, PartKind::network};
  for (std::size_t n = 0; n < kKinds.size(); ++n) {
    const auto part = [&](std::size_t k) { return static_cast<double>(k) / kKinds.size(); };
    PartOfProgress progress(context.progress, part(n), part(n + 1), result.simulator);
    const auto overlap =
        measure_overlap(context.with(progress), fmt::format("{} beside an exchange", name_of(kKinds[n])),
                        ranks, some_of(parts, kKinds[n]), result.simulator);
    if (!overlap) break;
    made.push_back({kKinds[n], *overlap});
  }
  return made;
}

Slowdowns slowdowns_of(const std::vector<PrefillOverlap>& overlaps) {
  Slowdowns slowdowns;
  for (const auto& [kind, measured] : overlaps) {
    slowdowns.set(kind, PartKind::exchange, measured.operator_slowdown);
    slowdowns.set(PartKind::exchange, kind, measured.exchange_slowdown);
  }
  return slowdowns;
}

}  // namespace cm384::studies
