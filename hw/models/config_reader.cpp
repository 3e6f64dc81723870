// The config.json of model hubs. There is no standard for it: each family of models has names of its own, and
// which family a file is of is told by the keys that it has. Every key is taken, known not to change the
// work, or refused.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "hw/models/model_facts.h"

namespace cm384::models {
namespace {

using Keys = std::initializer_list<std::string_view>;

// These change the work and are not modelled; a file with several is refused for the first of them here.
struct Refused {
  std::string_view key, what;
};
constexpr std::array kRefused{
    Refused{"compress_ratios", "attention over a compressed context"},
    Refused{"hc_mult", "several residual streams"},
    Refused{"o_groups", "an output projection in groups"},
    Refused{"o_lora_rank", "an output projection by a latent"},
    Refused{"num_hash_layers", "experts chosen by the token's number"},
    Refused{"expert_dtype", "a format of experts' weights apart from quantization_config"},
    Refused{"attention_chunk_size", "attention in chunks"},
    Refused{"linear_attn_config", "linear attention by other keys than linear_*"},
    Refused{"mamba_d_state", "state space layers"},
    Refused{"encoder_layers", "an encoder"},
};

// Norms, biases, positions, training, words and files: they do not change what is counted.
constexpr std::array<std::string_view, 63> kNoEffect{"architectures",
                                                     "attention_bias",
                                                     "attention_dropout",
                                                     "auto_map",
                                                     "aux_loss_alpha",
                                                     "bos_token_id",
                                                     "embd_pdrop",
                                                     "eos_token_id",
                                                     "ep_size",
                                                     "full_attention_interval",
                                                     "ignore_index",
                                                     "image_token_id",
                                                     "index_share_for_mtp_iteration",
                                                     "index_skip_topk_offset",
                                                     "indexer_rope_interleave",
                                                     "initial_context_length",
                                                     "initializer_range",
                                                     "is_decoder",
                                                     "layernorm_full_attention_beta",
                                                     "layernorm_linear_attention_beta",
                                                     "layernorm_mlp_beta",
                                                     "media_placeholder_token_id",
                                                     "mla_scale_kv_lora",
                                                     "mla_scale_q_lora",
                                                     "mlp_bias",
                                                     "mlp_intermediate_size",
                                                     "model_type",
                                                     "moe_router_dtype",
                                                     "output_router_logits",
                                                     "pad_token_id",
                                                     "param_sink_with_value",
                                                     "partial_rotary_factor",
                                                     "pretraining_tp",
                                                     "qk_norm_type",
                                                     "qkv_bias",
                                                     "quantization_status",
                                                     "resid_pdrop",
                                                     "rms_norm_eps",
                                                     "rope_interleave",
                                                     "rope_parameters",
                                                     "rope_scaling",
                                                     "rope_theta",
                                                     "rotary_dim",
                                                     "router_aux_loss_coef",
                                                     "router_bias",
                                                     "router_dtype",
                                                     "router_enable_expert_bias",
                                                     "router_jitter_noise",
                                                     "sandwich_norm",
                                                     "seq_aux",
                                                     "shared_moe_mode",
                                                     "swiglu_limit",
                                                     "tokenizer_class",
                                                     "transformers_version",
                                                     "use_cache",
                                                     "use_qk_norm",
                                                     "use_routing_bias",
                                                     "use_unified_vision_chunk",
                                                     "video_placeholder",
                                                     "video_token_id",
                                                     "vision_config",
                                                     "vision_end_token_id",
                                                     "vision_start_token_id"};

constexpr int kDeepest = 32;  // values in values; what prints and copies them is recursive

// All that begins so is a comment of whoever put the file together.
bool is_comment(std::string_view key) {
  return key.starts_with('_');
}

class ConfigReader {
 public:
  ConfigReader(std::string_view text, std::string file) : file_(std::move(file)) {
    stated_.facts = {};
    try {
      config_ = Json::parse(text, [&](int depth, Json::parse_event_t, const Json&) {
        if (depth > kDeepest)
          throw InputError(fmt::format("{}: values are nested more than {} deep", file_, kDeepest));
        return true;
      });
    } catch (const Json::exception& error) {
      const std::string what = error.what();
      throw InputError(fmt::format("{}: not valid JSON: {}", file_, what.substr(what.find("] ") + 2)));
    }
    if (!config_.is_object())
      throw InputError(fmt::format("{}: is not an object; allowed: a config.json", file_));
    unfold();
    for (const Refused& refused : kRefused) {
      if (has(refused.key))
        refuse(
            refused.key,
            fmt::format("{} is not modelled; allowed: full, latent, sliding and linear attention, indexers, "
                        "dense networks and experts",
                        refused.what));
    }
  }

