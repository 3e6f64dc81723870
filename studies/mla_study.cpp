// `cm384 run mla`.
#include <fmt/format.h>

#include "hw/error.h"
#include "studies/mla.h"
#include "studies/options.h"
#include "studies/studies.h"

namespace cm384::studies {
namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("batch", integer_option(96, 1, 4096), "sequences")(
      "kv-len", integer_option(4096, 1, 1'000'000), "tokens of a sequence in the cache, the newest inside")(
      "mtp", integer_option(0, 0, 1), "tokens predicted beyond the next one: each is a further query")(
      "heads", integer_option(128, 16, 128), "query heads, a multiple of 16")(
      "stage", choice_option("attention", {"attention", "prolog", "output", "all"}),
      "prolog: norms, projections, rotation; attention over the cache; output: values and output projection; "
      "all: one after another, each on what the one before left")(
      "hidden", integer_option(7168, 64, 8192), "elements of a token, a multiple of 64; prolog and output")(
      "q-lora", integer_option(1536, 64, 8192), "elements of the queries' latent, a multiple of 64; prolog");
  add_cube_options(options);
}

std::uint32_t multiple_of(const StudyContext& context, const char* name, int of) {
  const int value = context.option<int>(name);
  if (value % of != 0)
    throw InputError(fmt::format("run mla: --{} {}: allowed: multiples of {}", name, value, of));
  return static_cast<std::uint32_t>(value);
}

MlaSetting setting_of(const StudyContext& context) {
  MlaSetting setting;
  setting.kv_lens.assign(static_cast<std::size_t>(context.option<int>("batch")),
                         static_cast<std::uint32_t>(context.option<int>("kv-len")));
  setting.queries = static_cast<std::uint32_t>(1 + context.option<int>("mtp"));
  setting.heads = multiple_of(context, "heads", 16);
  setting.hidden = multiple_of(context, "hidden", 64);
  setting.q_lora = multiple_of(context, "q-lora", 64);
  setting.blocks = read_cores(context, "mla");
  setting.full = payload_is_full(context);
  const auto& stage = context.option<std::string>("stage");
  setting.prolog = stage == "prolog" || stage == "all";
  setting.attention = stage == "attention" || stage == "all";
  setting.output = stage == "output" || stage == "all";
  return setting;
}

StudyResult run(const StudyContext& context) {
  StudyResult result;
  const MlaSetting setting = setting_of(context);
  const MlaReading reading = measure_mla(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  const auto add = [&](const char* stage, const CubeReading& measured, double kv_bytes) {
    Json row;
    row["stage"] = stage;
    row["batch"] = setting.kv_lens.size();
    row["kv_len"] = context.option<int>("kv-len");
    row["mtp"] = context.option<int>("mtp");
    row["heads"] = setting.heads;
    row["kv_GBps"] = kv_bytes == 0 ? Json() : Json(kv_bytes / (latency_us(context, measured) * 1e3));
    row["block_tokens"] = kv_bytes == 0 ? Json() : Json(reading.attention.block_tokens);
    row["splits"] = kv_bytes == 0 ? Json() : Json(reading.attention.splits);
    add_row(context, result, row, measured, CM384_GEMM_BF16);
  };
  if (setting.prolog) add("prolog", reading.prolog, 0);
  if (setting.attention) add("attention", reading.attention, reading.attention.kv_bytes);
  if (setting.output) add("output", reading.output, 0);
  return result;
}

}  // namespace

const Study kMlaStudy{"mla", "decode attention over the compressed KV cache, on the cores of a die",
                      add_options, run};

}  // namespace cm384::studies
