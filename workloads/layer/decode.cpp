// `cm384 run decode`.
#include "workloads/layer/decode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text/error.h"
#include "workloads/layer/decode_parts.h"
#include "workloads/layer/layer_lanes.h"
#include "workloads/operators/reference/expert_placement.h"
#include "workloads/studies.h"

namespace cm384::studies {

void DecodeOptions::follow(const Given& given) {
  OptionValues values;
  if (!layer.model.empty()) values = of_model(models::load_model(layer.model));
  layer.follow(hw::list_parameters(*this), given, values);
}

OptionValues DecodeOptions::of_model(const models::Model& model) {
  OptionValues values = LayerOptions::of_model(model);
  std::int64_t moe = 0, sliding = 0, window = 0, sharing = 0;
  for (const models::Layer& layer : model.layers) {
    moe += layer.has_experts() ? 1 : 0;
    const models::Indexer& indexer = layer.attention.indexer;
    const bool shares = indexer.chosen > 0 && indexer.heads == 0;
    if (shares && !layer.has_experts())
      throw InputError(
          fmt::format("--model {}: index.pattern: a dense layer is shared; allowed here: full", model.name));
    sharing += shares ? 1 : 0;
    if (layer.attention.kind != models::AttentionKind::sliding) continue;
    sliding += layer.has_experts() || !model.has_experts() ? 1 : 0;
    window = layer.attention.window;
  }
  values.emplace_back("moe-layers", std::to_string(moe));
  values.emplace_back("dense-layers", std::to_string(static_cast<std::int64_t>(model.layers.size()) - moe));
  values.emplace_back("sliding-layers", std::to_string(sliding));
  values.emplace_back("window", std::to_string(window));
  if (sharing > 0) values.emplace_back("sharing-layers", std::to_string(sharing));
  values.emplace_back("vocabulary", std::to_string(model.vocabulary));
  if (model.tied_heads) values.emplace_back("head-weights", "embedding");
  return values;
}

DecodeMemory memory_of(const DecodeOptions& options, int shared_copies, std::uint64_t tokens,
                       std::uint64_t windowed) {
  const LayerOptions& o = options.layer;
  const int sharing = o.sharing();
  const int own_heads = o.heads / sharing, own_width = o.dense_width / sharing;
  const int own_words = options.own_words();
  const double hidden = o.hidden, heads = own_heads, q_lora = o.q_lora, element = o.int8 ? 1 : 2;
  const int kv_heads = o.kv_heads == 0 ? 0 : std::max(1, o.kv_heads / sharing);
  // One layer predicts all further tokens, one after another.
  const double predictors = std::min(o.mtp, 1),
               layers = options.dense_layers + options.moe_layers + predictors;
  const double attention = o.kv_heads > 0
                               ? element * hidden * o.head_width * (2 * heads + 2 * kv_heads)
                               : element * (hidden * (q_lora + 576) + q_lora * heads * o.key_width +
                                            heads * o.value_width * hidden) +
                                     2 * heads * (o.key_width - 64 + o.value_width) * 512;
  // Of the layers that choose themselves; a key in INT8 with its scale.
  const bool chooses = o.chosen > 0 && o.index_heads > 0;
  const double choosing = chooses ? layers - options.sharing_layers : 0, index_token = 128 + 4,
               indexer = element * (hidden * (128.0 + o.index_heads) + q_lora * o.index_heads * 128);
  const int filled = o.experts + shared_copies + std::max(0, o.redundant);
  const int slots = o.dense() ? 0
                    : o.by_load || o.redundant >= 0
                        ? (filled + o.holders() - 1) / o.holders()
                        : reference::place_experts(o.holders(), o.experts, shared_copies).local_experts;
  const double network = o.network_bytes();
  const double experts = network * 3 * slots * hidden * o.width;
  const double token = o.kv_heads > 0 ? 4.0 * kv_heads * o.head_width : 2.0 * 576;
  DecodeMemory memory;
  const double all_experts = (options.moe_layers + predictors) * experts;
  const bool apart = o.expert_ranks > 0;
  if (apart) memory.experts = all_experts;
  memory.weights = layers * attention + choosing * indexer + (apart ? 0 : all_experts) +
                   network * 3 * options.dense_layers * hidden * own_width +
                   2 * hidden * (options.vocabulary + (options.tied_heads ? 0 : own_words));
  const double sliding = options.sliding_layers, full = layers - sliding;
  memory.request =
      sharing * (token * (full * o.kv + sliding * std::min(o.kv, o.window)) + choosing * index_token * o.kv);
  memory.cache = token * (full * static_cast<double>(tokens) + sliding * static_cast<double>(windowed)) +
                 choosing * index_token * static_cast<double>(tokens);
  return memory;
}

double renewal_us(const DecodeOptions& options, const DecodeParts& parts) {
  const LayerOptions& o = options.layer;
  if (o.renew == 0) return 0;
  const double layers = options.moe_layers + std::min(o.mtp, 1),
               bytes = 3 * o.network_bytes() * o.hidden * o.width;
  return layers * parts.new_copies * bytes / static_cast<double>(options.renew_rate.bytes_per_second) * 1e6 /
         o.renew;
}

namespace {

DecodeMemory check_memory(const StudyContext& context, const DecodeOptions& options,
                          const LayerSetting& setting) {
  const DecodeMemory memory =
      memory_of(options, setting.moe.shared_copies, fullest_die(setting),
                fullest_die(setting, static_cast<std::uint32_t>(options.layer.window)));
  const double room = static_cast<double>(context.machine.memory.hbm.capacity.count);
  if (memory.experts > room)
    throw InputError(
        fmt::format("run decode: --expert-ranks {}: experts of {:.1f} GB do not fit a die's {:.1f} GB",
                    options.layer.expert_ranks, memory.experts / 1e9, room / 1e9));
  if (memory.weights > room)
    throw InputError(fmt::format("run decode: --ranks {}: weights of {:.1f} GB do not fit a die's {:.1f} GB",
                                 options.layer.ranks, memory.weights / 1e9, room / 1e9));
  if (memory.weights + memory.cache > room)
    throw InputError(
        fmt::format("run decode: --batch {} --kv {}: {:.1f} GB of weights and {:.1f} GB of cache do not fit "
                    "a die's {:.1f} GB; {} requests per NPU would",
                    options.layer.batch, options.layer.kv, memory.weights / 1e9, memory.cache / 1e9,
                    room / 1e9, 2 * static_cast<int>((room - memory.weights) / memory.request)));
  return memory;
}

// A part of a step.
struct Line {
  const char* name;
  double count, each_us;
  double us() const { return count * each_us; }
};

// What predicting so many tokens takes, without their words in the layers of all tokens.
double mtp_us(int mtp, const DecodeParts& parts) {
  if (mtp == 0) return 0;
  return parts.mtp_projection + parts.first_layer +
         (mtp - 1) * (parts.further_projection + parts.further_layer) +
         mtp * (parts.mtp_head + parts.mtp_sampling);
}

Row step_row(const StudyContext& context, const DecodeOptions& options, const DecodeParts& parts,
             const DecodeMemory& memory, StudyResult& result) {
  const LayerOptions& o = options.layer;
  const double renewed = o.renew > 0 ? options.moe_layers + std::min(o.mtp, 1) : 0;  // layers
  const std::array lines{
      Line{"dense layers", 1.0 * options.other_layers(), parts.dense_attention + parts.dense_network},
      Line{options.layer.dense() ? "first dense layer" : "first MoE layer", 1, parts.first_layer},
      Line{options.layer.dense() ? "dense layers" : "MoE layers",
           options.main_layers() - 1.0 - options.unlike_layers(), parts.layer},
      Line{options.sharing_layers > 0 ? "layers with another's choice" : "sliding layers",
           1.0 * options.unlike_layers(), parts.sliding_layer},
      Line{"head", 1, parts.head},
      Line{"sampling", 1, parts.sampling},
      Line{"MTP layer", std::min(1.0, 1.0 * o.mtp), parts.mtp_projection + parts.first_layer},
      Line{"further MTP layers", std::max(0.0, o.mtp - 1.0), parts.further_projection + parts.further_layer},
      Line{"MTP head", 1.0 * o.mtp, parts.mtp_head},
      Line{"MTP sampling", 1.0 * o.mtp, parts.mtp_sampling},
      Line{"launch", options.launch == "cpu" ? 1.0 + o.mtp : 0.0, options.graph_launch.us()},
      // Each renewal holds one step of `renew` up.
      Line{"renewal", renewed, renewed > 0 ? renewal_us(options, parts) / renewed : 0},
  };
  double step = 0;
  for (const Line& line : lines) step += line.us();
  Rows shown;
  std::vector<std::string> words;
  for (const Line& line : lines) {
    if (line.count == 0) continue;
    shown.push_back({{"name", line.name},
                     {"ms", line.us() / 1000},
                     {"count", static_cast<std::int64_t>(line.count)},
                     {"each_us", line.each_us},
                     {"share", line.us() / step}});
    words.push_back(fmt::format("{} {:.2f}", line.name, line.us() / 1000));
  }
  const double acceptance = o.mtp == 0 ? 0 : options.accepted(0);
  // A predicted token counts where the one before it was right, too.
  double tokens = 1, chance = 1;
  Rows drafts;
  for (int k = 0; k < o.mtp; ++k) {
    chance *= options.accepted(k);
    tokens += chance;
    drafts.push_back({{"depth", k + 1}, {"acceptance", options.accepted(k)}, {"tokens_step", tokens}});
  }
  const double tpot_ms = step / tokens / 1000;
  const KernelShares shares = shares_of(parts);
  result.notes.push_back(fmt::format("batch {}, ms of the step: {}", o.batch, fmt::join(words, ", ")));
  Row row{{"ranks", o.ranks}, {"batch", o.batch}, {"kv", o.kv}, {"mtp", o.mtp}, {"acceptance", acceptance}};
  if (o.expert_ranks > 0) row.set("expert_ranks", o.expert_ranks);
  row.set("microbatches", parts.microbatches).set("split", parts.split);
  // Dies without tokens count as well.
  const double tokens_s = o.batch * 1000 / tpot_ms * o.token_ranks() / o.ranks;
  row.set("tokens_step", tokens);
  if (!drafts.empty()) row.set("drafts", std::move(drafts));
  row.set("step_ms", step / 1000).set("tpot_ms", tpot_ms).set("tokens_s_npu", tokens_s);
  row.set("tokens_s_tflops", tokens_s / (o.dies_of_npu * hw::peaks_of(context.machine).int8_tops));
  options.prices.add_to(row, tokens_s);
  row.set("layer_us", parts.layer);
  row.set("attention_half_us", parts.attention_half).set("experts_half_us", parts.experts_half);
  row.set("slower_half_us", std::max(parts.attention_half, parts.experts_half));
  row.set("mtp_ms", mtp_us(o.mtp, parts) / 1000);
  if (o.expert_ranks > 0) row.set("expert_weights_GB", memory.experts / 1e9);
  row.set("weights_GB", memory.weights / 1e9).set("cache_GB", memory.cache / 1e9);
  row.set("context_bytes", memory.request / o.kv);
  row.set("products_share", shares.products).set("dispatch_share", shares.dispatch);
  if (const auto dispatch =
          std::ranges::find(parts.kernels, "dispatch", &std::pair<std::string, double>::first);
      dispatch != parts.kernels.end())
    row.set("dispatch_us", dispatch->second);
  row.set("parts", std::move(shown));
  if (!parts.kernels_of_layers.empty()) row.set("kernels", rows_of(parts.kernels_of_layers));
  return row;
}

// What does not act, or does not fit together.
void check_options(const StudyContext& context, const DecodeOptions& o) {
  o.layer.check_effect(context.given);
  const auto refuse = [](const std::string& what) { throw InputError("run decode: " + what); };
  if (o.layer.dense() != (o.moe_layers == 0))
    refuse(fmt::format("--experts {} and --moe-layers {}: allowed: neither, or both", o.layer.experts,
                       o.moe_layers));
  if (o.main_layers() == 0) refuse("--dense-layers 0: a dense model has at least one");
  if (o.sliding_layers >= o.main_layers())
    refuse(fmt::format("--sliding-layers {}: allowed: fewer than {} layers, of which the first is not one",
                       o.sliding_layers, o.main_layers()));
  if ((o.sliding_layers > 0) != (o.layer.window > 0))
    refuse(fmt::format("--window {} and --sliding-layers {}: each has an effect only with the other",
                       o.layer.window, o.sliding_layers));
  if (o.sharing_layers >= std::max(1, o.moe_layers))
    refuse(fmt::format("--sharing-layers {}: allowed: fewer than {} layers with experts", o.sharing_layers,
                       o.moe_layers));
  if (o.sharing_layers > 0 && (o.layer.chosen == 0 || o.layer.index_heads == 0))
    refuse("--sharing-layers: has an effect only with --sparse, and with an indexer in other layers");
  if (o.layer.token_ranks() % o.head_sharing() != 0)
    refuse(fmt::format("--head-tp {}: allowed: divisors of {} ranks{}", o.head_sharing(),
                       o.layer.token_ranks(), o.layer.expert_ranks > 0 ? " with tokens" : ""));
}

StudyResult run(const StudyContext& context, const DecodeOptions& all) {
  StudyResult result;
  check_options(context, all);
  if (all.layer.mtp == 0 && context.given.contains("acceptance"))
    throw InputError("run decode: --acceptance: has an effect only with --mtp 1 to 3");
  const std::size_t drafts = all.draft_acceptance.size();
  if (drafts > 0 && drafts != static_cast<std::size_t>(all.layer.mtp))
    throw InputError(
        fmt::format("run decode: --draft-acceptance: {} numbers; allowed: one for each of --mtp {}", drafts,
                    all.layer.mtp));
  if (drafts > 0 && context.given.contains("acceptance"))
    throw InputError("run decode: --acceptance: has no effect with --draft-acceptance");
  std::vector<DecodeOptions> steps;
  std::vector<DecodeMemory> memories;
  const LayerOptions layer = with_lengths(context, all.layer, result);
  for (const int batch : all.batch) {
    DecodeOptions& options = steps.emplace_back(all);
    options.layer = layer;
    options.layer.batch = batch;
    memories.push_back(check_memory(context, options, layer_settings(context, options.layer).front()));
  }
  StudyContext own = context;
  // A step is no machine's.
  std::optional<LaneTimeline> timeline = open_own_timeline(own, "decode", "a step");
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const auto part = [&](std::size_t done) {
      return static_cast<double>(done) / static_cast<double>(steps.size());
    };
    PartOfProgress progress(context.progress, part(n), part(n + 1), result.simulator);
    const auto parts = decode_parts(own.with(progress), steps[n], result);
    if (!parts) {
      result.complete = false;
      return result;
    }
    context.finish_row(result, step_row(context, steps[n], *parts, memories[n], result));
    if (!timeline) continue;
    write_lanes(*timeline, static_cast<int>(n) + 1, steps[n], *parts);
    if (parts->kernels_of_layers.empty())
      result.notes.push_back(
          fmt::format("the timeline has no kernels of batch {}: --measured {} was written without them",
                      steps[n].layer.batch, steps[n].measured));
  }
  if (timeline) timeline->finish();
  all.prices.add_to(result.notes);
  return result;
}

constexpr std::array kDecodePartFields{
    Field{"name", FieldType::text, "of the part"},        Field{"ms", FieldType::number, "of all of them"},
    Field{"count", FieldType::integer, "how many of it"}, Field{"each_us", FieldType::number, "of one"},
    Field{"share", FieldType::ratio, "of the step"},
};
constexpr std::array kDraftFields{
    Field{"depth", FieldType::integer, "of the token: 1 the first"}.as_condition(),
    Field{"acceptance", FieldType::ratio, "that it is right, if those before it are"}.as_condition(),
    Field{"tokens_step", FieldType::number, "tokens of a step with this one and those before it"},
};
constexpr std::array kDecodeFields{
    Field{"ranks", FieldType::integer, "dies that take part, one rank each", true}.as_condition(),
    Field{"expert_ranks", FieldType::integer,
          "of them: that hold all experts and have no tokens, where given"}
        .as_condition(),
    Field{"batch", FieldType::integer,
          "requests per NPU, of all its dies; with --expert-ranks of those with tokens", true}
        .as_condition(),
    Field{"kv", FieldType::integer, "mean tokens of a request in the cache", true}.as_condition(),
    Field{"mtp", FieldType::integer, "tokens predicted beyond the next one"}.as_condition(),
    Field{"acceptance", FieldType::ratio, "of the first of these"}.as_condition(),
    Field{"microbatches", FieldType::integer, "parts of a die's batch"}.as_condition(),
    Field{"split", FieldType::text, "AIC/AIV of attention and of the experts", true}.as_condition(),
    Field{"tokens_step", FieldType::number, "tokens of a request that a step gives, on average"},
    Field{"drafts", FieldType::list, "of the predicted tokens, one after another", false, kDraftFields},
    Field{"step_ms", FieldType::number, "the step", true},
    Field{"tpot_ms", FieldType::number, "time per output token: the step over tokens_step", true},
    Field{"tokens_s_npu", FieldType::number, "tokens per second per NPU: batch over tpot_ms, over all dies",
          true},
    Field{"tokens_s_tflops", FieldType::number,
          "the same over the INT8 peak of an NPU, in 10^12 operations per second"},
    kCostField,
    kEnergyField,
    kTokensField,
    Field{"layer_us", FieldType::number, "of a layer with experts among many alike", true},
    Field{"attention_half_us", FieldType::number, "of a microbatch and layer: prolog to output projection"},
    Field{"experts_half_us", FieldType::number, "of a microbatch and layer: norm and gate to combine"},
    Field{"slower_half_us", FieldType::number, "the longer of the two halves"},
    Field{"mtp_ms", FieldType::number,
          "of the layer, the head and the choice of words that predict a further token"},
    Field{"weights_GB", FieldType::number, "of a die, with --expert-ranks of one with tokens"},
    Field{"expert_weights_GB", FieldType::number, "of a die with experts, with --expert-ranks"},
    Field{"cache_GB", FieldType::number, "of the die whose requests have the longest contexts"},
    Field{"context_bytes", FieldType::number,
          "bytes that a token of a request takes in the cache, over all dies that have a part of it"},
    Field{"products_share", FieldType::ratio,
          "of a layer's kernel time that is of kernels that are mostly products of weights: prolog, output, "
          "experts"},
    Field{"dispatch_share", FieldType::ratio, "of a layer's kernel time that is dispatch"},
    Field{"dispatch_us", FieldType::number, "of one dispatch of a layer, mean over ranks and microbatches"},
    Field{"parts", FieldType::list, "of the step", false, kDecodePartFields},
    Field{"kernels", FieldType::list, "of a rank in detail, in the layers with experts that ran", false,
          kLayerKernelFields},
};

}  // namespace

const Study kDecodeStudy{"decode", "a decode step and the time per output token", kDecodeFields,
                         options_of<DecodeOptions, run>};

}  // namespace cm384::studies