  StatedModel read() {
    ModelFacts& facts = stated_.facts;
    facts_ = list_facts(facts);
    take("hidden", {"hidden_size"});
    take("layers", {"num_hidden_layers", "num_layers"});
    take("vocabulary", {"vocab_size"});
    for (const char* key : {"hidden", "layers", "vocabulary"}) require(key);
    take("tied_heads", {"tie_word_embeddings"});
    take("context", {"max_position_embeddings"});
    only("hidden_act", {"silu", "swish"});
    only("is_encoder_decoder", {false});
    attention();
    pattern();
    indexer();
    experts();
    networks();
    draft();
    weights();
    rest();
    return std::move(stated_);
  }

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const {
    throw InputError(fmt::format("{}: {}: {}", file_, key, what));
  }
  static std::string shown(const Json& value) {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 60) + ".." : text;
  }

  // The language model of a model of several kinds of input stands in an object of its own.
  void unfold() {
    if (!config_.contains("text_config")) return;
    const Json inner = config_["text_config"];
    if (!inner.is_object())
      refuse("text_config", "is not an object; allowed: the keys of the language model");
    config_.erase("text_config");
    for (const auto& [key, value] : inner.items()) config_[key] = value;
  }

  // Null says nothing.
  bool has(std::string_view key) const {
    const auto found = config_.find(key);
    return found != config_.end() && !found->is_null();
  }
  const Json& at(std::string_view key) {
    used_.emplace(key);
    return *config_.find(key);
  }
  // The first of them that the file has; where it has several they say the same.
  std::optional<std::string_view> one_of(Keys keys) {
    std::optional<std::string_view> found;
    for (const std::string_view key : keys) {
      asked_.emplace_back(key);
      if (!has(key)) continue;
      if (found && at(key) != at(*found))
        refuse(key, fmt::format("{}; allowed: {}, as {} says", shown(at(key)), shown(at(*found)), *found));
      at(key);
      if (!found) found = key;
    }
    return found;
  }

  const Fact& fact(std::string_view name) const { return *std::ranges::find(facts_, name, &Fact::key); }
  void set(std::string_view name, std::string_view key, const Json& value, bool derived = false) {
    try {
      fact(name).assign(value);
    } catch (const InputError& error) {
      refuse(key, error.what());
    }
    stated_.sources[std::string(name)] = {derived ? "derived" : "published",
                                          fmt::format("{}: {}", file_, key), ""};
  }
  // Whether the file has one of the keys.
  bool take(std::string_view name, Keys keys) {
    const auto key = one_of(keys);
    if (key) set(name, *key, at(*key));
    return key.has_value();
  }
  // A number of the file that becomes no fact by itself; 0 where it has none.
  Whole whole(Keys keys, Between range = {0, 1 << 24}) {
    const auto key = one_of(keys);
    if (!key) return 0;
    Whole value = 0;
    try {
      Fact{"", "", "", &value, range, {}}.assign(at(*key));
    } catch (const InputError& error) {
      refuse(*key, error.what());
    }
    return value;
  }
  Words words(std::string_view key, const Words& legal) {
    Words value;
    try {
      Fact{"", "", "", &value, {0, 0}, legal}.assign(at(key));
    } catch (const InputError& error) {
      refuse(key, error.what());
    }
    if (static_cast<Whole>(value.size()) != stated_.facts.layers)
      refuse(key, fmt::format("has {} entries for {} layers", value.size(), stated_.facts.layers));
    return value;
  }
  bool flag(std::string_view key) {
    asked_.emplace_back(key);
    if (!has(key)) return false;
    if (!at(key).is_boolean()) refuse(key, fmt::format("{}; allowed: true, false", shown(at(key))));
    return at(key).get<bool>();
  }
  void require(std::string_view name) {
    if (!stated_.sources.contains(std::string(name)))
      throw InputError(fmt::format("{}: {}: is not stated; allowed: the config.json of a decoder", file_,
                                   config_name(name)));
  }
  // What a fact that is missing is called in such a file, as most families have it.
  static std::string_view config_name(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kNames{{
        {"hidden", "hidden_size"},
        {"layers", "num_hidden_layers"},
        {"vocabulary", "vocab_size"},
        {"attention.heads", "num_attention_heads"},
        {"attention.key_width", "qk_nope_head_dim"},
        {"attention.value_width", "v_head_dim"},
        {"dense.width", "intermediate_size"},
        {"experts.width", "moe_intermediate_size"},
        {"experts.chosen", "num_experts_per_tok"},
    }};
    const auto found = std::ranges::find(kNames, name, &std::pair<std::string_view, std::string_view>::first);
    return found == kNames.end() ? name : found->second;
  }
  // A key of which only some values are modelled.
  void only(std::string_view key, std::initializer_list<Json> values) {
    asked_.emplace_back(key);
    if (!has(key)) return;
    if (std::ranges::find(values, at(key)) != values.end()) return;
    Words allowed;
    for (const Json& value : values)
      allowed.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    refuse(key, fmt::format("{} is not modelled; allowed: {}", shown(at(key)), fmt::join(allowed, ", ")));
  }
  // Of the file's keys, they have no part in what is read.
  void unused(std::string_view key) {
    if (config_.contains(key) && !used_.contains(key)) passed_.emplace(key);
  }

