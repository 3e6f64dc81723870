#include "workloads/layer/decode_parts.h"

#include <fmt/format.h>

#include <array>

#include "base/text/content_hash.h"
#include "base/text/error.h"
#include "base/text/json.h"
#include "base/text/parameter_list.h"
#include "workloads/collectives/exchange.h"
#include "workloads/frame/result_json.h"
#include "workloads/kernels/ffn.h"
#include "workloads/layer/alone.h"
#include "workloads/layer/layer_lanes.h"
#include "workloads/layer/layer_program.h"
#include "workloads/layer/parts_file.h"

namespace cm384::studies {
namespace {

constexpr std::array<std::pair<const char*, double DecodeParts::*>, 9> kParts{{
    {"layer_us", &DecodeParts::layer},
    {"first_layer_us", &DecodeParts::first_layer},
    {"attention_half_us", &DecodeParts::attention_half},
    {"experts_half_us", &DecodeParts::experts_half},
    {"dense_attention_us", &DecodeParts::dense_attention},
    {"dense_network_us", &DecodeParts::dense_network},
    {"head_us", &DecodeParts::head},
    {"mtp_projection_us", &DecodeParts::mtp_projection},
    {"mtp_head_us", &DecodeParts::mtp_head},
}};

// The machine, and the options that parts depend on.
std::string key_of(const StudyContext& context, const DecodeOptions& options,
                   const std::vector<std::string>& inputs) {
  std::string text = fmt::format("seed {}\nbatch {}\n", context.seed, options.layer.batch);
  DecodeOptions copy = options;
  DecodeOptions plain;
  const std::vector<hw::Parameter> defaults = hw::list_parameters(plain);
  const std::vector<hw::Parameter> all = hw::list_parameters(copy);
  for (std::size_t n = 0; n < all.size(); ++n) {
    const hw::Parameter& option = all[n];
    // Said only where they change something: keys of what was measured before these options stay.
    constexpr std::array kLater{"kv-heads",       "head-width",     "window",  "attention-tp", "head-tp",
                                "sliding-layers", "shared-experts", "gate",    "expert-group", "token-groups",
                                "networks",       "expert-ranks",   "sparse",  "index-heads",  "key-width",
                                "value-width",    "sharing-layers", "qk-norm", "sinks"};
    if (std::ranges::find(kLater, option.key) != kLater.end() &&
        hw::value_text(option) == hw::value_text(defaults[n]))
      continue;
    constexpr std::array kOthers{"batch",      "acceptance", "draft-acceptance", "dense-layers",
                                 "moe-layers", "launch",     "graph-launch",     "measured",
                                 "top-k",      "top-p",      "renew-rate",       "renew",
                                 "drift",      "model",      "deployment",       "npu-hour",
                                 "npu-watt"};
    if (std::ranges::find(kOthers, option.key) == kOthers.end())
      text += option.key + " = " + hw::value_text(option) + "\n";
  }
  if (options.layer.renew > 0)
    text += fmt::format("renew = {}\ndrift = {}\n", options.layer.renew, options.layer.drift);
  if (options.layer.mtp > 1) text += "further drafts of one token\n";
  for (const std::string& path : inputs) text += hash_of_file(path) + "\n";
  return hash_of(text + machine_text(context.machine));
}

DecodeParts read(const Json& json, const std::string& path) {
  DecodeParts parts;
  try {
    for (const auto& [name, member] : kParts) parts.*member = json.at(name).get<double>();
    for (const auto& kernel : json.at("kernels_us"))
      parts.kernels.emplace_back(kernel.at("name").get<std::string>(), kernel.at("mean_us").get<double>());
    for (const auto& k : json.value("kernels", Json::array()))
      parts.kernels_of_layers.push_back({k.at("layer").get<int>(), k.at("microbatch").get<int>(),
                                         k.at("stream").get<int>(), k.at("name").get<std::string>(),
                                         k.at("start_us").get<double>(), k.at("end_us").get<double>()});
    parts.new_copies = json.value("new_copies", 0.0);
    parts.sliding_layer = json.value("sliding_layer_us", 0.0);
    parts.further_projection = json.value("further_projection_us", 0.0);
    parts.further_layer = json.value("further_layer_us", 0.0);
    parts.microbatches = json.at("microbatches").get<int>();
    parts.split = json.at("split").get<std::string>();
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("--measured {}: {}", path, error.what()));
  }
  return parts;
}

Json to_json(const DecodeOptions& options, const DecodeParts& parts) {
  Json json{{"ranks", options.layer.ranks}, {"batch", options.layer.batch},
            {"kv", options.layer.kv},       {"microbatches", parts.microbatches},
            {"split", parts.split},         {"kernels_us", Json::array()}};
  for (const auto& [name, member] : kParts) json[name] = parts.*member;
  if (options.layer.renew > 0) json["new_copies"] = parts.new_copies;
  if (options.unlike_layers() > 0) json["sliding_layer_us"] = parts.sliding_layer;
  if (options.layer.mtp > 1) {
    json["further_projection_us"] = parts.further_projection;
    json["further_layer_us"] = parts.further_layer;
  }
  for (const auto& [name, us] : parts.kernels)
    json["kernels_us"].push_back({{"name", name}, {"mean_us", us}});
  json["kernels"] = studies::to_json(rows_of(parts.kernels_of_layers));
  return json;
}

class DecodeOperators : public Alone {
 public:
  using Alone::Alone;

