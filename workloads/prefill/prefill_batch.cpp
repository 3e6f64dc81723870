#include "workloads/prefill/prefill_batch.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text/error.h"
#include "workloads/prefill/prefill_overlap.h"

namespace cm384::studies {

int count_of(const PrefillOptions& o, const PrefillPart& part) {
  const PrefillPart::Of of = part.of;
  if (part.layers == PrefillPart::Layers::sliding) return o.unlike_layers();
  if (part.layers == PrefillPart::Layers::full) return o.layers() - o.unlike_layers();
  if (of == PrefillPart::Of::head || of == PrefillPart::Of::cache) return 1;
  return of == PrefillPart::Of::dense ? o.dense_layers
         : of == PrefillPart::Of::moe ? o.moe_layers
                                      : o.moe_layers + o.dense_layers;
}

BatchTimes in_turn(const PrefillOptions& o, const std::vector<PrefillPart>& parts) {
  // A layer is one that sees all tokens; one with a window takes so much more, or less.
  std::array<double, 5> sums{};
  double window = 0;
  for (const PrefillPart& part : parts) {
    if (part.layers != PrefillPart::Layers::sliding) sums[static_cast<std::size_t>(part.of)] += part.us;
    if (part.layers == PrefillPart::Layers::sliding) window += part.us;
    if (part.layers == PrefillPart::Layers::full) window -= part.us;
  }
  BatchTimes made;
  made.layer_us = o.moe_layers > 0 ? sums[0] + sums[1] : 0;
  made.dense_us = o.dense_layers > 0 ? sums[0] + sums[2] : 0;
  made.all_us = o.moe_layers * made.layer_us + o.dense_layers * made.dense_us + sums[3] + sums[4];
  if (o.unlike_layers() > 0) made.all_us += o.unlike_layers() * window;
  return made;
}

PartChain chain_of(const PrefillOptions& o, const std::vector<PrefillPart>& parts) {
  PartChain made;
  const auto add = [&](PrefillPart::Of of, bool sliding = false) {
    const auto other = sliding ? PrefillPart::Layers::full : PrefillPart::Layers::sliding;
    for (const PrefillPart& part : parts) {
      if (part.of == of && part.layers != other) made.parts.push_back({part.us, part.units, part.kind});
    }
  };
  add(PrefillPart::Of::cache);
  for (int layer = 0; layer < o.dense_layers + o.moe_layers; ++layer) {
    add(PrefillPart::Of::attention, layer >= o.layers() - o.unlike_layers());
    add(layer < o.dense_layers ? PrefillPart::Of::dense : PrefillPart::Of::moe);
    made.layers.push_back(made.parts.size());
  }
  add(PrefillPart::Of::head);
  return made;
}

namespace {

using Prompts = std::vector<BatchPrompt>;

int fresh_of(const Prompts& prompts) {
  return std::accumulate(prompts.begin(), prompts.end(), 0,
                         [](int sum, const BatchPrompt& prompt) { return sum + prompt.fresh; });
}

// The longest first, each to the one with the fewest new tokens.
std::vector<Prompts> deal_prompts(Prompts prompts, int among) {
  std::ranges::stable_sort(prompts, std::greater(), &BatchPrompt::fresh);
  std::vector<Prompts> made(static_cast<std::size_t>(among));
  for (const BatchPrompt& prompt : prompts) std::ranges::min_element(made, {}, fresh_of)->push_back(prompt);
  return made;
}

int spread_over(int tokens, int dies) {
  return (tokens + dies - 1) / dies;
}

PrefillShare share_of_die(const PrefillOptions& o, const Prompts& prompts) {
  const Prompts own = o.by_heads ? prompts : std::ranges::max(deal_prompts(prompts, o.ranks), {}, fresh_of);
  const int dies = o.by_heads ? o.ranks : 1;
  PrefillShare share;
  for (const BatchPrompt& prompt : own) {
    share.cached += prompt.before;
    constexpr unsigned kTile = CM384_FLASH_TILE;
    const auto all = static_cast<unsigned>(prompt.before + prompt.fresh);
    share.lengths.push_back({(all + 15) / 16 * 16, static_cast<unsigned>(prompt.before) / kTile * kTile});
  }
  share.tokens = spread_over(fresh_of(own), dies);
  share.cached = spread_over(share.cached, dies);
  share.prompts = static_cast<int>(own.size());
  share.last = spread_over(share.prompts, dies);
  return share;
}

}  // namespace

std::vector<PrefillShare> shares_of(const PrefillOptions& options, const std::vector<BatchPrompt>& prompts,
                                    int microbatches) {
  std::vector<PrefillShare> shares;
  for (const Prompts& own :
       deal_prompts(prompts, std::min<int>(microbatches, static_cast<int>(prompts.size()))))
    shares.push_back(share_of_die(options, own));
  return shares;
}

std::optional<double> measure_prompts(const StudyContext& context, PrefillOptions options,
                                      const std::vector<BatchPrompt>& prompts, int microbatches,
                                      StudyResult& result) {
  if (options.window > 0)
    throw InputError("a batch of prompts of several lengths: allowed: layers without a window");
  options.cached = 0;  // is in the shares
  const std::vector<PrefillShare> shares = shares_of(options, prompts, microbatches);
  // Exchanges beside kernels take about as long as a microbatch.
  const double pieces = static_cast<double>(shares.size() > 1 ? shares.size() + 1 : 1);
  std::vector<std::vector<PrefillPart>> parts;
  for (std::size_t n = 0; n < shares.size(); ++n) {
    const auto done = static_cast<double>(n);
    PartOfProgress progress(context.progress, done / pieces, (done + 1) / pieces, result.simulator);
    parts.push_back(measure_prefill(context.with(progress), options, shares[n], result));
    if (parts.back().empty()) return {};
  }
  if (parts.size() == 1) return in_turn(options, parts.front()).all_us / 1000;
  PartOfProgress beside(context.progress, 1 - 1 / pieces, 1, result.simulator);
  const auto overlaps = measure_prefill_overlaps(context.with(beside), options.ranks, parts.front(), result);
  if (context.interrupted != 0) return {};
  std::vector<std::vector<PlannedPart>> chains;
  for (const auto& own : parts) chains.push_back(chain_of(options, own).parts);
  double end = 0;
  for (const auto& ends : schedule_of(chains, slowdowns_of(overlaps)).ends) end = std::max(end, ends.back());
  return end / 1000;
}

}  // namespace cm384::studies