  void attention() {
    take("attention.heads", {"num_attention_heads"});
    require("attention.heads");
    only("attention_method", {"MLA"});
    const bool latent = take("attention.kv_latent", {"kv_lora_rank", "attention_kv_lora_dim"}) &&
                        stated_.facts.attention.kv_latent > 0;
    if (latent) {
      take("attention.query_latent", {"q_lora_rank", "attention_q_lora_dim"});
      unused("num_key_value_heads");  // as many as heads: there is one latent
      unused("head_dim");
    } else if (!take("attention.kv_heads", {"num_key_value_heads"})) {
      set("attention.kv_heads", "num_attention_heads", stated_.facts.attention.heads, true);
    }
    const auto split = one_of({"qk_nope_head_dim", "attention_qk_dim", "qk_nope_dim"});
    if (split) {
      const Whole rest = whole({"qk_nope_head_dim", "attention_qk_dim", "qk_nope_dim"});
      const Whole positions = whole({"qk_rope_head_dim", "attention_qk_rope_dim", "qk_rope_dim"});
      set("attention.key_width", *split, rest + positions, true);
      if (latent)
        take("attention.position_width", {"qk_rope_head_dim", "attention_qk_rope_dim", "qk_rope_dim"});
      take("attention.value_width", {"v_head_dim", "attention_v_dim", "v_channels"});
      only("qk_head_dim", {stated_.facts.attention.key_width});
    } else if (!latent) {
      one_width();
    }
    require("attention.key_width");
    require("attention.value_width");
    take("attention.sinks", {"param_sink_number"});
    take("attention.output_gate", {"attn_output_gate"});
    if (!latent) of_family();
  }

  // What stands in the code of a family of models alone, told by `model_type`, unless the file says it. Norms
  // of a layer's whole row of heads are not such of each head; they are left out, as other small ones.
  void of_family() {
    const Json family = config_.value("model_type", Json());
    const std::string type = family.is_string() ? family.get<std::string>() : "";
    const bool by_row = config_.value("qk_norm_type", Json()) == "per_layer";
    if (has("use_qk_norm")) {
      if (by_row) return;
      take("attention.head_norms", {"use_qk_norm"});
    } else if (type.starts_with("qwen3")) {
      at("model_type");
      set("attention.head_norms", "model_type", true, true);
    }
    if (type != "gpt_oss") return;
    at("model_type");
    set("attention.sink_scores", "model_type", true, true);
  }

