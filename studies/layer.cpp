// `cm384 run layer`.
#include "studies/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "hw/error.h"
#include "studies/studies.h"
#include "traces/random.h"

namespace cm384::studies {
namespace {

// Bytes of the cache of a token and layer; of a layer's weights on a rank.
constexpr double kTokenBytes = 2.0 * (512 + 64);

std::optional<int> number_of(std::string_view text) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return value;
}

}  // namespace

Lengths parse_lengths(std::string_view text) {
  Lengths made;
  if (text == "fixed") return made;
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (text.substr(0, first) == "uniform" && second != std::string_view::npos) {
    const auto low = number_of(text.substr(first + 1, second - first - 1)),
               high = number_of(text.substr(second + 1));
    if (low && high && *low >= 1 && *low <= *high && *high <= 1'000'000) return {*low, *high};
  }
  throw InputError(
      fmt::format("{}; allowed: fixed, or uniform:LOW:HIGH with 1 <= LOW <= HIGH <= 1000000", text));
}

std::array<CoreShare, 2> parse_split(std::string_view text, int aic) {
  const auto refuse = [&]() -> std::array<CoreShare, 2> {
    throw InputError(fmt::format(
        "--split {}: allowed: AIC/AIV of attention, AIC/AIV of the experts, two AIVs to an AIC, together "
        "at most {}/{}, such as 16/32,8/16",
        text, aic, 2 * aic));
  };
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return refuse();
  std::array<int, 2> groups{};
  const std::array<std::string_view, 2> words{text.substr(0, comma), text.substr(comma + 1)};
  for (std::size_t n = 0; n < 2; ++n) {
    const std::size_t slash = words[n].find('/');
    if (slash == std::string_view::npos) return refuse();
    const auto cubes = number_of(words[n].substr(0, slash)), vectors = number_of(words[n].substr(slash + 1));
    if (!cubes || !vectors || *cubes < 1 || *vectors != 2 * *cubes) return refuse();
    groups[n] = *cubes;
  }
  if (groups[0] + groups[1] > aic) return refuse();
  return {CoreShare{0, groups[0]}, CoreShare{groups[0], groups[1]}};
}

int default_shared_copies(int ranks) {
  return ranks == 320 ? 32 : std::max(1, ranks / 9);
}

void draw_lengths(LayerSetting& setting, const Lengths& lengths, int mean, int requests, int sets,
                  std::uint64_t seed) {
  const auto ranks = static_cast<std::size_t>(setting.moe.ranks);
  const auto one_rank = [&](std::size_t rank) {
    traces::Random random(seed, 1000 + rank);
    RankLengths made(static_cast<std::size_t>(setting.microbatches));
    for (int n = 0; n < requests; ++n) {
      const int length = lengths.fixed()
                             ? mean
                             : lengths.low + static_cast<int>(random.below(
                                                 static_cast<std::uint64_t>(lengths.high - lengths.low) + 1));
      made[static_cast<std::size_t>(n * setting.microbatches / requests)].push_back(
          static_cast<std::uint32_t>(length));
    }
    return made;
  };
  setting.lengths_of.assign(ranks, 0);
  if (lengths.fixed()) {
    setting.lengths = {one_rank(0)};
    return;
  }
  std::vector<RankLengths> all;
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all.push_back(one_rank(rank));
    std::uint64_t sum = 0;
    for (const auto& part : all.back()) sum = std::accumulate(part.begin(), part.end(), sum);
    order.emplace_back(sum, rank);
  }
  std::ranges::sort(order);
  // The last set is that of the longest alone; the others are middle ones of as many ranks each.
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(sets), ranks);
  for (std::size_t set = 0; set < count; ++set) {
    const bool longest = set + 1 == count;
    const std::size_t shared = ranks - 1, parts = std::max<std::size_t>(1, count - 1);
    const std::size_t from = longest ? ranks - 1 : shared * set / parts,
                      to = longest ? ranks : shared * (set + 1) / parts;
    setting.lengths.push_back(all[order[(from + to) / 2].second]);
    for (std::size_t n = from; n < to; ++n) setting.lengths_of[order[n].second] = static_cast<int>(set);
  }
}