  double attention(const LayerSetting& layer) {
    AttentionSetting setting = layer.attention;
    setting.kv_lens.clear();
    for (const auto& part : layer.lengths.front())
      setting.kv_lens.insert(setting.kv_lens.end(), part.begin(), part.end());
    CubeSetting cubes;
    cubes.blocks = context().machine.die.groups();
    cubes.graph = true;
    CubeRun run(context(), fmt::format("attention, {} sequences", setting.kv_lens.size()), cubes,
                [&] { return attention_stages(setting, context().seed); });
    double us = 0;
    for (const CubeReading& reading : run.measure(counts())) us += reading.task_us;
    return us;
  }
  // Slices of a wide network as experts that all have every token.
  double network(int tokens, const LayerOptions& layer) {
    // Of an expert's width, where that divides it.
    const int slices = layer.dense_width % layer.width == 0
                           ? layer.dense_width / layer.width
                           : dense_slices(static_cast<std::uint32_t>(layer.dense_width));
    FfnSetting setting;
    setting.expert_rows.assign(static_cast<std::size_t>(slices), static_cast<std::uint32_t>(tokens));
    setting.hidden = static_cast<std::uint32_t>(layer.hidden);
    setting.width = static_cast<std::uint32_t>(layer.dense_width / slices);
    setting.bf16 = layer.networks == "bf16";
    setting.int4 = layer.networks == "w4a8";
    setting.blocks = context().machine.die.groups();
    setting.graph = true;
    double us = measure_ffn(context(), setting, counts()).task_us;
    for (const int sums : additions_of(slices))
      us += row_operator("add", static_cast<std::uint64_t>(sums) * static_cast<std::uint64_t>(tokens),
                         layer.hidden);
    return us;
  }
};

// Norm, product, softmax of a die's tokens. Ranks that share the product bring their tokens together before
// it, where they do not have them all anyway, and send each other the words' scores behind it.
double head_of(const StudyContext& context, Alone& alone, const DecodeOptions& options, int tokens,
               StudyResult& result) {
  const int sharing = options.head_sharing(), all = tokens * sharing, own = options.own_words();
  const int parts = (own + 65535) / 65536;
  const int width = own / parts / 8 * 8;
  double us = 0;
  if (sharing > 1 && options.layer.sharing() % sharing != 0) {
    OpSetting setting;
    setting.graph = true;
    const OpRequest gather{.name = "all-gather",
                           .shape = fmt::format("{}x{}", sharing, 2 * tokens * options.layer.hidden)};
    const auto reading = run_collective(
        context, "rows to the head", setting,
        collective_of(gather, context.machine.die.aiv, false, context.machine), result.simulator);
    if (reading) us += reading->task_us;
  }
  us += alone.row_operator("rms-norm", static_cast<std::uint64_t>(tokens), options.layer.hidden) +
        alone.product(parts, all, width, options.layer.hidden, "bf16", "nd") +
        alone.row_operator("softmax", static_cast<std::uint64_t>(tokens), options.vocabulary);
  if (sharing > 1)
    us += measure_exchange(context, "scores of the head",
                           ExchangeCase::even(sharing, 2 * std::uint64_t(tokens) * std::uint64_t(own)),
                           result.simulator)
              .mean;
  return us;
}

// The key of an operator by itself.
std::string key_of(const StudyContext& context, const OpRequest& request) {
  return hash_of(
      fmt::format("seed {}\n{} {} {}\n", context.seed, request.name, request.shape, request.top_p) +
      machine_text(context.machine));
}

// Words chosen for so many rows; measured where the file has it not.
double sampling_of(Alone& alone, const StudyContext& context, const DecodeOptions& options, int rows,
                   PartsFile& file) {
  OpRequest request{.name = "sample",
                    .shape = fmt::format("{}x{}x{}", rows, options.vocabulary, options.top_k)};
  request.top_p = options.top_p;
  const std::string key = key_of(context, request);
  const Json* found = file.find(PartsFile::Section::alone, key);
  if (found != nullptr && found->contains("us") && found->at("us").is_number())
    return found->at("us").get<double>();
  file.open();
  const double us = alone.one(request);
  file.add(PartsFile::Section::alone, key, {{"name", request.name}, {"shape", request.shape}, {"us", us}});
  return us;
}

// The same layer with a dense network in the place of experts, all cores and the whole batch.
LayerSetting dense_setting(const StudyContext& context, LayerOptions options) {
  options.ranks = options.token_ranks();
  options.experts = options.expert_ranks = 0;
  options.microbatches = "1";
  options.window = 0;
  return layer_settings(context, options).front();
}

// All but what stands by itself. Empty: interrupted.
std::optional<DecodeParts> measure_parts(const StudyContext& context, const DecodeOptions& options,
                                         std::vector<LayerSetting> settings, StudyResult& result) {
  for (LayerSetting& setting : settings) setting.attention.window = 0;
  ChosenLayer chosen = measure_fastest(context, settings, result.simulator);
  const LayerReading& layer = chosen.reading;
  if (layer.stages.empty()) return {};
  if (!chosen.tried.empty()) result.notes.push_back(chosen.tried);
  if (layer.followers > 0)
    result.notes.push_back(
        fmt::format("attention and experts of {} of {} dies last as long as those of the others; all by "
                    "themselves: --replay-dies {}",
                    layer.followers, options.layer.ranks, options.layer.ranks));
  else if (options.layer.replay > 0)
    result.notes.push_back(unused_replay_dies(chosen.setting));
  DecodeParts parts;
  parts.layer = layer.layer_us.mean;
  parts.first_layer = layer.first_us;
  parts.attention_half = layer.half_us[0].mean;
  parts.experts_half = layer.half_us[1].mean;
  parts.new_copies = layer.new_copies;
  parts.microbatches = chosen.setting.microbatches;
  parts.split = split_text(chosen.setting);
  parts.kernels_of_layers = layer.kernels;
  for (const LayerStage& stage : layer.stages) parts.kernels.emplace_back(stage.name, stage.task_us.mean);
  if (options.unlike_layers() > 0) {
    LayerSetting sliding = chosen.setting;
    sliding.attention.window = static_cast<std::uint32_t>(options.layer.window);
    if (options.sharing_layers > 0) sliding.attention.index_heads = 0;
    const LayerReading reading = measure_layer(context, sliding, result.simulator);
    if (reading.stages.empty()) return {};
    parts.sliding_layer = reading.layer_us.mean;
  }
  DecodeOperators alone(context, result);
  const LayerOptions& o = options.layer;
  const int requests = o.requests_of_die(), tokens = requests * (1 + o.mtp);
  const auto rows = static_cast<std::uint64_t>(tokens);
  if (options.other_layers() > 0 && o.sharing() > 1) {
    const LayerReading reading = measure_layer(context, dense_setting(context, o), result.simulator);
    if (reading.stages.empty()) return {};
    parts.dense_attention = reading.half_us[0].mean;
    parts.dense_network = reading.layer_us.mean - reading.half_us[0].mean;
  } else if (options.other_layers() > 0) {
    parts.dense_attention = alone.attention(chosen.setting) + alone.row_operator("rms-norm", rows, o.hidden);
    parts.dense_network = alone.network(tokens, o);
  }
  parts.head = head_of(context, alone, options, tokens, result);
  if (o.mtp > 0) {
    parts.mtp_projection =
        2 * alone.row_operator("rms-norm", rows, o.hidden) +
        alone.product(1, tokens, o.hidden, 2 * o.hidden, o.networks == "bf16" ? "bf16" : "int8", "nz");
    parts.mtp_head = head_of(context, alone, options, requests, result);
  }
  if (o.mtp > 1) {
    LayerSetting further = chosen.setting;
    further.attention.queries = 1;
    further.moe.batch /= 1 + o.mtp;
    const LayerReading reading = measure_layer(context, further, result.simulator);
    if (reading.stages.empty()) return {};
    parts.further_layer = reading.first_us;
    parts.further_projection =
        2 * alone.row_operator("rms-norm", static_cast<std::uint64_t>(requests), o.hidden) +
        alone.product(1, requests, o.hidden, 2 * o.hidden, o.networks == "bf16" ? "bf16" : "int8", "nz");
  }
  if (alone.interrupted() || context.interrupted != 0) return {};
  return parts;
}

}  // namespace