  // Keys and values are as wide.
  void one_width() {
    const ModelFacts& facts = stated_.facts;
    if (const auto key = one_of({"head_dim"})) {
      set("attention.key_width", *key, at(*key));
      set("attention.value_width", *key, at(*key));
      return;
    }
    if (facts.hidden % facts.attention.heads != 0)
      refuse("head_dim", fmt::format("is not stated, and {} heads do not divide hidden_size {}",
                                     facts.attention.heads, facts.hidden));
    for (const char* name : {"attention.key_width", "attention.value_width"})
      set(name, "hidden_size / num_attention_heads", facts.hidden / facts.attention.heads, true);
  }

  // Of the kinds of attention over the layers.
  void pattern() {
    const Whole layers = stated_.facts.layers;
    Words kinds;
    std::string_view said;
    if (has("layer_types")) {
      said = "layer_types";
      kinds = words(said, {"full_attention", "sliding_attention", "linear_attention"});
      for (std::string& kind : kinds) kind.resize(kind.find('_'));
    } else if (has("full_attention_interval")) {
      said = "full_attention_interval";
      const Whole every = whole({said}, {1, 1024});
      for (Whole layer = 0; layer < layers; ++layer)
        kinds.push_back((layer + 1) % every == 0 ? "full" : "linear");
    } else if (has("attn_type_list")) {
      for (const Json& kind : at("attn_type_list")) {
        if (kind != Json(1))
          refuse("attn_type_list",
                 fmt::format("{} is not modelled; allowed: 1, full attention", shown(kind)));
      }
      if (static_cast<Whole>(at("attn_type_list").size()) != layers)
        refuse("attn_type_list",
               fmt::format("has {} entries for {} layers", at("attn_type_list").size(), layers));
    } else if (flag("use_sliding_window")) {
      said = "use_sliding_window";
      const Whole first = whole({"max_window_layers"}, {0, 1024});
      for (Whole layer = 0; layer < layers; ++layer) kinds.push_back(layer >= first ? "sliding" : "full");
    }
    window(has("use_sliding_window") && !flag("use_sliding_window"), kinds);
    if (!said.empty()) set("attention.pattern", said, kinds, said != "layer_types");
    if (std::ranges::find(kinds, "linear") != kinds.end()) linear();
  }

  void window(bool off, const Words& kinds) {
    for (const char* key : {"use_sliding_window", "max_window_layers"}) unused(key);
    const bool slides = std::ranges::find(kinds, "sliding") != kinds.end();
    if (slides) {
      if (!take("attention.window", {"sliding_window"})) refuse("sliding_window", "is not stated");
    } else if (off || has("layer_types")) {
      unused("sliding_window");
    } else if (has("sliding_window")) {
      refuse("sliding_window",
             "nothing says which layers slide; allowed: with layer_types or use_sliding_window, or null");
    }
  }

  void linear() {
    const auto need = [&](std::string_view name, std::string_view key) {
      if (!take(name, {key})) refuse(key, "is not stated, and layers have linear attention");
    };
    need("linear.key_heads", "linear_num_key_heads");
    need("linear.value_heads", "linear_num_value_heads");
    need("linear.key_width", "linear_key_head_dim");
    need("linear.value_width", "linear_value_head_dim");
    need("linear.convolution", "linear_conv_kernel_dim");
    only("mamba_ssm_dtype", {"float32", "bfloat16"});
    if (has("mamba_ssm_dtype"))
      set("linear.state_bytes", "mamba_ssm_dtype", at("mamba_ssm_dtype") == "float32" ? 4 : 2, true);
  }

  void indexer() {
    if (!take("index.chosen", {"index_topk"})) return;
    for (const auto& [name, key] :
         {std::pair{"index.heads", "index_n_heads"}, {"index.width", "index_head_dim"}}) {
      if (!take(name, {key})) refuse(key, "is not stated beside index_topk");
    }
    if (has("indexer_types")) {
      set("index.pattern", "indexer_types", words("indexer_types", {"full", "shared"}));
      unused("index_topk_freq");
      unused("index_topk_pattern");
      return;
    }
    only("index_topk_freq", {1});
    if (has("index_topk_pattern"))
      refuse("index_topk_pattern", "is not modelled; allowed: indexer_types, an entry for each layer");
  }

