#include "studies/decode_parts.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "hw/content_hash.h"
#include "hw/error.h"
#include "hw/json.h"
#include "hw/parameter_list.h"
#include "sim/output_file.h"
#include "studies/ffn.h"
#include "studies/mla.h"
#include "studies/op_cases.h"

namespace cm384::studies {
namespace {

constexpr std::string_view kFormat = "cm384-decode-parts-1";
constexpr std::array<std::pair<const char*, double DecodeParts::*>, 10> kParts{{
    {"layer_us", &DecodeParts::layer},
    {"first_layer_us", &DecodeParts::first_layer},
    {"attention_half_us", &DecodeParts::attention_half},
    {"experts_half_us", &DecodeParts::experts_half},
    {"dispatch_us", &DecodeParts::dispatch},
    {"dense_attention_us", &DecodeParts::dense_attention},
    {"dense_network_us", &DecodeParts::dense_network},
    {"head_us", &DecodeParts::head},
    {"mtp_projection_us", &DecodeParts::mtp_projection},
    {"mtp_head_us", &DecodeParts::mtp_head},
}};

// The machine, and the options that parts depend on.
std::string key_of(const StudyContext& context, const DecodeOptions& options) {
  std::string text = fmt::format("seed {}\n", context.seed);
  DecodeOptions copy = options;
  for (const hw::Parameter& option : list_options(copy)) {
    constexpr std::array kOthers{"acceptance", "dense-layers", "moe-layers",
                                 "launch",     "graph-launch", "measured"};
    if (std::ranges::find(kOthers, option.key) == kOthers.end())
      text += option.key + " = " + hw::value_text(option) + "\n";
  }
  hw::Machine machine = context.machine;
  for (const hw::Parameter& parameter : hw::list_parameters(machine))
    text += parameter.key + " = " + hw::value_text(parameter) + "\n";
  return hash_of(text);
}

DecodeParts load(const std::string& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != kFormat)
    throw InputError(fmt::format("--measured {}: no parts of a decode step", path));
  if (json.value("key", Json()) != key)
    throw InputError(fmt::format("--measured {}: of another machine, seed or options", path));
  DecodeParts parts;
  for (const auto& [name, member] : kParts) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number())
      throw InputError(fmt::format("--measured {}: {} is missing", path, name));
    parts.*member = found->get<double>();
  }
  return parts;
}

void save(OutputFile& file, const std::string& key, const DecodeParts& parts) {
  Json json{{"format", kFormat}, {"key", key}};
  for (const auto& [name, member] : kParts) json[name] = parts.*member;
  file.write(json.dump(1) + "\n");
  file.finish();
}

// Single operators on all cores of a die, in a captured graph.
class Alone {
 public:
  Alone(const StudyContext& context, StudyResult& result) : context_(context), result_(result) {}

  bool interrupted() const { return interrupted_; }
  double row_operator(const char* name, std::uint64_t rows, int width) {
    return one({.name = name, .shape = fmt::format("{}x{}", rows, width)});
  }
  double product(int groups, int m, int n, int k, const char* type, const char* layout) {
    OpRequest request{
        .name = groups == 1 ? "matmul" : "batch-matmul", .shape = {}, .type = type, .layout = layout};
    request.shape =
        groups == 1 ? fmt::format("{}x{}x{}", m, n, k) : fmt::format("{}x{}x{}x{}", groups, m, n, k);
    return one(request);
  }
  double attention(const LayerSetting& layer) {
    MlaSetting setting;
    static_cast<operators::MlaSetting&>(setting) = layer.attention;
    setting.kv_lens.clear();
    for (const auto& part : layer.lengths.front())
      setting.kv_lens.insert(setting.kv_lens.end(), part.begin(), part.end());
    setting.blocks = context_.machine.die.aic;
    setting.graph = true;
    setting.prolog = setting.output = true;
    const MlaReading reading = measure_mla(context_, setting, result_.simulator);
    return reading.prolog.task_us + reading.attention.task_us + reading.output.task_us;
  }
  // Slices of a wide network as experts that all have every token.
  double network(int slices, int tokens, const LayerOptions& layer) {
    FfnSetting setting;
    setting.expert_rows.assign(static_cast<std::size_t>(slices), static_cast<std::uint32_t>(tokens));
    setting.hidden = static_cast<std::uint32_t>(layer.hidden);
    setting.width = static_cast<std::uint32_t>(layer.width);
    setting.blocks = context_.machine.die.aic;
    setting.graph = true;
    double us = measure_ffn(context_, setting, result_.simulator).task_us;
    for (const int sums : additions_of(slices))
      us += row_operator("add", static_cast<std::uint64_t>(sums) * static_cast<std::uint64_t>(tokens),
                         layer.hidden);
    return us;
  }

