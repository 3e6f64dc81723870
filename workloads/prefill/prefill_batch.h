// A batch of prompts made of its parts: in turn, or side by side in two microbatches. Prompts may differ in
// what is computed of them and what stands before it, as those of a service do.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "workloads/prefill/prefill_parts.h"

namespace cm384::studies {

// In microseconds: of all, of a layer with experts, of one without.
struct BatchTimes {
  double all_us = 0, layer_us = 0, dense_us = 0;
};

// How many layers have a part; of those of the head and of the cache, 1.
int count_of(const PrefillOptions& o, const PrefillPart& part);
BatchTimes in_turn(const PrefillOptions& o, const std::vector<PrefillPart>& parts);

// Dense layers, those with experts, the head; of each layer the number of parts up to its end.
struct PartChain {
  std::vector<PlannedPart> parts;
  std::vector<std::size_t> layers;
};
PartChain chain_of(const PrefillOptions& o, const std::vector<PrefillPart>& parts);

struct BatchPrompt {
  int fresh = 1;   // tokens that the batch computes
  int before = 0;  // tokens of the prompt before them, whose latents or keys and values are there
};
// What each microbatch has on the die that has most: prompts are dealt out, the longest first, to the
// microbatch with the fewest new tokens, and among dies alike where a die has whole prompts. A prompt's
// tokens count in multiples of 16 to its attention, and those before them in whole tiles of queries.
std::vector<PrefillShare> shares_of(const PrefillOptions& options, const std::vector<BatchPrompt>& prompts,
                                    int microbatches);
// How long the batch takes, ms, what is cached already read: each part measured as `run prefill` does. Two
// microbatches where that is asked for and there are two prompts. Throws InputError for layers with a window.
// Empty: interrupted.
std::optional<double> measure_prompts(const StudyContext& context, PrefillOptions options,
                                      const std::vector<BatchPrompt>& prompts, int microbatches,
                                      StudyResult& result);

}  // namespace cm384::studies