  void experts() {
    if (!take("experts.routed",
              {"n_routed_experts", "num_experts", "num_local_experts", "num_routed_experts"}))
      return;
    take("experts.chosen", {"num_experts_per_tok", "experts_per_token", "moe_topk"});
    require("experts.chosen");
    // One family calls the width of its experts as others call that of a dense network.
    if (has("num_local_experts")) {
      take("experts.width", {"intermediate_size"});
    } else {
      take("experts.width", {"moe_intermediate_size", "expert_ffn_hidden_size"});
    }
    require("experts.width");
    if (take("experts.shared", {"n_shared_experts", "num_shared_experts"})) {
      if (stated_.facts.experts.shared > 0)
        set("experts.shared_width", "moe_intermediate_size", stated_.facts.experts.width, true);
    } else if (const auto key = one_of({"shared_expert_intermediate_size", "shared_intermediate_size"});
               key && whole({*key}) > 0) {
      set("experts.shared", *key, 1, true);
      set("experts.shared_width", *key, at(*key));
      // Of the families with this key, those that train their gate by an auxiliary loss have that output.
      if (has("router_aux_loss_coef")) {
        at("router_aux_loss_coef");
        set("experts.shared_gate", "router_aux_loss_coef", true, true);
      }
    }
    only("zero_expert_type", {"identity"});
    take("experts.zero", {"zero_expert_num"});
    only("topk_method", {"noaux_tc", "greedy", "group_limited_greedy"});
    take("experts.groups", {"n_group"});
    take("experts.groups_chosen", {"topk_group"});
    if (!take("experts.gate", {"scoring_func"})) usual_gate();
    take("experts.normalised", {"norm_topk_prob"});
    take("experts.scaling", {"routed_scaling_factor"});
  }

  // Of families whose files do not say it: those with groups of experts choose by sigmoids, as does who has a
  // bias beside the scores; the other ones with these names by a softmax.
  void usual_gate() {
    if (has("n_group")) {
      set("experts.gate", "n_group", "sigmoid", true);
      return;
    }
    for (const char* key : {"num_experts", "num_local_experts"}) {
      if (has(key) && !has("use_routing_bias") && !has("router_enable_expert_bias"))
        set("experts.gate", key, "softmax", true);
    }
  }

  // Which layers have a dense network in place of experts, or beside them.
  void networks() {
    ModelFacts& facts = stated_.facts;
    if (has("expert_ffn_hidden_size")) {
      // A layer of this family has two attentions, each with a dense network behind it, and the experts
      // beside the second.
      take("dense.width", {"ffn_hidden_size"});
      set("dense.beside", "ffn_hidden_size", 2, true);
      set("attention.per_layer", "ffn_hidden_size", 2, true);
    } else if (facts.experts.routed == 0) {
      take("dense.width", {"intermediate_size"});
    } else {
      some_dense();
      const bool any = facts.dense.first > 0 || !facts.dense.layers.empty();
      if (any) {
        take("dense.width", {"intermediate_size"});
      } else {
        unused("intermediate_size");
        return;
      }
    }
    require("dense.width");
  }

  void some_dense() {
    take("dense.first", {"first_k_dense_replace", "num_dense_layers"});
    const Whole layers = stated_.facts.layers, first = stated_.facts.dense.first;
    std::set<Whole> dense;
    if (has("mlp_only_layers")) {
      take("dense.layers", {"mlp_only_layers"});
      dense.insert(stated_.facts.dense.layers.begin(), stated_.facts.dense.layers.end());
    }
    if (has("mlp_layer_types")) {
      const Words kinds = words("mlp_layer_types", {"dense", "sparse"});
      for (Whole layer = 0; layer < layers; ++layer) {
        if (kinds[static_cast<std::size_t>(layer)] == "dense") dense.insert(layer);
      }
    }
    // Two keys say the same with another first layer.
    const Whole freq = has("moe_layer_freq") ? whole({"moe_layer_freq"}, {1, 1024}) : 1;
    const Whole step = has("decoder_sparse_step") ? whole({"decoder_sparse_step"}, {1, 1024}) : 1;
    for (Whole layer = first; layer < layers; ++layer) {
      if (layer % freq != 0 || (layer + 1) % step != 0) dense.insert(layer);
    }
    std::erase_if(dense, [&](Whole layer) { return layer < first; });
    if (!dense.empty())
      set("dense.layers", "the layers without experts", Wholes(dense.begin(), dense.end()), true);
  }

