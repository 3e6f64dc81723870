// `cm384 run ffn`: the feed-forward network of a die's experts.
#include "studies/ffn.h"

#include <fmt/format.h>

#include "firmware/abi/ffn.h"
#include "hw/error.h"
#include "operators/reference/ffn_reference.h"
#include "studies/gemm_memory.h"
#include "studies/gemm_tiling.h"
#include "studies/options.h"
#include "studies/studies.h"

namespace cm384::studies {
namespace {

GemmMemory place(host::Runtime& runtime, const reference::GemmCase& gemm, const FfnSetting& setting) {
  const GemmShape shape{gemm.group_rows, gemm.n, gemm.k, gemm.type,
                        static_cast<std::uint32_t>(setting.blocks)};
  return {runtime, gemm, checked_tiling(shape), setting.blocks, true, setting.full};
}

}  // namespace

CubeReading measure_ffn(const StudyContext& context, const FfnSetting& setting, SimulatorCounts& counts) {
  const reference::GemmCase gate_up{context.seed, setting.expert_rows, 2 * setting.width, setting.hidden,
                                    CM384_GEMM_INT8};
  const reference::GemmCase down{context.seed + 1, setting.expert_rows, setting.hidden, setting.width,
                                 CM384_GEMM_INT8};
  CubeRun run(context, fmt::format("ffn, {} experts", setting.expert_rows.size()), setting.blocks,
              setting.full);
  host::Runtime& runtime = run.runtime();
  const GemmMemory first = place(runtime, gate_up, setting), second = place(runtime, down, setting);
  std::optional<reference::GemmInputs> gate_up_inputs, down_inputs;
  if (setting.full) {
    gate_up_inputs = make_gemm_inputs(gate_up);
    down_inputs = make_gemm_inputs(down);
    first.put(runtime, *gate_up_inputs);
    second.put(runtime, *down_inputs);
  }
  cm384_ffn arguments{};
  arguments.gate_up = first.arguments;
  arguments.down = second.arguments;
  arguments.width = setting.width;
  CubeReading reading;
  reading.operations = 6.0 * static_cast<double>(gate_up.rows()) * setting.hidden * setting.width;
  run.expect(reading.operations, true);
  const bool finished = run.launch("ffn", run.put(arguments), npu::KernelType::mix, reading);
  run.count(counts);
  if (finished && setting.full)
    reading.compared(compare_ffn(gate_up, *gate_up_inputs, down, *down_inputs,
                                 runtime.get<std::uint16_t>(second.arguments.c, down.rows() * down.n)));
  return reading;
}

namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("experts", integer_option(1, 1, 256), "experts the die holds")(
      "rows", integer_option(1024, 0, 100'000), "tokens of each expert")(
      "hidden", integer_option(7168, 64, 16384), "elements of a token, a multiple of 64")(
      "width", integer_option(2048, 64, 4096), "elements between the two multiplications, a multiple of 64");
  add_cube_options(options);
}

FfnSetting setting_of(const StudyContext& context) {
  FfnSetting setting;
  setting.expert_rows.assign(static_cast<std::size_t>(context.option<int>("experts")),
                             static_cast<std::uint32_t>(context.option<int>("rows")));
  setting.hidden = static_cast<std::uint32_t>(context.option<int>("hidden"));
  setting.width = static_cast<std::uint32_t>(context.option<int>("width"));
  setting.blocks = read_cores(context, "ffn");
  setting.full = payload_is_full(context);
  if (setting.hidden % 64 != 0 || setting.width % 64 != 0)
    throw InputError(fmt::format("run ffn: --hidden {} and --width {}: allowed: multiples of 64",
                                 setting.hidden, setting.width));
  return setting;
}

StudyResult run(const StudyContext& context) {
  StudyResult result;
  const FfnSetting setting = setting_of(context);
  const CubeReading reading = measure_ffn(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  Json row;
  row["experts"] = setting.expert_rows.size();
  row["rows"] = context.option<int>("rows");
  add_row(context, result, row, reading, CM384_GEMM_INT8);
  return result;
}

}  // namespace

const Study kFfnStudy{"ffn", "feed-forward network of a die's experts, on its cube and vector cores",
                      add_options, run};

}  // namespace cm384::studies
