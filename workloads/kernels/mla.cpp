// `cm384 run mla`.
#include "workloads/kernels/mla.h"

#include <fmt/format.h>

#include <array>

#include "base/text/error.h"
#include "workloads/kernels/unit_run.h"
#include "workloads/operators/mla/projections.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

Stages make_stages(const MlaSetting& setting, std::uint64_t seed) {
  Stages stages;
  const auto place = [&](auto made) -> auto& {
    auto& placed = *made;
    stages.placed.push_back(std::move(made));
    return placed;
  };
  operators::LatentAttention* attention = nullptr;
  if (setting.chosen == 0) {
    attention = &place(std::make_unique<operators::MlaAttention>(setting, seed));
  } else {
    attention = &place(std::make_unique<operators::SparseAttention>(setting, setting.index(), seed));
  }
  if (setting.prolog) attention->follows_prolog();
  if (!setting.attention) attention->skip_run();
  operators::MlaProlog* prolog = nullptr;
  if (setting.prolog) {
    prolog = &place(std::make_unique<operators::MlaProlog>(setting, seed, *attention));
    stages.run.push_back(prolog);
  }
  if (setting.chosen != 0 && (setting.prolog || setting.attention)) {
    auto& scores = place(std::make_unique<operators::Indexer>(setting.index(), seed));
    if (prolog != nullptr) {
      scores.follows_prolog();
      stages.run.push_back(&place(std::make_unique<operators::IndexProlog>(seed, *prolog, scores)));
    }
    if (setting.attention) {
      stages.run.push_back(&scores);
      stages.run.push_back(&place(std::make_unique<operators::TopK>(scores)));
    }
  }
  if (setting.attention) stages.run.push_back(attention);
  if (setting.output)
    stages.run.push_back(&place(std::make_unique<operators::MlaOutput>(setting, seed, *attention)));
  return stages;
}

}  // namespace

MlaReading measure_mla(const StudyContext& context, const MlaSetting& setting, SimulatorCounts& counts) {
  CubeRun run(context, fmt::format("mla, {} sequences", setting.kv_lens.size()), setting,
              [&] { return make_stages(setting, context.seed); });
  std::vector<CubeReading> readings = run.measure(counts);
  readings.resize(std::max<std::size_t>(readings.size(), 6));
  auto next = readings.begin();
  MlaReading reading;
  if (setting.prolog) reading.prolog = *next++;
  if (setting.prolog && setting.chosen != 0) reading.index_prolog = *next++;
  if (setting.attention && setting.chosen != 0) {
    reading.scores = *next++;
    reading.choice = *next++;
  }
  if (setting.attention) {
    static_cast<CubeReading&>(reading.attention) = *next++;
    const auto& attention = static_cast<const operators::LatentAttention&>(*run.stages().placed.front());
    reading.attention.kv_bytes = attention.cache_bytes();
    reading.attention.block_tokens = attention.arguments().block_tokens;
    reading.attention.splits = attention.arguments().splits;
  }
  if (setting.output) reading.output = *next;
  return reading;
}

namespace {

struct MlaOptions {
  int batch = 96;
  int kv_len = 4096;
  int mtp = 0;
  int heads = 128;
  std::string stage = "attention";
  int hidden = 7168;
  int q_lora = 1536;
  bool int8 = false;
  int chosen = 0, index_heads = 64;
  CubeOptions cube;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("batch", self.batch, Range{1, 4096}, "sequences");
    visit("kv-len", self.kv_len, Range{1, 1'000'000},
          "tokens of a sequence in the cache, the newest included");
    visit("mtp", self.mtp, Range{0, 2}, "tokens predicted beyond the next one: each is a further query");
    visit("heads", self.heads, Range{16, 128, 16}, "query heads");
    visit("stage", self.stage, OneOf{{"attention", "prolog", "output", "all"}},
          "prolog: norms, projections, rotation; attention over the cache; output: values and output "
          "projection; "
          "all: one after another, each on what the one before left");
    visit("hidden", self.hidden, Range{64, 8192, 64}, "elements of a token",
          Needs{"stage", {"prolog", "output", "all"}});
    visit("q-lora", self.q_lora, Range{64, 8192, 64}, "elements of the queries' latent",
          Needs{"stage", {"prolog", "all"}});
    visit("projections", self.int8, Either{"bf16", "int8"},
          "type of the products with hidden and q-lora, with a scale per token and column for int8",
          Needs{"stage", {"prolog", "output", "all"}});
    visit(
        "sparse", self.chosen, Range{0, 2048, 64},
        "cached tokens that a query sees at most, which an indexer chooses; 0: all. Shows its scores and the "
        "choice, too");
    visit("index-heads", self.index_heads, Range{16, 64, 16}, "heads of the indexer", Needs{"sparse", {}});
    CubeOptions::describe(self.cube, visit);
  }
  void follow(const Given& given) { cube.follow(given); }
  void settle(const hw::Machine& machine) { cube.settle(machine); }
};

void set_size(MlaSetting& setting, const MlaOptions& options) {
  setting.kv_lens.assign(static_cast<std::size_t>(options.batch), static_cast<std::uint32_t>(options.kv_len));
  setting.queries = static_cast<std::uint32_t>(1 + options.mtp);
  setting.heads = static_cast<std::uint32_t>(options.heads);
}