KernelShares shares_of(const DecodeParts& parts) {
  constexpr std::array<std::string_view, 4> kProducts{"prolog", "output", "experts", "network"};
  double sum = 0, products = 0, dispatch = 0;
  for (const auto& [name, us] : parts.kernels) {
    sum += us;
    if (std::ranges::find(kProducts, name) != kProducts.end()) products += us;
    if (name == "dispatch") dispatch += us;
  }
  return {products / sum, dispatch / sum};
}

std::optional<DecodeParts> decode_parts(const StudyContext& context, const DecodeOptions& options,
                                        StudyResult& result) {
  const std::vector<LayerSetting> settings = layer_settings(context, options.layer);
  const std::string key = key_of(context, options, result.input_files);
  PartsFile file(options.measured);
  std::optional<DecodeParts> parts;
  if (const Json* found = file.find(PartsFile::Section::steps, key)) {
    parts = read(*found, options.measured);
  } else {
    file.open();
    parts = measure_parts(context, options, settings, result);
    if (!parts) return {};
    file.add(PartsFile::Section::steps, key, to_json(options, *parts));
  }
  Alone alone(context, result);
  const int requests = options.layer.requests_of_die(), mtp = options.layer.mtp;
  parts->sampling = sampling_of(alone, context, options, requests * (1 + mtp), file);
  if (mtp > 0) parts->mtp_sampling = sampling_of(alone, context, options, requests, file);
  if (alone.interrupted() || context.interrupted != 0) return {};
  file.write();
  return parts;
}

}  // namespace cm384::studies
