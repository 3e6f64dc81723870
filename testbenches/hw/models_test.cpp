// Models as data: the worked values of parameters, caches and FLOPs, of the shipped models and of public
// configurations where they are at hand; what a reader has to refuse; both formats of one model.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/text/json.h"
#include "hw/models/model.h"
#include "hw/models/model_sizes.h"
#include "testbenches/hw/refusal.h"

namespace cm384::models::models_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Of the main model: total and active parameters; bytes of cache a token, of them of an indexer (FP8), and a
// request's; parameters of draft layers.
struct Worked {
  std::string name;
  Whole parameters, active, kv, index = 0, sliding = 0, state = 0, draft = 0;
};

// Layers and what they are made of, without names and sources.
bool same_work(const Model& one, const Model& other) {
  return one.hidden == other.hidden && one.vocabulary == other.vocabulary && one.context == other.context &&
         one.tied_heads == other.tied_heads && one.layers == other.layers &&
         one.draft_layers == other.draft_layers && one.draft == other.draft && one.weights == other.weights;
}

void expect_equal(const ModelSizes& sizes, const Worked& worked) {
  SCOPED_TRACE(worked.name);
  EXPECT_EQ(sizes.parameters, worked.parameters);
  EXPECT_EQ(sizes.active, worked.active);
  EXPECT_EQ(sizes.linear_flops, 2 * worked.active);
  EXPECT_EQ(sizes.kv_bytes, worked.kv);
  EXPECT_EQ(sizes.index_bytes, worked.index);
  EXPECT_EQ(sizes.sliding_bytes, worked.sliding);
  EXPECT_EQ(sizes.state_bytes, worked.state);
  if (worked.draft > 0) {
    EXPECT_EQ(sizes.draft_parameters, worked.draft);
  }
}