 private:
  double one(const OpRequest& request) {
    OpSetting setting;
    setting.groups = context_.machine.die.aic;
    setting.graph = true;
    const auto reading = run_operator_alone(context_, fmt::format("{} {}", request.name, request.shape),
                                            setting, operator_of(request), result_.simulator);
    interrupted_ = interrupted_ || !reading;
    return reading ? reading->task_us : 0;
  }

  const StudyContext& context_;
  StudyResult& result_;
  bool interrupted_ = false;
};

// Norm, product, softmax.
double head_of(Alone& alone, const DecodeOptions& options, int tokens) {
  const int parts = (options.vocabulary + 65535) / 65536;
  const int width = options.vocabulary / parts / 8 * 8;
  return alone.row_operator("rms-norm", static_cast<std::uint64_t>(tokens), options.layer.hidden) +
         alone.product(parts, tokens, width, options.layer.hidden, "bf16", "nd") +
         alone.row_operator("softmax", static_cast<std::uint64_t>(tokens), options.vocabulary);
}

}  // namespace

std::vector<int> additions_of(int slices) {
  std::vector<int> made;
  while (slices > 1) {
    made.push_back(slices / 2);
    slices -= slices / 2;
  }
  return made;
}

std::optional<DecodeParts> decode_parts(const StudyContext& context, const DecodeOptions& options,
                                        StudyResult& result) {
  const LayerSetting setting = layer_setting(context, options.layer);
  const std::string key = key_of(context, options);
  const bool kept = !options.measured.empty();
  if (kept && std::filesystem::exists(options.measured)) return load(options.measured, key);
  std::optional<OutputFile> file;
  if (kept) file.emplace(options.measured);
  const LayerReading layer = measure_layer(context, setting, result.simulator);
  if (layer.stages.empty()) return {};
  DecodeParts parts;
  parts.layer = layer.layer_us.mean;
  parts.first_layer = layer.first_us;
  parts.attention_half = layer.half_us[0].mean;
  parts.experts_half = layer.half_us[1].mean;
  for (const LayerStage& stage : layer.stages) {
    if (stage.name == "dispatch") parts.dispatch = stage.task_us.mean;
  }
  Alone alone(context, result);
  const LayerOptions& o = options.layer;
  const int requests = o.batch / 2, tokens = requests * (1 + o.mtp);
  const auto rows = static_cast<std::uint64_t>(tokens);
  if (options.dense_layers > 0) {
    parts.dense_attention = alone.attention(setting) + alone.row_operator("rms-norm", rows, o.hidden);
    parts.dense_network = alone.network(std::max(1, options.dense_width / o.width), tokens, o);
  }
  parts.head = head_of(alone, options, tokens);
  if (o.mtp > 0) {
    parts.mtp_projection = 2 * alone.row_operator("rms-norm", rows, o.hidden) +
                           alone.product(1, tokens, o.hidden, 2 * o.hidden, "int8", "nz");
    parts.mtp_head = head_of(alone, options, requests);
  }
  if (alone.interrupted() || context.interrupted != 0) return {};
  if (file) save(*file, key, parts);
  return parts;
}

}  // namespace cm384::studies
