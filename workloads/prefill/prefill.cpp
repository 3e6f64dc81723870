// `cm384 run prefill`: a batch of prompts on an instance whose dies share the experts. Each operator is
// measured on the machine: those of a die on one, exchanges on all. They follow one another; where two
// microbatches share the dies, how they do is composed of these times and of what exchanges and kernels
// measured side by side take from each other (prefill_schedule.h, prefill_overlap.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/text/error.h"
#include "workloads/layer/decode.h"
#include "workloads/prefill/prefill_batch.h"
#include "workloads/prefill/prefill_overlap.h"
#include "workloads/studies.h"

namespace cm384::studies {

void PrefillOptions::follow(const Given& given) {
  if (model.empty()) return;
  const models::Model of = models::load_model(model);
  OptionValues values = DecodeOptions::of_model(of);
  std::erase_if(values,
                [](const auto& value) { return value.first == "mtp" || value.first == "microbatches"; });
  follow_model(hw::list_parameters(*this), given, model, values);
}

void PrefillOptions::settle(const hw::Machine& machine) {
  dies_of_npu = machine.topology.dies_per_package;
  prices.settle(machine);
}

namespace {

// What does not act, or does not fit together.
void check_options(const StudyContext& context, const PrefillOptions& o) {
  const auto refuse = [](const std::string& what) { throw InputError("run prefill: " + what); };
  if ((o.experts > 0) != (o.moe_layers > 0))
    refuse(
        fmt::format("--experts {} and --moe-layers {}: allowed: neither, or both", o.experts, o.moe_layers));
  if (o.layers() == 0) refuse("--dense-layers 0 and --moe-layers 0: allowed: at least one layer");
  o.check_effect(context.given, "run prefill: ");
  if (o.kv_heads == 0)
    refuse_given(context.given, "run prefill: ", {"sliding-layers"},
                 "without --kv-heads: the cache has latents");
  if (o.experts == 0)
    refuse_given(context.given, "run prefill: ", {"path", "chunk", "sdma-chunk"}, "without experts");
  if (o.experts > 0) o.check_groups();
  if (o.kv_heads > 0 && o.heads % o.kv_heads != 0)
    refuse(fmt::format("--kv-heads {}: allowed: a divisor of {} heads", o.kv_heads, o.heads));
  if (o.chosen > 0 && o.by_heads)
    refuse("--attention sp-tp-sp: makes keys and values of each head; allowed with --sparse: data-parallel");
  if (o.sharing_layers >= o.layers() || (o.sharing_layers > 0 && !o.chooses()))
    refuse(fmt::format("--sharing-layers {}: allowed: with --sparse and an indexer, fewer than {} layers",
                       o.sharing_layers, o.layers()));
  if (o.kv_heads > 0 && o.by_heads)
    refuse("--attention sp-tp-sp: gathers latents; allowed with --kv-heads: data-parallel");
  if (o.kv_heads == 0 && o.heads % 16 != 0)
    refuse(fmt::format("--heads {}: allowed with a latent: multiples of 16", o.heads));
  if ((o.sliding_layers > 0) != (o.window > 0))
    refuse(fmt::format("--window {} and --sliding-layers {}: each has an effect only with the other",
                       o.window, o.sliding_layers));
  if (o.sliding_layers >= o.layers())
    refuse(fmt::format("--sliding-layers {}: allowed: fewer than {} layers", o.sliding_layers, o.layers()));
}

// Throws InputError where prompts are not whole or heads cannot be dealt out.
PrefillShare share_of(const PrefillOptions& o, int microbatches) {
  if (o.by_heads && o.heads % o.ranks != 0)
    throw InputError(
        fmt::format("run prefill: --attention sp-tp-sp: {} heads on {} ranks; allowed: as many heads on each",
                    o.heads, o.ranks));
  const int among = o.by_heads ? std::gcd(o.prompt, o.ranks) : 1;
  const int unit = o.dies_of_npu * microbatches * (o.prompt / among);
  if (o.tokens % unit != 0)
    throw InputError(
        fmt::format("run prefill: --tokens {} of an NPU, --prompt {}, {} microbatch{}: {} has whole prompts; "
                    "allowed: multiples of {}",
                    o.tokens, o.prompt, microbatches, microbatches > 1 ? "es" : "",
                    o.by_heads ? "a microbatch" : "a die", unit));
  if (o.cached >= o.prompt)
    throw InputError(
        fmt::format("run prefill: --cached {}: allowed: less than --prompt {}", o.cached, o.prompt));
  const int all = o.tokens / o.dies_of_npu / microbatches;
  const std::int64_t cached = std::int64_t{all} * o.cached;
  if (cached % o.prompt != 0)
    throw InputError(fmt::format(
        "run prefill: --cached {}: {} of {} tokens do not divide over {} ranks; allowed: multiples of {}",
        o.cached, o.cached, o.prompt, o.ranks, std::lcm(128, among)));
  const int read = static_cast<int>(cached / o.prompt), tokens = all - read;
  if (!o.by_heads) return {tokens, read, all / o.prompt, all / o.prompt};
  const auto prompts = static_cast<int>(static_cast<long>(all) * o.ranks / o.prompt);
  return {tokens, read, prompts, (prompts + o.ranks - 1) / o.ranks};
}

// The bytes that a die must hold at least: weights of all layers, the cache, and the largest activations of a
// layer, queries, keys, values and output of attention or the rows of its experts.
void check_memory(const StudyContext& context, const PrefillOptions& o, int microbatches) {
  const double hidden = o.hidden, heads = o.heads, layers = o.dense_layers + o.moe_layers;
  const double own_heads = o.by_heads ? heads / o.ranks : heads;
  const double attention = o.kv_heads > 0 ? hidden * o.head_width * 2 * (heads + o.kv_heads)
                                          : hidden * (o.q_lora + 576) + o.q_lora * own_heads * o.key_width +
                                                512 * own_heads * (o.key_width - 64 + o.value_width) +
                                                heads * o.value_width * hidden;
  const double indexer =
      o.chooses() ? (layers - o.sharing_layers) * (o.index_heads * (128.0 * o.q_lora + hidden) + 128 * hidden)
                  : 0;
  const int redundant = o.redundant >= 0 ? o.redundant : o.ranks;
  const int slots = o.experts == 0 ? 0 : (o.experts + redundant + o.ranks - 1) / o.ranks + o.shared_experts;
  const double network = o.networks == "bf16" ? 2 : o.networks == "int8" ? 1 : 0.5;  // bytes of an element
  const double weights = layers * attention + indexer +
                         network * o.moe_layers * slots * 3 * hidden * o.width +
                         network * 3 * o.dense_layers * hidden * o.dense_width +
                         2 * (o.tied_heads ? 1 : 2) * hidden * o.vocabulary;
  const double gathered = o.by_heads ? 2.0 * o.ranks * (o.q_lora + 576) : 0;
  const double activations = o.kv_heads > 0 ? 2.0 * o.head_width * (2 * heads + 2 * o.kv_heads)
                             : o.chosen > 0 ? heads * 2 * (o.key_width + 576 + 512 + o.value_width)
                                            : heads * 2 * (192 + 192 + 128 + 128);
  const double token = layers * o.token_bytes() + std::max(activations + gathered, 9 * hidden * 3);
  const double room = static_cast<double>(context.machine.memory.hbm.capacity.count);
  const int tokens = o.tokens / o.dies_of_npu;
  if (weights + token * tokens <= room) return;
  const int unit = o.prompt * microbatches;
  const auto fits = static_cast<long>(std::max(0.0, room - weights) / token) / unit * unit;
  throw InputError(
      fmt::format("run prefill: --tokens {}: {:.1f} GB of weights and {:.1f} GB of cache and activations do "
                  "not fit a die's {:.1f} GB; {} tokens per NPU would",
                  o.tokens, weights / 1e9, token * tokens / 1e9, room / 1e9, o.dies_of_npu * fits));
}

// A layer is the mean distance of the ends of those with experts, for both microbatches.
BatchTimes side_by_side(const PrefillOptions& o, const PartChain& chain, const Schedule& schedule) {
  const auto end = [&](std::size_t part) {
    double last = 0;
    for (const auto& own : schedule.ends) last = std::max(last, own[part - 1]);
    return last;
  };
  const auto layer_end = [&](int layer) {
    return layer == 0 ? 0.0 : end(chain.layers[static_cast<std::size_t>(layer) - 1]);
  };
  const int layers = o.dense_layers + o.moe_layers;
  const int from = o.moe_layers > 1 ? o.dense_layers + 1 : o.dense_layers;
  BatchTimes made;
  made.all_us = end(chain.parts.size());
  if (o.moe_layers > 0) made.layer_us = (layer_end(layers) - layer_end(from)) / (layers - from);
  if (o.dense_layers > 0) made.dense_us = layer_end(o.dense_layers) / o.dense_layers;
  return made;
}

// Of each unit, the share of the time that it is taken.
double busy(const PartChain& chain, const Schedule& schedule, unsigned unit, double all_us) {
  double us = 0;
  for (std::size_t m = 0; m < schedule.ends.size(); ++m) {
    for (std::size_t n = 0; n < chain.parts.size(); ++n) {
      if ((chain.parts[n].units & unit) != 0) us += schedule.ends[m][n] - schedule.starts[m][n];
    }
  }
  return us / all_us;
}

Rows shown(const PrefillOptions& o, const std::vector<PrefillPart>& parts, int microbatches, double all_us) {
  Rows rows;
  for (const PrefillPart& part : parts) {
    const int count = count_of(o, part) * microbatches;
    rows.push_back({{"name", part.name},
                    {"of", name_of(part.of)},
                    {"each_us", part.us},
                    {"count", count},
                    {"ms", part.us * count / 1000},
                    {"share", part.us * count / all_us},
                    {"context", part.context}});
  }
  return rows;
}

Rows shown(const std::vector<PrefillOverlap>& overlaps) {
  Rows rows;
  for (const auto& [kind, measured] : overlaps) {
    rows.push_back({{"name", name_of(kind)},
                    {"operator_us", measured.operator_us},
                    {"exchange_us", measured.exchange_us},
                    {"operator_slowdown", measured.operator_slowdown},
                    {"exchange_slowdown", measured.exchange_slowdown}});
  }
  return rows;
}

// A row.
struct PrefillPoint {
  PrefillOptions options;
  int microbatches = 1;
  PrefillShare share;
};

// In the order in which they are run; all are checked before the first one.
std::vector<PrefillPoint> points_of(const StudyContext& context, const PrefillOptions& options) {
  check_options(context, options);
  std::vector<PrefillPoint> points;
  for (const int cached : options.cached_tokens) {
    PrefillOptions own = options;
    own.cached = cached;
    for (const int microbatches : options.microbatches) {
      points.push_back({own, microbatches, share_of(own, microbatches)});
      check_memory(context, own, microbatches);
    }
  }
  return points;
}

StudyResult run(const StudyContext& context, const PrefillOptions& options) {
  const std::vector<PrefillPoint> points = points_of(context, options);
  StudyResult result;
  result.input_files = options.inputs();
  BatchTimes one;  // with one microbatch, for the same cached tokens; of no time: not measured
  std::map<int, double> uncached_us;  // by microbatches
  for (std::size_t n = 0; n < points.size(); ++n) {
    const auto& [o, microbatches, own_share] = points[n];
    const auto part = [&](std::size_t k) {
      return static_cast<double>(k) / static_cast<double>(points.size());
    };
    // Exchanges beside kernels take about as long as a third of all that is measured.
    const double alone = microbatches > 1 ? part(n) + (part(n + 1) - part(n)) * 2 / 3 : part(n + 1);
    PartOfProgress progress(context.progress, part(n), alone, result.simulator);
    const std::vector<PrefillPart> parts = measure_prefill(context.with(progress), o, own_share, result);
    std::vector<PrefillOverlap> overlaps;
    if (microbatches > 1 && !parts.empty()) {
      PartOfProgress beside(context.progress, alone, part(n + 1), result.simulator);
      overlaps = measure_prefill_overlaps(context.with(beside), o.ranks, parts, result);
    }
    if (parts.empty() || context.interrupted != 0) {
      result.complete = false;
      return result;
    }
    const PartChain chain = chain_of(o, parts);
    const Schedule schedule =
        schedule_of(std::vector(static_cast<std::size_t>(microbatches), chain.parts), slowdowns_of(overlaps));
    const BatchTimes batch = microbatches == 1 ? in_turn(o, parts) : side_by_side(o, chain, schedule);
    if (n > 0 && points[n - 1].options.cached != o.cached) one = {};
    if (microbatches == 1) one = batch;
    if (o.cached == 0) uncached_us[microbatches] = batch.all_us;
    Row row{{"ranks", o.ranks},
            {"tokens", o.tokens},
            {"prompt", o.prompt},
            {"cached", o.cached},
            {"microbatches", microbatches},
            {"latency_ms", batch.all_us / 1000},
            {"layer_us", batch.layer_us},
            {"dense_layer_us", batch.dense_us},
            {"tokens_s_npu", o.tokens / (batch.all_us / 1e6)},
            {"tokens_s_tflops",
             o.tokens / (batch.all_us / 1e6) / (o.dies_of_npu * hw::peaks_of(context.machine).int8_tops)}};
    o.prices.add_to(row, o.tokens / (batch.all_us / 1e6));
    if (one.all_us > 0 && microbatches > 1)
      row.set("gain", one.all_us / batch.all_us - 1)
          .set("layer_gain",
               o.moe_layers > 0 ? 1 - batch.layer_us / one.layer_us : 1 - batch.dense_us / one.dense_us);
    if (const auto all = uncached_us.find(microbatches); o.cached > 0 && all != uncached_us.end())
      row.set("saved", 1 - batch.all_us / all->second);
    const auto share = [&](unsigned unit) { return busy(chain, schedule, unit, batch.all_us); };
    row.set("cubes_share", share(kCubeUnit));
    row.set("vectors_share", share(kVectorUnit));
    row.set("fabric_share", share(kFabricUnit));
    row.set("parts", shown(o, parts, microbatches, batch.all_us));
    if (microbatches > 1) row.set("overlaps", shown(overlaps));
    context.finish_row(result, std::move(row));
  }
  options.prices.add_to(result.notes);
  return result;
}

constexpr std::array kPrefillPartFields{
    Field{"name", FieldType::text, "of the part"},
    Field{"of", FieldType::text, "attention, experts, dense network, head or cache"},
    Field{"each_us", FieldType::number, "in a layer, of a microbatch"},
    Field{"count", FieldType::integer, "of layers that have it, times microbatches"},
    Field{"ms", FieldType::number, "in all of them"},
    Field{"share", FieldType::ratio, "of the batch's time; with two microbatches parts overlap"},
    Field{"context", FieldType::ratio, "of its time, what cached tokens take as new ones do"},
};
constexpr std::array kOverlapFields{
    Field{"name", FieldType::text, "what the operators are"},
    Field{"operator_us", FieldType::number, "of those of a layer, cut short, alone"},
    Field{"exchange_us", FieldType::number, "of one between all ranks, alone"},
    Field{"operator_slowdown", FieldType::number, "how many times as long they take while the exchange runs"},
    Field{"exchange_slowdown", FieldType::number, "how many times as long the exchange takes while they run"},
};
constexpr std::array kPrefillFields{
    Field{"ranks", FieldType::integer, "dies of the instance", true}.as_condition(),
    Field{"tokens", FieldType::integer, "of the batch per NPU, of all its dies", true}.as_condition(),
    Field{"prompt", FieldType::integer, "tokens of a prompt", true}.as_condition(),
    Field{"cached", FieldType::integer, "of these, read and not computed", true}.as_condition(),
    Field{"microbatches", FieldType::integer, "that share the dies", true}.as_condition(),
    Field{"latency_ms", FieldType::number, "of the batch: all layers and the head", true},
    Field{"layer_us", FieldType::number, "of a layer with experts, all microbatches", true},
    Field{"dense_layer_us", FieldType::number, "of one without", true},
    Field{"tokens_s_npu", FieldType::number, "tokens per second per NPU, cached or not", true},
    Field{"tokens_s_tflops", FieldType::number,
          "the same over the INT8 peak of an NPU, in 10^12 operations per second"},
    kCostField,
    kEnergyField,
    kTokensField,
    Field{"gain", FieldType::ratio, "more tokens per second than with one microbatch, where that was run",
          true},
    Field{"layer_gain", FieldType::ratio, "less time of a layer than with one microbatch", true},
    Field{"saved", FieldType::ratio, "less time than with nothing cached, where that was run before", true},
    Field{"cubes_share", FieldType::ratio, "of the batch's time in which parts have the cube cores"},
    Field{"vectors_share", FieldType::ratio, "in which parts have the vector cores"},
    Field{"fabric_share", FieldType::ratio, "in which parts have the way to other dies"},
    Field{"parts", FieldType::list, "of the batch, in the order of a layer", false, kPrefillPartFields},
    Field{"overlaps", FieldType::list,
          "with two microbatches: operators of each kind beside an exchange by SDMA", false, kOverlapFields},
};

}  // namespace

const Study kPrefillStudy{"prefill", "a batch of prompts: its layers, operator by operator", kPrefillFields,
                          options_of<PrefillOptions, run>};

}  // namespace cm384::studies