  void draft() {
    only("mtp_use_dedicated_embeddings", {false});
    const bool off = has("use_mtp") && !flag("use_mtp");
    if (off) {
      for (const char* key : {"num_mtp_modules", "mtp_transformer_layers"}) unused(key);
      return;
    }
    only("mtp_transformer_layers", {1});
    take("draft.layers",
         {"num_nextn_predict_layers", "num_mtp_modules", "num_mtp_layers", "mtp_num_hidden_layers"});
  }

  void weights() {
    if (const auto key = one_of({"torch_dtype", "dtype"})) {
      only(*key, {"bfloat16", "float16"});
      set("weights.format", *key, at(*key) == "float16" ? "fp16" : "bf16");
    }
    only("quantize", {"w8a8_dynamic"});
    if (has("quantize")) set("weights.format", "quantize", "int8");
    if (!has("quantization_config")) return;
    const Json& of = at("quantization_config");
    if (!of.is_object() || !of.contains("quant_method") || !of["quant_method"].is_string())
      refuse("quantization_config", "has no quant_method; allowed: fp8, mxfp4, compressed-tensors");
    const std::string method = of["quant_method"].get<std::string>();
    if (method == "compressed-tensors") {
      compressed(of);
    } else if (method == "fp8" || method == "mxfp4") {
      set("weights.format", "quantization_config.quant_method", method);
      if (of.contains("weight_block_size"))
        set("weights.block", "quantization_config.weight_block_size", of["weight_block_size"]);
    } else {
      refuse("quantization_config.quant_method",
             fmt::format("{} is not modelled; allowed: fp8, mxfp4, compressed-tensors",
                         shown(of["quant_method"])));
    }
    // What is left out: the attention, and so all but the experts; or single small matrices.
    for (const char* key : {"modules_to_not_convert", "ignore"}) {
      const bool experts_only = of.contains(key) && of[key].dump().find("self_attn") != std::string::npos;
      if (experts_only) set("weights.covers", fmt::format("quantization_config.{}", key), "experts");
    }
  }

  void compressed(const Json& of) {
    const Json groups = of.value("config_groups", Json::object());
    if (!groups.is_object() || groups.size() != 1)
      refuse("quantization_config.config_groups", "allowed: one group");
    const Json& group = groups.front();
    const Json how = group.is_object() ? group.value("weights", Json()) : Json();
    const bool whole_bits = how.is_object() && how.value("type", Json()) == "int";
    if (!whole_bits || (how.value("num_bits", Json()) != 4 && how.value("num_bits", Json()) != 8))
      refuse("quantization_config.config_groups", "allowed: weights of type int with num_bits 4 or 8");
    set("weights.format", "quantization_config.config_groups", how["num_bits"] == 4 ? "int4" : "int8");
    if (how.contains("group_size") && how["group_size"].is_number_integer() && how["group_size"] > 0)
      set("weights.block", "quantization_config.config_groups", Json::array({1, how["group_size"]}));
  }

  // What nobody has asked for.
  void rest() {
    std::vector<std::string> known(asked_.begin(), asked_.end());
    known.insert(known.end(), kNoEffect.begin(), kNoEffect.end());
    for (const auto& [key, value] : config_.items()) {
      if (used_.contains(key) || is_comment(key)) continue;
      const bool harmless = passed_.contains(key) || std::ranges::find(kNoEffect, key) != kNoEffect.end();
      if (!harmless && !value.is_null())
        refuse(key,
               fmt::format("is not understood beside the other keys, and may change the work{}; allowed: "
                           "the keys of docs/models.md, or _{} for a comment",
                           hw::suggestion(key, known), key));
      stated_.unused.push_back(key);
    }
    std::ranges::sort(stated_.unused);
  }

  std::string file_;
  Json config_;
  StatedModel stated_;
  std::vector<Fact> facts_;
  std::set<std::string, std::less<>> used_, passed_;
  std::vector<std::string> asked_;
};

}  // namespace

StatedModel read_config(std::string_view text, const std::string& file) {
  ConfigReader reader(text, file);
  return reader.read();
}

}  // namespace cm384::models
