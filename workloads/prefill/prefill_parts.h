// The parts of a batch of prompts: each operator of a die by itself, exchanges and collectives on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/frame/study.h"
#include "workloads/operators/attention/ragged.h"
#include "workloads/prefill/overlap.h"
#include "workloads/prefill/prefill_options.h"
#include "workloads/prefill/prefill_schedule.h"

namespace cm384::studies {

struct PrefillPart {
  // Where it belongs.
  enum class Of : std::uint8_t { attention, moe, dense, head, cache };  // the last two once in a batch
  // Which layers have it.
  enum class Layers : std::uint8_t { all, full, sliding };
  std::string name;
  Of of = Of::attention;
  double us = 0;       // in a layer
  unsigned units = 0;  // PrefillUnits that it takes
  PartKind kind = PartKind::product;
  double context = 0;  // share of it that goes with all tokens, cached ones too
  // Operators of a die that take about `share` of its time, in the same way. None: not cut, or an exchange.
  std::function<Sequence(double share)> cut;
  Layers layers = Layers::all;
};
std::string_view name_of(PrefillPart::Of of);

// What a microbatch has on a die.
struct PrefillShare {
  int tokens = 0;   // that it computes
  int cached = 0;   // that are read
  int prompts = 0;  // whole ones whose attention the die computes, of all its heads or of some
  int last = 0;     // prompts whose last tokens it has, at most
  std::vector<operators::RaggedPrompt> lengths{};  // of these prompts; none: all as the options say
};
// In the order of a layer, the head and what is read of cached tokens last. Empty: interrupted.
std::vector<PrefillPart> measure_prefill(const StudyContext& context, const PrefillOptions& options,
                                         const PrefillShare& share, StudyResult& result);

}  // namespace cm384::studies
