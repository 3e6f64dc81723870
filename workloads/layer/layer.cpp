// `cm384 run layer`.
#include "workloads/layer/layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/text/error.h"
#include "base/text/number.h"
#include "system/observe/observers.h"
#include "traces/random.h"
#include "workloads/kernels/cube_run.h"
#include "workloads/layer/layer_lanes.h"
#include "workloads/layer/layer_values.h"
#include "workloads/layer/step_deployment.h"
#include "workloads/moe/moe_case.h"
#include "workloads/moe/moe_options.h"
#include "workloads/studies.h"

namespace cm384::studies {
void LayerOptions::settle(const hw::Machine& machine) {
  dies_of_npu = machine.topology.dies_per_package;
  const std::size_t colon = split.find(':');
  if (colon == std::string::npos) return;
  const int groups = machine.die.groups();
  const auto first = hw::number_of<int>(std::string_view(split).substr(0, colon)),
             second = hw::number_of<int>(std::string_view(split).substr(colon + 1));
  if (!first || !second || *first < 1 || *second < 1 || *first > 1000 || *second > 1000)
    throw InputError(
        fmt::format("--split {}: allowed: a ratio of whole numbers from 1 to 1000, such as 2:1", split));
  const int own = std::clamp(groups * *first / (*first + *second), 1, std::max(1, groups - 1));
  if (groups > 1) split = fmt::format("{}/{},{}/{}", own, 2 * own, groups - own, 2 * (groups - own));
}

std::array<CoreShare, 2> parse_split(std::string_view text, int available) {
  const auto refuse = [&]() -> std::array<CoreShare, 2> {
    throw InputError(fmt::format(
        "--split {}: allowed: AIC/AIV of attention, AIC/AIV of the experts, two AIVs to an AIC, together "
        "at most {}/{}, such as 16/32,8/16",
        text, available, 2 * available));
  };
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return refuse();
  std::array<int, 2> groups{};
  const std::array<std::string_view, 2> words{text.substr(0, comma), text.substr(comma + 1)};
  for (std::size_t n = 0; n < 2; ++n) {
    const std::size_t slash = words[n].find('/');
    if (slash == std::string_view::npos) return refuse();
    const auto cubes = hw::number_of<int>(words[n].substr(0, slash)),
               vectors = hw::number_of<int>(words[n].substr(slash + 1));
    if (!cubes || !vectors || *cubes < 1 || *vectors != 2 * *cubes) return refuse();
    groups[n] = *cubes;
  }
  if (groups[0] + groups[1] > available) return refuse();
  return {CoreShare{0, groups[0]}, CoreShare{groups[0], groups[1]}};
}

std::uint64_t fullest_die(const LayerSetting& setting, std::uint32_t window) {
  std::uint64_t most = 0;
  for (const RankLengths& rank : setting.lengths) {
    std::uint64_t sum = 0;
    for (const auto& part : rank) {
      for (const std::uint32_t length : part) sum += std::min(length, window);
    }
    most = std::max(most, sum);
  }
  return most;
}

LayerOptions with_lengths(const StudyContext& context, LayerOptions options, StudyResult& result) {
  for (const std::string& path : routing_files(options.routing)) result.input_files.push_back(path);
  for (std::string& path : options.files()) result.input_files.push_back(std::move(path));
  const Lengths lengths = parse_lengths(options.kv_lengths);
  if (lengths.kind == Lengths::Kind::fixed) return options;
  if (!lengths.path.empty()) result.input_files.push_back(lengths.path);
  options.kv = static_cast<int>(std::lround(LengthDraw(lengths, options.kv).mean()));
  if (context.given.contains("kv"))
    result.notes.push_back(
        fmt::format("--kv has no effect: {} has a mean of {} tokens", options.kv_lengths, options.kv));
  return options;
}

int default_shared_copies(int ranks) {
  return ranks == 320 ? 32 : std::max(1, ranks / 9);
}

namespace {

constexpr std::array kMicrobatches{1, 2};
// Ranks up to which all replay, and how many of more do.
constexpr int kReplayAll = 64, kReplayed = 8;

// How the cores of a die may be shared, from even to three quarters for attention.
std::vector<std::string> splits_of(const std::string& split, int aic) {
  if (split != "auto") return {split};
  std::vector<std::string> made;
  for (const int parts : {6, 7, 8, 9}) {
    const int own = aic * parts / 12;
    if (own > 0 && own < aic)
      made.push_back(fmt::format("{}/{},{}/{}", own, 2 * own, aic - own, 2 * (aic - own)));
  }
  return made;
}

LayerSetting setting_of(const StudyContext& context, const LayerOptions& options, int microbatches,
                        const std::string& split) {
  const int requests = options.requests_of_die(), tokens = 1 + options.mtp;
  if (requests < microbatches || requests % microbatches != 0)
    throw InputError(fmt::format("--batch {}: {} requests per die do not divide into {} microbatches",
                                 options.batch, requests, microbatches));
  const int sharing = options.sharing();
  LayerSetting setting;
  setting.microbatches = microbatches;
  setting.layers = options.layers;
  setting.width = static_cast<std::uint32_t>(options.width);
  setting.bf16_networks = options.networks == "bf16";
  setting.int4_networks = options.networks == "w4a8";
  setting.tensor = sharing;
  if (options.dense()) setting.dense_width = static_cast<std::uint32_t>(options.dense_width / sharing);
  setting.shared_output = options.shared_experts > 0;
  setting.softmax_gate = options.softmax_gate;
  setting.expert_group = static_cast<std::uint32_t>(options.expert_group);
  setting.token_groups = static_cast<std::uint32_t>(options.token_groups);
  setting.moe.ranks = options.ranks;
  setting.moe.batch = requests / microbatches * tokens;
  setting.moe.experts = options.experts;
  setting.moe.top_k = options.experts_per_token;
  setting.moe.hidden = options.hidden;
  setting.moe.routing = options.routing;
  setting.moe.full_mesh = options.full_mesh;
  setting.moe.shared_copies = options.shared_experts == 0  ? 0
                              : options.shared_copies >= 0 ? options.shared_copies
                                                           : default_shared_copies(options.holders());
  setting.moe.redundant = options.redundant;
  setting.moe.expert_ranks = options.expert_ranks;
  setting.moe.by_load = options.by_load;
  setting.renewal = {options.renew, options.drift};
  setting.attention.queries = static_cast<std::uint32_t>(tokens);
  setting.attention.heads = static_cast<std::uint32_t>(options.heads / sharing);
  // Ranks beyond the KV heads have copies of them.
  if (options.kv_heads > 0)
    setting.attention.kv_heads = static_cast<std::uint32_t>(std::max(1, options.kv_heads / sharing));
  setting.attention.head_width = static_cast<std::uint32_t>(options.head_width);
  setting.attention.window = static_cast<std::uint32_t>(options.window);
  setting.attention.head_norms = options.head_norms;
  setting.attention.sinks = options.sinks;
  setting.attention.hidden = static_cast<std::uint32_t>(options.hidden);
  setting.attention.q_lora = static_cast<std::uint32_t>(options.q_lora);
  setting.attention.int8 = options.int8;
  setting.attention.chosen = static_cast<std::uint32_t>(options.chosen);
  if (options.chosen > 0) setting.attention.index_heads = static_cast<std::uint32_t>(options.index_heads);
  setting.attention.nope = static_cast<std::uint32_t>(options.key_width) - CM384_MLA_ROPE;
  setting.attention.value = static_cast<std::uint32_t>(options.value_width);
  const int groups = context.machine.die.groups();
  setting.cores =
      microbatches == 1 ? std::array{CoreShare{0, groups}, CoreShare{0, groups}} : parse_split(split, groups);
  // Dies of two kinds exchange with as many cores on either side.
  const int exchange =
      setting.two_kinds() ? std::min(setting.cores[0].count, setting.cores[1].count) : setting.cores[1].count;
  setting.moe.cores = 2 * exchange;
  setting.detail = options.detail == 0 ? (options.ranks <= 16 ? options.ranks : 1)
                                       : std::min(options.detail, options.ranks);
  setting.replay = options.replay > 0 || options.ranks <= kReplayAll ? options.replay : kReplayed;
  draw_lengths(setting, parse_lengths(options.kv_lengths), options.kv, requests * sharing, options.kv_sets,
               context.seed);
  return setting;
}

void check_memory(const StudyContext& context, const LayerOptions& options, const LayerSetting& setting) {
  const double token = static_cast<double>(setting.attention.token_bytes()) * options.layers,
               kv = static_cast<double>(fullest_die(setting)) * token;
  const double room = static_cast<double>(context.machine.memory.hbm.capacity.count);
  if (kv > room)
    throw InputError(
        fmt::format("--batch {} --kv {}: the KV cache of {} layers takes {:.1f} GB of the die's {:.1f} GB; "
                    "{} requests per NPU would fit",
                    options.batch, options.kv, options.layers, kv / 1e9, room / 1e9,
                    static_cast<int>(room / token / options.kv / setting.tensor) * 2));
}

// Heads, ranks and kernels fit each other.
void check_shapes(const LayerOptions& o) {
  const int sharing = o.sharing();
  const auto refuse = [](const std::string& what) { throw InputError(what); };
  if (o.expert_ranks > 0 && (o.dense() || o.expert_ranks >= o.ranks))
    refuse(fmt::format(
        "--expert-ranks {}: allowed: 0{}", o.expert_ranks,
        o.dense() ? " without experts" : fmt::format(" to {}, so that others have tokens", o.ranks - 1)));
  if (o.expert_ranks == 1 && o.shared_experts > 0 && !o.by_load && o.redundant < 0)
    refuse("--expert-ranks 1: the shared expert has dies of its own; allowed: at least 2");
  if (o.expert_ranks > 0 && o.renew > 0) refuse("--expert-ranks: allowed: without --renew");
  if (o.token_ranks() % sharing != 0)
    refuse(fmt::format("--attention-tp {}: allowed: a divisor of {} ranks{}", sharing, o.token_ranks(),
                       o.expert_ranks > 0 ? " with tokens" : ""));
  const int unit = o.kv_heads == 0 ? 16 : 1;
  if (o.heads % (sharing * unit) != 0)
    refuse(fmt::format("--heads {}: on {} ranks that share them; allowed: multiples of {}{}", o.heads,
                       sharing, sharing * unit, unit > 1 ? ": 16 per rank, with a latent" : ""));
  if (o.kv_heads > 0) {
    if (o.heads % o.kv_heads != 0)
      refuse(fmt::format("--kv-heads {}: allowed: a divisor of {} heads", o.kv_heads, o.heads));
    if (o.kv_heads % sharing != 0 && sharing % o.kv_heads != 0)
      refuse(
          fmt::format("--attention-tp {}: {} KV heads do not divide over so many ranks, or ranks over them",
                      sharing, o.kv_heads));
  }
  if (!o.dense()) o.check_groups();
  if (o.dense() && o.dense_width % (64 * sharing) != 0)
    refuse(fmt::format("--dense-width {}: on {} ranks that share it; allowed: multiples of {}", o.dense_width,
                       sharing, 64 * sharing));
}

}  // namespace

std::vector<LayerSetting> layer_settings(const StudyContext& context, const LayerOptions& options) {
  const int dies = context.machine.topology.dies(), requests = options.requests_of_die();
  if (options.ranks > dies)
    throw InputError(fmt::format("--ranks {}: the machine has {} dies", options.ranks, dies));
  if (requests < 1 || options.batch % options.dies_of_npu != 0)
    throw InputError(fmt::format("--batch {}: allowed: multiples of {}, the dies of an NPU", options.batch,
                                 options.dies_of_npu));
  if (options.drift > 0 && options.renew == 0)
    throw InputError("--drift: has an effect only with --renew of at least 1");
  if (options.drift > 0 && !options.routing.starts_with("zipf:"))
    throw InputError("--drift: has an effect only with --routing zipf:S");
  check_shapes(options);
  const bool best = options.microbatches == "best";
  std::vector<LayerSetting> settings;
  for (const int microbatches : kMicrobatches) {
    if (!best && options.microbatches != fmt::format("{}", microbatches)) continue;
    if (best && requests % microbatches != 0) continue;
    const auto splits = microbatches == 1 ? std::vector<std::string>{""}
                                          : splits_of(options.split, context.machine.die.groups());
    for (const std::string& split : splits)
      settings.push_back(setting_of(context, options, microbatches, split));
  }
  check_memory(context, options, settings.front());
  const bool looks = (context.observers != nullptr && !wants_lanes(context)) || context.gdb_port != 0;
  if (settings.front().detail < options.ranks && looks)
    throw InputError(
        "run layer: --explain, --record, --timeline-dies, --timeline-cores, --wave and --gdb look at "
        "instructions; allowed: --detail-dies as many as --ranks");
  return settings;
}

std::string unused_replay_dies(const LayerSetting& setting) {
  return fmt::format("--replay-dies has no effect: {} of {} dies run as firmware, {}", setting.detail,
                     setting.moe.ranks,
                     setting.detail < setting.moe.ranks ? "all others replay" : "none replays");
}

std::string split_text(const LayerSetting& setting) {
  const auto cores = [](const CoreShare& own) { return fmt::format("{}/{}", own.count, 2 * own.count); };
  return setting.microbatches == 1 ? cores(setting.cores[0])
                                   : fmt::format("{},{}", cores(setting.cores[0]), cores(setting.cores[1]));
}

ChosenLayer measure_fastest(const StudyContext& context, std::vector<LayerSetting> settings,
                            SimulatorCounts& counts) {
  ChosenLayer best;
  std::vector<std::string> tried;
  for (std::size_t n = 0; n < settings.size(); ++n) {
    const auto part = [&](std::size_t done) {
      return static_cast<double>(done) / static_cast<double>(settings.size());
    };
    PartOfProgress progress(context.progress, part(n), part(n + 1), counts);
    StudyContext own = context.with(progress);
    LayerReading reading = measure_layer(own, settings[n], counts);
    if (reading.stages.empty()) return {};
    tried.push_back(fmt::format("{} {:.1f} us", split_text(settings[n]), reading.layer_us.mean));
    if (n == 0 || reading.layer_us.mean < best.reading.layer_us.mean) {
      best.setting = std::move(settings[n]);
      best.reading = std::move(reading);
    }
  }
  if (tried.size() > 1) best.tried = fmt::format("layers of each split: {}", fmt::join(tried, ", "));
  return best;
}

OptionValues LayerOptions::of_model(const models::Model& model) {
  const models::ModelFacts& facts = model.stated.facts;
  const std::string& name = model.name;
  const auto refuse = [&](std::string_view key, const auto& found, std::string_view allowed) {
    throw InputError(fmt::format("--model {}: {}: {}; allowed here: {}", name, key, found, allowed));
  };
  const auto refuse_unless = [&](bool good, std::string_view key, const auto& found,
                                 std::string_view allowed) {
    if (!good) refuse(key, found, allowed);
  };
  const models::ModelFacts::OfAttention& attention = facts.attention;
  refuse_unless(std::ranges::find(attention.pattern, "linear") == attention.pattern.end(),
                "attention.pattern", "linear", "full and sliding");
  refuse_unless(attention.per_layer == 1, "attention.per_layer", attention.per_layer, "1");
  refuse_unless(!attention.output_gate, "attention.output_gate", true, "none");
  refuse_unless(attention.sinks == 0, "attention.sinks", attention.sinks, "none");
  refuse_unless(facts.dense.beside == 0, "dense.beside", facts.dense.beside, "none");
  refuse_unless(facts.experts.zero == 0, "experts.zero", facts.experts.zero, "none");
  refuse_unless(!facts.experts.shared_gate, "experts.shared_gate", true, "none");
  refuse_unless(facts.experts.shared <= 1, "experts.shared", facts.experts.shared, "0 or 1");
  refuse_unless(facts.experts.shared == 0 || facts.experts.shared_width == facts.experts.width,
                "experts.shared_width", facts.experts.shared_width, "as wide as a routed one");
  const bool latent = attention.kv_latent > 0;
  if (latent) {
    refuse_unless(attention.kv_latent == 512, "attention.kv_latent", attention.kv_latent, "512");
    refuse_unless(attention.position_width == 64, "attention.position_width", attention.position_width, "64");
    const models::Whole key = attention.key_width, value = attention.value_width;
    if (facts.index.heads == 0) {
      refuse_unless(key == 192, "attention.key_width", key, "192 with a latent");
      refuse_unless(value == 128, "attention.value_width", value, "128 with a latent");
    } else {
      refuse_unless(key == 192 || key == 256, "attention.key_width", key, "192 or 256 with an indexer");
      refuse_unless(value == 128 || value == 256, "attention.value_width", value,
                    "128 or 256 with an indexer");
      const models::ModelFacts::OfIndex& index = facts.index;
      refuse_unless(index.heads % 16 == 0 && index.heads <= 64, "index.heads", index.heads,
                    "16, 32, 48 or 64");
      refuse_unless(index.width == 128, "index.width", index.width, "128");
      refuse_unless(index.chosen % 64 == 0 && index.chosen <= 2048, "index.chosen", index.chosen,
                    "multiples of 64 up to 2048");
    }
    refuse_unless(attention.query_latent > 0, "attention.query_latent", 0, "a latent of the queries");
  } else {
    refuse_unless(attention.key_width == 64 || attention.key_width == 128, "attention.key_width",
                  attention.key_width, "64 or 128");
    refuse_unless(attention.value_width == attention.key_width, "attention.value_width",
                  attention.value_width, "as wide as a key");
  }
  OptionValues values{{"hidden", std::to_string(facts.hidden)},
                      {"heads", std::to_string(attention.heads)},
                      {"kv-heads", std::to_string(latent ? 0 : attention.kv_heads)},
                      {"experts", std::to_string(facts.experts.routed)},
                      {"mtp", facts.draft.layers > 0 ? "1" : "0"}};
  if (latent) values.emplace_back("q-lora", std::to_string(attention.query_latent));
  if (facts.index.heads > 0) {
    values.emplace_back("sparse", std::to_string(facts.index.chosen));
    values.emplace_back("index-heads", std::to_string(facts.index.heads));
    values.emplace_back("key-width", std::to_string(attention.key_width));
    values.emplace_back("value-width", std::to_string(attention.value_width));
  }
  if (!latent) values.emplace_back("head-width", std::to_string(attention.key_width));
  if (facts.weights.format == "int4") values.emplace_back("networks", "w4a8");
  if (attention.head_norms) values.emplace_back("qk-norm", "heads");
  if (attention.sink_scores) values.emplace_back("sinks", "heads");
  if (facts.dense.width > 0) values.emplace_back("dense-width", std::to_string(facts.dense.width));
  if (facts.experts.routed == 0) {
    values.emplace_back("microbatches", "1");
    return values;
  }
  values.emplace_back("experts-per-token", std::to_string(facts.experts.chosen));
  values.emplace_back("width", std::to_string(facts.experts.width));
  values.emplace_back("shared-experts", std::to_string(facts.experts.shared));
  if (facts.experts.gate != "unstated") values.emplace_back("gate", facts.experts.gate);
  // All groups of a token are no limit.
  const models::Whole groups = facts.experts.groups, group = facts.experts.routed / groups;
  const bool limited = facts.experts.groups_chosen < groups;
  refuse_unless(!limited || (group % 8 == 0 && group <= 64 && groups <= 64), "experts.groups", groups,
                "at most 64 groups of 8, 16, .. 64 experts");
  values.emplace_back("expert-group", std::to_string(limited ? group : 0));
  if (limited) values.emplace_back("token-groups", std::to_string(facts.experts.groups_chosen));
  return values;
}

void LayerOptions::follow(const std::vector<hw::Parameter>& options, const Given& given,
                          const OptionValues& values) const {
  follow_model(options, given, model, values);
  if (deployment.empty()) return;
  OptionValues spread = load_step_deployment(deployment);
  // Of a step alone, where the options are those of layers.
  std::erase_if(spread, [&](const auto& of) {
    return (of.first == "head-tp" || of.first == "launch" || of.first.starts_with("npu-")) &&
           std::ranges::find(options, of.first, &hw::Parameter::key) == options.end();
  });
  follow_values(options, given, "--deployment " + deployment, spread);
}

std::vector<Alternatives> LayerOptions::open(const std::vector<hw::Parameter>& options) const {
  if (deployment.empty()) return {};
  std::vector<Alternatives> open = alternatives_of_step_deployment(deployment);
  // Of a step alone, where the options are those of layers.
  std::erase_if(open, [&](const Alternatives& one) {
    return std::ranges::find(options, one.option, &hw::Parameter::key) == options.end();
  });
  return open;
}

std::vector<std::string> LayerOptions::files() const {
  std::vector<std::string> files = model_files(model);
  for (std::string& file : step_deployment_files(deployment)) files.push_back(std::move(file));
  return files;
}

void LayerOptions::check_effect(const Given& given) const {
  LayerShape::check_effect(given, "");
  if (dense()) refuse_given(given, "", {"shared-copies", "renew", "drift", "variant"}, "without experts");
  if (shared_experts == 0) refuse_given(given, "", {"shared-copies"}, "without shared experts");
}

namespace {

struct LayerStudyOptions {
  LayerOptions layer;
  bool relay = false;
  bool full = false;
  AccuracyOptions accuracy;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("batch", self.layer.batch, Range{1, 1024}, "requests per NPU, of all its dies");
    LayerOptions::describe(self.layer, visit);
    visit("dense-width", self.layer.dense_width, Range{64, 65536, 64},
          "elements between the products of a dense layer");
    visit(
        "across", self.relay, Either{"direct", "relay"},
        "rows of a token to other supernodes: to each of its experts there, or once to the rank of the same "
        "number, which forwards them, and on the way back adds them up");
    visit(
        "payload", self.full, Either{"control", "full"},
        "full: a microbatch of the layer runs with values as well, on a machine of its own with all dies in "
        "detail; for --accuracy");
    AccuracyOptions::describe(self.accuracy, visit);
  }
  void follow(const Given& given) {
    OptionValues values;
    if (!layer.model.empty()) values = LayerOptions::of_model(models::load_model(layer.model));
    layer.follow(hw::list_parameters(*this), given, values);
  }
  std::vector<std::string> inputs() const { return layer.files(); }
  std::vector<Alternatives> open() const {
    LayerStudyOptions own = *this;
    return layer.open(hw::list_parameters(own));
  }
  void settle(const hw::Machine& machine) { layer.settle(machine); }
};

std::string_view dies_of(LayerRanks ranks) {
  return ranks == LayerRanks::all ? "all" : ranks == LayerRanks::tokens ? "with tokens" : "with experts";
}

// A stream of a die of this kind in the last layer, and a line about it.
Row stream_row(const LayerSetting& setting, const LayerReading& reading, LayerRanks dies, int stream,
               std::string& line) {
  const bool alone = setting.microbatches == 1;
  Rows operators;
  double busy = 0;
  std::vector<std::string> words;
  for (const LayerStage& stage : reading.stages) {
    if (stage.ranks != dies || (!alone && stage.half != stream)) continue;
    operators.push_back({{"name", stage.name},
                         {"mean_us", stage.task_us.mean},
                         {"min_us", stage.task_us.min},
                         {"max_us", stage.task_us.max},
                         {"grade", stage.replays ? "replay" : "firmware"}});
    busy += setting.microbatches * stage.task_us.mean;
    words.push_back(fmt::format("{} {:.1f}", stage.name, stage.task_us.mean));
  }
  const char* name = alone ? "all" : stream == 0 ? "attention" : "experts";
  const auto half = static_cast<std::size_t>(stream);
  Row row{{"name", name}, {"busy_us", busy}, {"idle_us", reading.layer_us.mean - busy}};
  if (dies != LayerRanks::all) row.set("dies", std::string(dies_of(dies)));
  // Of two kinds of dies one half is of each.
  const bool whole = dies == LayerRanks::all || (dies == LayerRanks::tokens) == (stream == 0);
  if (!alone && whole)
    row.set("half_us", reading.half_us[half].mean).set("half_max_us", reading.half_us[half].max);
  row.set("operators", std::move(operators));
  line = fmt::format("stream {}{}: busy {:.1f} us of {:.1f}; us of a microbatch: {}", name,
                     dies == LayerRanks::all ? "" : fmt::format(" of dies {}", dies_of(dies)), busy,
                     reading.layer_us.mean, fmt::join(words, ", "));
  return row;
}

// Ranks of several supernodes, and relays between them.
void check_supernodes(const hw::Topology& topology, const LayerStudyOptions& all) {
  const int supernodes = topology.supernodes;
  const LayerOptions& o = all.layer;
  const auto refuse = [](const std::string& what) { throw InputError(what); };
  if (supernodes > 1 && o.ranks % supernodes != 0)
    refuse(fmt::format("--ranks {}: allowed: a multiple of the {} supernodes", o.ranks, supernodes));
  if (supernodes > 1 && o.ranks / supernodes % o.sharing() != 0)
    refuse(fmt::format("--attention-tp {}: allowed: a divisor of the {} ranks of a supernode", o.sharing(),
                       o.ranks / supernodes));
  if (supernodes > 1 && all.accuracy.wanted)
    refuse("--accuracy: of values in one supernode; allowed: --supernodes 1");
  if (!all.relay) return;
  if (o.dense()) refuse("--across relay: a dense layer sends no rows to experts; allowed: with experts");
  check_relays(supernodes, o.full_mesh);
  if (o.shared_experts > 0)
    refuse(
        "--across relay: a relay brings rows to routed experts alone, and the shared expert has ranks of its "
        "own; allowed: --shared-experts 0");
}

// Puts how exact the layer is into its row. False: interrupted.
bool add_exactness(const StudyContext& context, const AccuracyOptions& options, const LayerSetting& setting,
                   StudyResult& result, Row& row) {
  if (!options.wanted) return true;
  StudyContext own = context;
  own.observers = nullptr;
  const auto exactness = measure_exactness(own, setting, *options.draw(), result.simulator);
  if (!exactness) return false;
  add_accuracy(options, exactness->accuracy.stages, result, row);
  row.set("drawn", fmt::format("tokens {}; cached latents normal; weights normal, of variance 1 over what a "
                               "row is multiplied with; norms' factors 1",
                               options.drawn));
  row.set("rerouted", exactness->accuracy.rerouted).set("bf16_rerouted", exactness->accuracy.bf16_rerouted);
  result.notes.push_back(
      fmt::format("tokens with other experts than in double precision: {:.1f} %, in BF16 arithmetic {:.1f} %",
                  exactness->accuracy.rerouted * 100, exactness->accuracy.bf16_rerouted * 100));
  if (exactness->first_difference.empty()) return true;
  result.passed = false;
  result.notes.push_back(exactness->first_difference);
  return true;
}

StudyResult run(const StudyContext& context, const LayerStudyOptions& all) {
  StudyResult result;
  check_supernodes(context.machine.topology, all);
  all.layer.check_effect(context.given);
  if (!all.layer.dense() && context.given.contains("dense-width"))
    throw InputError("--dense-width: has no effect with experts: the layers shown have them");
  const LayerOptions options = with_lengths(context, all.layer, result);
  std::vector<LayerSetting> settings = layer_settings(context, options);
  for (LayerSetting& setting : settings) setting.relays = all.relay ? context.machine.topology.supernodes : 0;
  // With all dies in detail the timeline is a machine's, which has its streams.
  StudyContext own = context;
  std::optional<LaneTimeline> timeline;
  if (wants_lanes(context) && settings.front().detail < options.ranks) {
    timeline.emplace(context.observers->request().timeline, context.observers->request().shown);
    own.observers = nullptr;
  }
  if (all.full && !all.accuracy.wanted)
    throw InputError("run layer: --payload full: allowed: with --accuracy; times do not depend on values");
  if (all.accuracy.wanted) check_values(settings.front());
  const ChosenLayer chosen = measure_fastest(own, std::move(settings), result.simulator);
  const LayerReading& reading = chosen.reading;
  const LayerSetting& setting = chosen.setting;
  if (reading.stages.empty()) {
    result.complete = false;
    return result;
  }
  Rows streams;
  std::vector<LayerRanks> kinds{LayerRanks::all};
  if (setting.two_kinds()) kinds = {LayerRanks::tokens, LayerRanks::experts};
  for (const LayerRanks dies : kinds) {
    for (int stream = 0; stream < setting.microbatches; ++stream) {
      std::string line;
      streams.push_back(stream_row(setting, reading, dies, stream, line));
      result.notes.push_back(std::move(line));
    }
  }
  Row row{{"ranks", options.ranks}, {"batch", options.batch}, {"kv", options.kv}, {"mtp", options.mtp}};
  if (setting.two_kinds()) row.set("expert_ranks", options.expert_ranks);
  row.set("microbatches", setting.microbatches).set("split", split_text(setting));
  row.set("layer_us", reading.layer_us.mean).set("layer_max_us", reading.layer_us.max);
  row.set("attention_half_us", reading.half_us[0].mean).set("experts_half_us", reading.half_us[1].mean);
  row.set("rows_mean", reading.rows_mean).set("rows_max", reading.rows_max);
  if (options.renew > 0) row.set("new_copies", reading.new_copies);
  row.set("layers", options.layers).set("detail_dies", setting.detail).set("streams", std::move(streams));
  if (reading.followers > 0) {
    row.set("followers", reading.followers)
        .set("follow_late_us", reading.late_us.mean)
        .set("follow_late_max_us", reading.late_us.most);
  }
  row.set("kernels_rank", reading.kernels_rank).set("kernels", rows_of(reading.kernels));
  if (setting.two_kinds())
    row.set("experts_rank", reading.experts_rank).set("experts_kernels", rows_of(reading.experts_kernels));
  if (timeline) {
    write_lanes(*timeline, reading, setting.microbatches);
    timeline->finish();
    result.notes.push_back(fmt::format("the timeline has the streams of rank {}", reading.kernels_rank));
  }
  if (!add_exactness(own, all.accuracy, setting, result, row)) {
    result.complete = false;
    return result;
  }
  context.finish_row(result, std::move(row));
  if (!chosen.tried.empty()) result.notes.push_back(chosen.tried);
  if (const std::string idle = cores_without_group(context.machine.die); !idle.empty())
    result.notes.push_back(idle);
  const std::string sharing =
      setting.tensor > 1 ? fmt::format(", of which {} share their heads", setting.tensor) : "";
  const std::string rows = options.dense() ? ""
                                           : fmt::format(" {:.0f} rows per rank, at most {:.0f};",
                                                         reading.rows_mean, reading.rows_max);
  if (options.replay > 0 && reading.followers == 0) result.notes.push_back(unused_replay_dies(setting));
  result.notes.push_back(
      fmt::format("{} tokens per microbatch and die{};{} {} of {} dies in detail, {} replay {} recordings{}",
                  setting.moe.batch, sharing, rows, setting.detail, options.ranks,
                  reading.followers > 0 ? std::to_string(options.ranks - setting.detail - reading.followers)
                                        : "the others",
                  reading.recordings, reading.followers > 0 ? ", the others last as long as these" : ""));
  return result;
}

constexpr std::array kOperatorFields{
    Field{"name", FieldType::text, "of the kernel"},
    Field{"mean_us", FieldType::number, "its task, mean over ranks and microbatches"},
    Field{"min_us", FieldType::number, "smallest"},
    Field{"max_us", FieldType::number, "largest"},
    Field{"grade", FieldType::text, "firmware on all dies, or replay on those not in detail"},
};
constexpr std::array kStreamFields{
    Field{"name", FieldType::text, "attention, experts; all: of one microbatch"},
    Field{"dies", FieldType::text,
          "that have it: all, or with --expert-ranks those with tokens or with experts"},
    Field{"busy_us", FieldType::number, "tasks of all microbatches in the layer"},
    Field{"idle_us", FieldType::number,
          "the layer's time without a task: waiting for the other stream or ranks"},
    Field{"half_us", FieldType::number, "of a microbatch, from its first task to its last; mean"},
    Field{"half_max_us", FieldType::number, "largest"},
    Field{"operators", FieldType::list, "in the order of a microbatch", false, kOperatorFields},
};
constexpr std::array kLayerFields{
    Field{"ranks", FieldType::integer, "dies that take part, one rank each", true}.as_condition(),
    Field{"expert_ranks", FieldType::integer,
          "of them: that hold all experts and have no tokens, where given"}
        .as_condition(),
    Field{"batch", FieldType::integer,
          "requests per NPU, of all its dies; with --expert-ranks of those with tokens", true}
        .as_condition(),
    Field{"kv", FieldType::integer, "mean tokens of a request in the cache", true}.as_condition(),
    Field{"mtp", FieldType::integer, "tokens predicted beyond the next one"}.as_condition(),
    Field{"microbatches", FieldType::integer, "parts of a die's batch", true}.as_condition(),
    Field{"split", FieldType::text, "AIC/AIV of attention and of the experts", true}.as_condition(),
    Field{"layer_us", FieldType::number, "from the end of the layer before to its own, mean over ranks",
          true},
    Field{"layer_max_us", FieldType::number, "largest"},
    Field{"attention_half_us", FieldType::number,
          "of a microbatch: prolog to output projection, with --expert-ranks to dispatch", true},
    Field{"experts_half_us", FieldType::number,
          "of a microbatch: norm and gate to combine, with --expert-ranks from the experts on", true},
    Field{"rows_mean", FieldType::number, "that dispatch brings to a rank with experts in a microbatch"},
    Field{"rows_max", FieldType::number, "largest"},
    Field{"new_copies", FieldType::number,
          "with --renew: most experts that a rank loads at a renewal, mean over layers"},
    Field{"layers", FieldType::integer, "that ran one after another; the last one is shown"}.as_condition(),
    Field{"detail_dies", FieldType::integer, "whose attention and experts ran as firmware"}.as_condition(),
    Field{"followers", FieldType::integer,
          "dies whose attention and experts last as long as those of another die (--replay-dies), if any"}
        .as_condition(),
    Field{"follow_late_us", FieldType::number,
          "by how much these ended too late, as those that they follow were behind; mean over kernels"},
    Field{"follow_late_max_us", FieldType::number, "largest"},
    Field{"streams", FieldType::list, "of a die", false, kStreamFields},
    Field{"kernels_rank", FieldType::integer, "whose kernels are listed: the first in detail"},
    Field{"kernels", FieldType::list, "of that rank, in all layers that ran", false, kLayerKernelFields},
    Field{"experts_rank", FieldType::integer, "the first one in detail with experts, with --expert-ranks"},
    Field{"experts_kernels", FieldType::list, "of that rank", false, kLayerKernelFields},
    Field{"rerouted", FieldType::ratio,
          "tokens for which the gate chose other experts than in double precision, with --accuracy"},
    Field{"bf16_rerouted", FieldType::ratio, "the same of BF16 arithmetic"},
};

std::span<const Field> layer_fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> fields(kLayerFields.begin(), kLayerFields.end());
    fields.insert(fields.end(), kAccuracyFields.begin(), kAccuracyFields.end());
    return fields;
  }();
  return all;
}

}  // namespace

const Study kLayerStudy{.name = "layer",
                        .summary = "decode layers on all ranks: two streams swap two microbatches",
                        .fields = layer_fields(),
                        .options = options_of<LayerStudyOptions, run>,
                        .supernodes = true};

}  // namespace cm384::studies