LayerSetting layer_setting(const StudyContext& context, const LayerOptions& options) {
  const int dies = context.machine.topology.dies();
  if (options.ranks > dies)
    throw InputError(fmt::format("--ranks {}: the machine has {} dies", options.ranks, dies));
  const int requests = options.batch / 2, tokens = 1 + options.mtp;
  if (options.batch % 2 != 0 || requests < options.microbatches)
    throw InputError(
        fmt::format("--batch {}: allowed: even numbers, at least {} with {} microbatches: an NPU is two dies",
                    options.batch, 2 * options.microbatches, options.microbatches));
  if (requests % options.microbatches != 0)
    throw InputError(fmt::format("--batch {}: {} requests a die do not divide into {} microbatches",
                                 options.batch, requests, options.microbatches));
  LayerSetting setting;
  setting.microbatches = options.microbatches;
  setting.layers = options.layers;
  setting.width = static_cast<std::uint32_t>(options.width);
  setting.moe.ranks = options.ranks;
  setting.moe.batch = requests / options.microbatches * tokens;
  setting.moe.experts = options.experts;
  setting.moe.hidden = options.hidden;
  setting.moe.routing = options.routing;
  setting.moe.full_mesh = options.full_mesh;
  setting.moe.shared_copies =
      options.shared_copies >= 0 ? options.shared_copies : default_shared_copies(options.ranks);
  setting.attention.queries = static_cast<std::uint32_t>(tokens);
  setting.attention.heads = static_cast<std::uint32_t>(options.heads);
  setting.attention.hidden = static_cast<std::uint32_t>(options.hidden);
  setting.attention.q_lora = static_cast<std::uint32_t>(options.q_lora);
  setting.attention.int8 = options.int8;
  const int aic = context.machine.die.aic;
  setting.cores = options.microbatches == 1 ? std::array{CoreShare{0, aic}, CoreShare{0, aic}}
                                            : parse_split(options.split, aic);
  setting.moe.cores = 2 * setting.cores[1].count;
  setting.detail = options.detail == 0 ? (options.ranks <= 16 ? options.ranks : 1)
                                       : std::min(options.detail, options.ranks);
  if (setting.detail < options.ranks && (context.observers != nullptr || context.gdb_port != 0))
    throw InputError(
        "run layer: --explain, --record, --timeline, --waves and --gdb look at instructions; allowed: "
        "--detail-dies as many as --ranks");
  const double kv = 1.0 * requests * options.kv * kTokenBytes * options.layers;
  const double room = static_cast<double>(context.machine.memory.hbm.capacity.count);
  if (kv > room)
    throw InputError(
        fmt::format("--batch {} --kv {}: the KV cache of {} layers takes {:.1f} GB of the die's {:.1f} GB; "
                    "{} requests a NPU would fit",
                    options.batch, options.kv, options.layers, kv / 1e9, room / 1e9,
                    static_cast<int>(room / (options.kv * kTokenBytes * options.layers)) * 2));
  draw_lengths(setting, parse_lengths(options.kv_lengths), options.kv, requests, options.kv_sets,
               context.seed);
  return setting;
}

namespace {

Row summary_row(const char* part, int stream, const Summary& us) {
  return {{"part", part}, {"stream", stream}, {"mean_us", us.mean}, {"min_us", us.min}, {"max_us", us.max}};
}

StudyResult run(const StudyContext& context, const LayerOptions& options) {
  StudyResult result;
  const LayerSetting setting = layer_setting(context, options);
  const LayerReading reading = measure_layer(context, setting, result.simulator);
  if (reading.stages.empty()) {
    result.complete = false;
    return result;
  }
  const auto add = [&](const Row& own) {
    Row row{{"ranks", options.ranks}, {"batch", options.batch}, {"kv", options.kv}};
    row.append(own);
    row.set("share", own["mean_us"].number() / reading.layer_us.mean);
    row.set("layers", options.layers)
        .set("microbatches", options.microbatches)
        .set("detail_dies", setting.detail);
    context.finish_row(result, std::move(row));
  };
  for (const LayerStage& stage : reading.stages)
    add(summary_row(stage.name.c_str(), stage.stream, stage.task_us));
  const int second = options.microbatches == 1 ? 0 : 1;
  add(summary_row("attention half", 0, reading.half_us[0]));
  add(summary_row("experts half", second, reading.half_us[1]));
  add(summary_row("attention idle", 0, reading.idle_us[0]));
  add(summary_row("experts idle", second, reading.idle_us[1]));
  add(summary_row("layer", 0, reading.layer_us));
  result.notes.push_back(
      fmt::format("{} tokens per microbatch and die; {:.0f} rows per rank, at most {:.0f}; {} of {} dies in "
                  "detail, the others "
                  "replay {} recordings",
                  setting.moe.batch, reading.rows_mean, reading.rows_max, setting.detail, options.ranks,
                  reading.recordings));
  return result;
}

constexpr std::array kFields{
    Field{"ranks", FieldType::integer, "dies that take part, one rank each", true},
    Field{"batch", FieldType::integer, "requests per NPU of two dies", true},
    Field{"kv", FieldType::integer, "mean tokens of a request in the cache", true},
    Field{"part", FieldType::text,
          "an operator's task; a half, from its first task to its last; a stream's "
          "time without a task; the whole layer",
          true},
    Field{"stream", FieldType::integer, "of the die: 0 has attention, 1 the experts", true},
    Field{"mean_us", FieldType::number, "mean over ranks and microbatches", true},
    Field{"min_us", FieldType::number, "smallest", true},
    Field{"max_us", FieldType::number, "largest", true},
    Field{"share", FieldType::ratio, "of the layer's time, which has each part once per microbatch", true},
    Field{"layers", FieldType::integer, "that ran one after another; the last one is shown"},
    Field{"microbatches", FieldType::integer, "parts of a die's batch"},
    Field{"detail_dies", FieldType::integer, "whose attention and experts ran as firmware"},
};

}  // namespace

const Study kLayerStudy{"layer", "decode layers on all ranks: two streams swap two microbatches", kFields,
                        options_of<LayerOptions, run>};

}  // namespace cm384::studies