MlaSetting setting_of(const StudyContext& context, const MlaOptions& options) {
  MlaSetting setting;
  static_cast<CubeSetting&>(setting) = cube_setting(context, options.cube, "mla");
  set_size(setting, options);
  setting.hidden = static_cast<std::uint32_t>(options.hidden);
  setting.q_lora = static_cast<std::uint32_t>(options.q_lora);
  setting.int8 = options.int8;
  setting.chosen = static_cast<std::uint32_t>(options.chosen);
  setting.index_heads = static_cast<std::uint32_t>(options.index_heads);
  const std::string& stage = options.stage;
  setting.prolog = stage == "prolog" || stage == "all";
  setting.attention = stage == "attention" || stage == "all";
  setting.output = stage == "output" || stage == "all";
  return setting;
}

StudyResult run_without_cores(const StudyContext& context, const MlaOptions& options) {
  check_without_cores(context, options.cube, "mla");
  if (options.stage != "attention" || options.chosen != 0)
    throw InputError(fmt::format(
        "run mla: --{}: needs cores, and accelerator.kind is {}; allowed: --stage "
        "attention over all of the cache",
        options.chosen != 0 ? "sparse" : "stage " + options.stage, context.machine.accelerator.kind));
  StudyResult result;
  MlaSetting setting;
  set_size(setting, options);
  const operators::MlaAttention attention(setting, context.seed);
  const UnitOperator made{attention.work(), NumberFormat::bf16, true};
  const auto reading =
      run_on_units(context, fmt::format("mla, {} sequences", options.batch), made, 1, result.simulator);
  if (!reading) {
    result.complete = false;
    return result;
  }
  const double us = reading->latency_us(options.cube.kernel_time);
  Row row{{"stage", "attention"},     {"batch", options.batch},
          {"kv_len", options.kv_len}, {"mtp", options.mtp},
          {"heads", options.heads},   {"kv_GBps", attention.cache_bytes() / (us * 1e3)}};
  add_unit_row(context, result, std::move(row), made, *reading, options.cube.kernel_time);
  return result;
}

StudyResult run(const StudyContext& context, const MlaOptions& options) {
  if (!context.machine.accelerator.has_cores()) return run_without_cores(context, options);
  StudyResult result;
  const MlaSetting setting = setting_of(context, options);
  const MlaReading reading = measure_mla(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  const auto add = [&](const char* stage, const CubeReading& measured, double kv_bytes,
                       cm384_gemm_type type = CM384_GEMM_BF16) {
    const bool attention = kv_bytes != 0;
    Row row{{"stage", stage},
            {"batch", options.batch},
            {"kv_len", options.kv_len},
            {"mtp", options.mtp},
            {"heads", options.heads}};
    row.set("kv_GBps", attention ? Value(kv_bytes / (latency_us(options.cube, measured) * 1e3)) : Value());
    row.set("block_tokens", attention ? Value(reading.attention.block_tokens) : Value());
    row.set("splits", attention ? Value(reading.attention.splits) : Value());
    if (setting.chosen != 0) row.set("sparse", options.chosen).set("index_heads", options.index_heads);
    add_row(context, options.cube, result, row, measured, type);
  };
  if (setting.prolog) add("prolog", reading.prolog, 0);
  if (setting.prolog && setting.chosen != 0) add("index_prolog", reading.index_prolog, 0);
  if (setting.attention && setting.chosen != 0) {
    add("scores", reading.scores, 0, CM384_GEMM_INT8);
    add("choice", reading.choice, 0);
  }
  if (setting.attention) add("attention", reading.attention, reading.attention.kv_bytes);
  if (setting.output) add("output", reading.output, 0);
  return result;
}

constexpr std::array kMlaFields{
    Field{"stage",
          FieldType::text,
          "prolog, attention or output; with --sparse index_prolog, scores and choice before attention",
          true,
          {},
          std::size_t{12}}
        .as_condition(),
    Field{"batch", FieldType::integer, "sequences", true}.as_condition(),
    Field{"kv_len", FieldType::integer, "tokens of a sequence in the cache", true}.as_condition(),
    Field{"mtp", FieldType::integer, "tokens predicted beyond the next one"}.as_condition(),
    Field{"heads", FieldType::integer, "query heads"}.as_condition(),
    Field{"sparse", FieldType::integer, "cached tokens that a query sees at most, where an indexer chooses"}
        .as_condition(),
    Field{"index_heads", FieldType::integer, "of that indexer"}.as_condition(),
    Field{"kv_GBps", FieldType::number, "bytes of the cache, each once, over the latency of attention", true},
    Field{"block_tokens", FieldType::integer, "tokens of the cache that a cube core holds at a time"},
    Field{"splits", FieldType::integer, "parts that a sequence's cache is cut into"},
};

std::span<const Field> mla_fields() {
  static const std::vector<Field> all = with_cube_fields(kMlaFields);
  return all;
}

}  // namespace

const Study kMlaStudy{.name = "mla",
                      .summary = "decode attention over the compressed KV cache, on the cores of a die",
                      .fields = mla_fields(),
                      .options = options_of<MlaOptions, run>,
                      .coreless = true,
                      .first_server = true};

}  // namespace cm384::studies