const std::vector<Worked> kShipped{
    {"deepseek-r1", 671'025'397'760, 36'624'596'992, 70'272, 0, 0, 0, 11'610'030'080},
    {"deepseek-v3.2", 671'876'907'008, 37'476'106'240, 70'272, 7'808},
    {"glm-4.5", 352'795'525'120, 32'854'016'000, 376'832, 0, 0, 0, 3'988'029'440},
    {"glm-5", 743'910'014'976, 40'831'942'656, 89'856, 9'984},
    {"glm-5.2", 743'375'831'040, 40'297'758'720, 89'856, 2'688},
    {"gpt-oss-120b", 116'788'838'400, 5'131'100'160, 36'864, 0, 4'718'592},
    {"kimi-k2", 1'026'407'202'816, 31'686'066'176, 70'272},
    {"llama-3.3-70b", 70'552'387'584, 69'501'714'432, 327'680},
    {"qwen3-235b-a22b", 235'092'836'352, 21'567'635'456, 192'512},
    {"qwen3-32b", 32'761'446'400, 31'983'534'080, 262'144},
};

TEST(Models, ShippedOnesHaveTheWorkedSizes) {
  std::vector<std::string> names;
  for (const Worked& worked : kShipped) {
    names.push_back(worked.name);
    expect_equal(model_sizes(load_model(worked.name)), worked);
  }
  EXPECT_EQ(model_names(), names);
}

TEST(Models, EveryShippedFactSaysWhereItComesFrom) {
  for (const std::string& name : model_names()) {
    const Model model = load_model(name);
    EXPECT_FALSE(model.description.empty()) << name;
    EXPECT_GE(model.stated.sources.size(), 10u) << name;
    for (const auto& [key, source] : model.stated.sources) {
      EXPECT_GT(source.source.size(), 10u) << name << " " << key;
      EXPECT_FALSE(source.confidence.empty()) << name << " " << key;
    }
  }
}

// Parts of one layer, of the last, which has the experts.
struct WorkedLayer {
  std::string name;
  Whole attention, dense, expert, gate;
  std::map<std::string, Whole> matrices;
};

TEST(Models, PartsOfALayerHaveTheWorkedSizes) {
  const std::vector<WorkedLayer> layers{
      {"deepseek-r1",
       187'105'280,
       396'361'728,
       44'040'192,
       1'835'008,
       {{"q_a", 11'010'048},
        {"q_b", 37'748'736},
        {"kv_a", 4'128'768},
        {"kv_b", 16'777'216},
        {"o", 117'440'512}}},
      {"kimi-k2",
       101'122'048,
       396'361'728,
       44'040'192,
       2'752'512,
       {{"q_b", 18'874'368}, {"kv_b", 8'388'608}, {"o", 58'720'256}}},
      {"glm-4.5",
       136'314'880,
       188'743'680,
       23'592'960,
       819'200,
       {{"q", 62'914'560}, {"k", 5'242'880}, {"v", 5'242'880}, {"o", 62'914'560}}},
      {"qwen3-235b-a22b", 71'303'168, 0, 18'874'368, 524'288, {{"q", 33'554'432}, {"k", 2'097'152}}},
      {"qwen3-32b", 94'371'840, 393'216'000, 0, 0, {{"q", 41'943'040}, {"v", 5'242'880}}},
      {"llama-3.3-70b", 150'994'944, 704'643'072, 0, 0, {{"o", 67'108'864}, {"k", 8'388'608}}},
      {"gpt-oss-120b", 26'542'080, 0, 24'883'200, 368'640, {}}};
  for (const WorkedLayer& worked : layers) {
    SCOPED_TRACE(worked.name);
    const Model model = load_model(worked.name);
    const Layer &first = model.layers.front(), &last = model.layers.back();
    EXPECT_EQ(sizes_of(model, first).dense, worked.dense);
    const LayerSizes sizes = sizes_of(model, last);
    EXPECT_EQ(sizes.attention, worked.attention);
    EXPECT_EQ(sizes.expert, worked.expert);
    EXPECT_EQ(sizes.gate, worked.gate);
    std::map<std::string, Whole> matrices;
    for (const Matrix& matrix : attention_matrices(model, last.attention))
      matrices[matrix.name] = matrix.elements;
    for (const auto& [name, elements] : worked.matrices) EXPECT_EQ(matrices[name], elements) << name;
  }
}

TEST(Models, AttentionAgainstTheContextIsAsWorkedOut) {
  const auto flops = [](const char* name) { return model_sizes(load_model(name)).attention; };
  EXPECT_EQ(flops("deepseek-r1").full, 16'990'208);
  EXPECT_EQ(flops("deepseek-r1").not_absorbed, 61 * 81'920);
  EXPECT_EQ(flops("kimi-k2").full, 8'495'104);
  EXPECT_EQ(flops("qwen3-235b-a22b").full, 3'080'192);
  EXPECT_EQ(flops("qwen3-32b").full, 2'097'152);
  EXPECT_EQ(flops("llama-3.3-70b").full, 2'621'440);
  EXPECT_EQ(flops("glm-4.5").full, 4'521'984);
  EXPECT_EQ(flops("gpt-oss-120b").full, 294'912);
  EXPECT_EQ(flops("gpt-oss-120b").sliding, 294'912);
  EXPECT_EQ(flops("gpt-oss-120b").window, 128);
  EXPECT_EQ(model_sizes(load_model("deepseek-r1")).draft_kv_bytes, 1'152);
}

// The published configurations stand beside the project, or where CM384_SHARED says.
fs::path configurations() {
  const char* named = std::getenv("CM384_SHARED");
  for (const fs::path& folder :
       {fs::path(named == nullptr ? "" : named), fs::path(CM384_SOURCE_DIR) / "../shared"}) {
    if (!folder.empty() && fs::is_directory(folder / "models")) return folder / "models";
  }
  return {};
}
constexpr const char* kNone = "no ../shared/models beside the project and no CM384_SHARED";

Model published(const fs::path& folder, const std::string& name) {
  return load_model((folder / (name + ".config.json")).string());
}

TEST(Models, PublishedConfigurationsHaveTheWorkedSizes) {
  const fs::path folder = configurations();
  if (folder.empty()) GTEST_SKIP() << kNone;
  const std::vector<Worked> all{
      {"deepseek-v3", 671'025'397'760, 36'624'596'992, 70'272, 0, 0, 0, 11'610'030'080},
      {"deepseek-v3.2", 671'876'907'008, 37'476'106'240, 70'272, 7'808},
      {"kimi-k2-instruct", 1'026'407'202'816, 31'686'066'176, 70'272},
      {"kimi-k2.5", 1'026'407'202'816, 31'686'066'176, 70'272},
      {"glm-5", 743'910'014'976, 40'831'942'656, 89'856, 9'984},
      {"glm-5.2", 743'375'831'040, 40'297'758'720, 89'856, 2'688},
      {"glm-4.6", 352'795'525'120, 32'854'016'000, 376'832, 0, 0, 0, 3'988'029'440},
      {"qwen3-coder-480b-a35b", 480'154'091'520, 34'540'486'656, 253'952},
      {"qwen3.5-397b-a17b", 396'343'623'680, 16'329'195'520, 30'720, 0, 0, 188'743'680},
      {"llama-3.1-70b", 70'552'387'584, 69'501'714'432, 327'680},
      {"minimax-m2", 228'688'920'576, 10'415'112'192, 253'952},
      {"longcat-flash-chat", 560'664'150'016, 27'148'681'216, 64'512},
      {"pangu-ultra-moe-718b", 719'091'761'152, 39'189'839'872, 70'272},
      {"openpangu-r-72b-2512-int8", 73'756'753'920, 14'444'052'480, 128'000},
      {"pangu-pro-moe-72b", 71'987'691'520, 15'711'764'480, 196'608},
  };
  for (const Worked& worked : all) expect_equal(model_sizes(published(folder, worked.name)), worked);

  const ModelSizes longcat = model_sizes(published(folder, "longcat-flash-chat"));
  EXPECT_EQ(longcat.least_active, 18'692'964'352);
  EXPECT_EQ(longcat.most_active, 31'376'539'648);
  EXPECT_EQ(longcat.attention.full, 7'798'784);
  const AttentionFlops v32 = model_sizes(published(folder, "deepseek-v3.2")).attention;
  EXPECT_EQ(v32.indexer, 999'424);
  EXPECT_EQ(v32.chosen, 16'990'208);
  EXPECT_EQ(v32.chosen_tokens, 2'048);
  EXPECT_EQ(v32.full, 0);
  const AttentionFlops glm = model_sizes(published(folder, "glm-5")).attention;
  EXPECT_EQ(glm.indexer, 638'976);
  EXPECT_EQ(glm.chosen, 10'862'592);
  const AttentionFlops qwen = model_sizes(published(folder, "qwen3.5-397b-a17b")).attention;
  EXPECT_EQ(qwen.full, 491'520);
  EXPECT_EQ(qwen.linear, 45 * 6 * 64 * 128 * 128);
  EXPECT_EQ(model_sizes(published(folder, "minimax-m2")).attention.full, 1'523'712);
  EXPECT_EQ(model_sizes(published(folder, "qwen3-coder-480b-a35b")).attention.full, 3'047'424);
}

TEST(Models, PartsOfPublishedLayersHaveTheWorkedSizes) {
  const fs::path folder = configurations();
  if (folder.empty()) GTEST_SKIP() << kNone;
  const std::vector<WorkedLayer> layers{
      {"glm-5", 165'019'648, 226'492'416, 37'748'736, 1'572'864, {{"kv_b", 14'680'064}, {"o", 100'663'296}}},
      {"qwen3-coder-480b-a35b", 163'577'856, 0, 47'185'920, 983'040, {{"q", 75'497'472}}},
      {"minimax-m2", 44'040'192, 0, 14'155'776, 786'432, {}},
      {"longcat-flash-chat", 90'570'752, 226'492'416, 37'748'736, 4'718'592, {{"o", 50'331'648}}},
      {"pangu-ultra-moe-718b", 196'575'232, 424'673'280, 47'185'920, 1'966'080, {}},
      {"qwen3.5-397b-a17b", 104'857'600, 0, 12'582'912, 2'097'152, {}}};
  for (const WorkedLayer& worked : layers) {
    SCOPED_TRACE(worked.name);
    const Model model = published(folder, worked.name);
    EXPECT_EQ(sizes_of(model, model.layers.front()).dense, worked.dense);
    const LayerSizes sizes = sizes_of(model, model.layers.back());
    EXPECT_EQ(sizes.attention, worked.attention);
    EXPECT_EQ(sizes.expert, worked.expert);
    EXPECT_EQ(sizes.gate, worked.gate);
    std::map<std::string, Whole> matrices;
    for (const Matrix& matrix : attention_matrices(model, model.layers.back().attention))
      matrices[matrix.name] = matrix.elements;
    for (const auto& [name, elements] : worked.matrices) EXPECT_EQ(matrices[name], elements) << name;
  }
  const Model v32 = published(folder, "deepseek-v3.2"), qwen = published(folder, "qwen3.5-397b-a17b");
  EXPECT_EQ(sizes_of(v32, v32.layers.back()).indexer, 13'959'168);
  EXPECT_EQ(sizes_of(qwen, qwen.layers.front()).attention, 117'964'800);
}

// A configuration of ours and the file that its maker publishes are one model.
TEST(Models, BothFormatsOfOneModelAreEqual) {
  const fs::path folder = configurations();
  if (folder.empty()) GTEST_SKIP() << kNone;
  const std::map<std::string, std::string> other{{"kimi-k2", "kimi-k2-instruct"},
                                                 {"llama-3.3-70b", "llama-3.3-70b-instruct"}};
  for (const std::string& name : model_names()) {
    const auto called = other.find(name);
    const Model model = published(folder, called == other.end() ? name : called->second);
    EXPECT_TRUE(same_work(load_model(name), model)) << name;
  }
  EXPECT_FALSE(same_work(load_model("deepseek-r1"), published(folder, "kimi-k2-instruct")));
}

TEST(Models, AnAttentionThatIsNotModelledIsRefusedByItsKey) {
  const fs::path folder = configurations();
  if (folder.empty()) GTEST_SKIP() << kNone;
  EXPECT_THAT(refusal([&] { published(folder, "deepseek-v4-flash"); }),
              HasSubstr("compress_ratios: attention over a compressed context is not modelled; allowed: "));
}

// A small model with experts, as one family of published files has it.
Json small() {
  return Json::parse(R"({
    "hidden_size": 256, "num_hidden_layers": 4, "vocab_size": 1000, "num_attention_heads": 4,
    "kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
    "intermediate_size": 512, "first_k_dense_replace": 1, "n_routed_experts": 16, "num_experts_per_tok": 2,
    "moe_intermediate_size": 128, "n_shared_experts": 1, "hidden_act": "silu", "rms_norm_eps": 1e-6,
    "num_key_value_heads": 4, "_source": "a test"})");
}
Model model_of(const Json& config) {
  return build_model(read_config(config.dump(), "small.json"), "small.json");
}
std::string refused(const std::string& key, const Json& value) {
  Json config = small();
  config[key] = value;
  return refusal([&] { model_of(config); });
}

TEST(ModelConfig, KeysThatDoNotChangeTheWorkAreListed) {
  EXPECT_THAT(model_of(small()).stated.unused, ::testing::ElementsAre("num_key_value_heads", "rms_norm_eps"));
}

TEST(ModelConfig, BrokenOnesAreRefusedByTheirKey) {
  EXPECT_EQ(refused("compress_ratios", Json::array({0, 4})).substr(0, 29), "small.json: compress_ratios: ");
  EXPECT_EQ(refused("linear_num_key_heads", 4).substr(0, 34), "small.json: linear_num_key_heads: ");
  EXPECT_EQ(refused("num_experts_per_tok", 17), "small.json: experts.chosen: 17 of 16 experts");
  EXPECT_EQ(refused("hidden_size", "7168"),
            "small.json: hidden_size: \"7168\"; allowed: a whole number from 1 to 131072");
  EXPECT_EQ(refused("hidden_act", "relu"),
            "small.json: hidden_act: \"relu\" is not modelled; allowed: silu, swish");
  EXPECT_EQ(refused("qk_head_dim", 64), "small.json: qk_head_dim: 64 is not modelled; allowed: 48");
  EXPECT_THAT(
      refused("n_routed_expert", 8),
      HasSubstr("n_routed_expert: is not understood beside the other keys, and may change the work; did "
                "you mean n_routed_experts?"));
  EXPECT_THAT(refused("sliding_window", 128), HasSubstr("sliding_window: nothing says which layers slide"));
  EXPECT_THAT(
      refused("layer_types", Json::array({"full_attention", "chunked_attention"})),
      HasSubstr("layer_types: \"chunked_attention\"; allowed: a list of at most 1024 of: full_attention"));
  EXPECT_EQ(refused("layer_types", Json::array({"full_attention"})),
            "small.json: layer_types: has 1 entries for 4 layers");
  EXPECT_THAT(refused("quantization_config", {{"quant_method", "gptq"}}),
              HasSubstr("quantization_config.quant_method: \"gptq\" is not modelled; allowed: fp8"));
  EXPECT_EQ(refused("num_layers", 5), "small.json: num_layers: 5; allowed: 4, as num_hidden_layers says");
  EXPECT_EQ(refused("vocab_size", nullptr),
            "small.json: vocab_size: is not stated; allowed: the config.json of a decoder");
  EXPECT_THAT(refusal([] { read_config("[1", "x.json"); }), HasSubstr("x.json: not valid JSON: "));
  EXPECT_EQ(refusal([] { read_config("{\"hidden_size\": " + std::string(100'000, '['), "x.json"); }),
            "x.json: values are nested more than 32 deep");
  EXPECT_EQ(refusal([] { read_config("[1]", "x.json"); }),
            "x.json: is not an object; allowed: a config.json");
}

// Which layers have experts is said in five ways.
TEST(ModelConfig, LayersWithoutExpertsAreFound) {
  const auto dense = [](const Json& changes, bool keep_first = false) {
    Json config = small();
    if (!keep_first) config.erase("first_k_dense_replace");
    config.update(changes);
    std::string layers;
    for (const Layer& layer : model_of(config).layers) layers += layer.has_experts() ? 'e' : 'd';
    return layers;
  };
  EXPECT_EQ(dense(Json::object(), true), "deee");
  EXPECT_EQ(dense({{"num_dense_layers", 2}}), "ddee");
  EXPECT_EQ(dense({{"mlp_only_layers", {0, 2}}}), "dede");
  EXPECT_EQ(dense({{"decoder_sparse_step", 2}}), "dede");
  EXPECT_EQ(dense({{"moe_layer_freq", 2}}), "eded");
  EXPECT_EQ(dense({{"mlp_layer_types", {"dense", "sparse", "sparse", "dense"}}}), "deed");
  EXPECT_EQ(dense(Json::object()), "eeee");
}

TEST(ModelConfig, HeadWidthIsNotHiddenOverHeadsWhereItIsStated) {
  Json config = Json::parse(R"({"hidden_size": 320, "num_hidden_layers": 1, "vocab_size": 10,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64})");
  EXPECT_EQ(model_of(config).layers[0].attention.key_width, 80);
  config["head_dim"] = 128;
  EXPECT_EQ(attention_matrices(model_of(config), model_of(config).layers[0].attention)[0].elements,
            320 * 512);
  config.erase("head_dim");
  config["num_attention_heads"] = 6;
  EXPECT_THAT(refusal([&] { model_of(config); }),
              HasSubstr("head_dim: is not stated, and 6 heads do not divide"));
}

// By a key of the file, or by the family whose code has it; norms of a whole row are no norms of heads.
TEST(ModelConfig, NormsAndSinksOfHeadsAreFound) {
  const auto of = [](const Json& changes) {
    Json config = Json::parse(R"({"hidden_size": 256, "num_hidden_layers": 1, "vocab_size": 10,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64})");
    config.update(changes);
    const Attention attention = model_of(config).layers[0].attention;
    return std::pair(attention.head_norms, attention.sink_scores);
  };
  EXPECT_EQ(of(Json::object()), std::pair(false, false));
  EXPECT_EQ(of({{"model_type", "qwen3_moe"}}), std::pair(true, false));
  EXPECT_EQ(of({{"model_type", "qwen2"}}), std::pair(false, false));
  EXPECT_EQ(of({{"model_type", "gpt_oss"}}), std::pair(false, true));
  EXPECT_EQ(of({{"model_type", "qwen3"}, {"use_qk_norm", false}}), std::pair(false, false));
  EXPECT_EQ(of({{"use_qk_norm", true}}), std::pair(true, false));
  EXPECT_EQ(of({{"use_qk_norm", true}, {"qk_norm_type", "per_layer"}}), std::pair(false, false));
}

TEST(ModelConfig, TheLanguageModelOfSeveralKindsOfInputIsRead) {
  Json outer{
      {"text_config", small()}, {"vision_config", {{"hidden_size", 9}}}, {"tie_word_embeddings", true}};
  const Model model = model_of(outer);
  EXPECT_EQ(model.hidden, 256);
  EXPECT_TRUE(model.tied_heads);
  EXPECT_EQ(model_sizes(model_of(small())).parameters - model_sizes(model).parameters, 256 * 1000);
}

constexpr std::string_view kSmallToml = R"(hidden = 256
layers = 4
vocabulary = { value = 1000, unit = "tokens", from = "published", source = "a test", confidence = "low" }
[attention]
heads = 4
key_width = 48
value_width = 32
position_width = 16
query_latent = 96
kv_latent = 64
[dense]
width = 512
first = 1
[experts]
routed = 16
chosen = 2
width = 128
shared = 1
shared_width = 128
)";

Model toml_model(const std::string& text) {
  return build_model(read_toml(text, "small.toml", false), "small.toml");
}

TEST(ModelToml, IsTheModelOfTheConfiguration) {
  const Model model = toml_model(std::string(kSmallToml));
  EXPECT_TRUE(same_work(model, model_of(small())));
  EXPECT_EQ(model.stated.sources.at("vocabulary").confidence, "low");
  EXPECT_EQ(model.stated.sources.at("layers").source, "small.toml:2");
  EXPECT_FALSE(same_work(toml_model(std::string(kSmallToml) + "scaling = 2.5\n"), model));
}

TEST(ModelToml, BrokenOnesAreRefusedByTheirKey) {
  const std::string text(kSmallToml);
  const auto with = [&](const std::string& more) { return refusal([&] { toml_model(text + more); }); };
  EXPECT_THAT(with("grups = 2\n"),
              HasSubstr("small.toml:20: experts.grups: no such fact of a model; did you mean"));
  EXPECT_EQ(with("groups = 3\n"), "small.toml: experts.groups: 3; allowed: a divisor of 16 experts");
  EXPECT_EQ(with("zero = -1\n"), "small.toml:20: experts.zero: -1; allowed: a whole number from 0 to 16384");
  EXPECT_EQ(with("zero = { value = 4, unit = \"tokens\" }\n"),
            "small.toml:20: experts.zero: its unit; allowed: experts");
  EXPECT_EQ(with("gate = \"hash\"\n"),
            "small.toml:20: experts.gate: \"hash\"; allowed: unstated, softmax, sigmoid");
  EXPECT_EQ(with("[draft]\nlayers = { value = 1, from = \"rumour\", source = \"a page\" }\n"),
            "small.toml:21: from: 'rumour'; allowed: published, derived, assumed");
  EXPECT_THAT(refusal([&] { read_toml(text, "small.toml", true); }),
              HasSubstr(": needs its source; allowed: { value, from, source }"));
}

TEST(Models, UnknownNamesAreRefused) {
  EXPECT_THAT(
      refusal([] { load_model("deepseek-r2"); }),
      HasSubstr("model 'deepseek-r2': none that comes with cm384; did you mean deepseek-r1?; allowed: "));
  EXPECT_THAT(refusal([] { load_model("none/config.json"); }), HasSubstr("none/config.json"));
}

}  // namespace
}  // namespace cm384::models::models_test
