// `cm384 run ffn`: the feed-forward network of a die's experts.
#include "studies/ffn.h"

#include <fmt/format.h>

#include <array>

#include "firmware/abi/ffn.h"
#include "operators/reference/ffn_reference.h"
#include "studies/gemm_memory.h"
#include "studies/gemm_tiling.h"
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

struct Options {
  int experts = 1;
  int rows = 1024;
  int hidden = 7168;
  int width = 2048;
  CubeOptions cube;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("experts", self.experts, Range{1, 256}, "experts on the die");
    visit("rows", self.rows, Range{1, 100'000}, "tokens per expert");
    visit("hidden", self.hidden, Range{64, 16384, 64}, "elements of a token");
    visit("width", self.width, Range{64, 4096, 64}, "elements between the two multiplications");
    CubeOptions::describe(self.cube, visit);
  }
};

StudyResult run(const StudyContext& context, const Options& options) {
  StudyResult result;
  check_cores(context, options.cube, "ffn");
  FfnSetting setting;
  setting.expert_rows.assign(static_cast<std::size_t>(options.experts),
                             static_cast<std::uint32_t>(options.rows));
  setting.hidden = static_cast<std::uint32_t>(options.hidden);
  setting.width = static_cast<std::uint32_t>(options.width);
  setting.blocks = options.cube.cores;
  setting.full = options.cube.full;
  const CubeReading reading = measure_ffn(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  add_row(context, options.cube, result, {{"experts", options.experts}, {"rows", options.rows}}, reading,
          CM384_GEMM_INT8);
  return result;
}

constexpr std::array kFields{
    Field{"experts", FieldType::integer, "experts on the die", true},
    Field{"rows", FieldType::integer, "tokens per expert", true},
};

std::span<const Field> fields() {
  static const std::vector<Field> all = with_cube_fields(kFields);
  return all;
}

}  // namespace

const Study kFfnStudy{"ffn", "feed-forward network of a die's experts, on its cube and vector cores",
                      fields(), options_of<Options, run>};

}  // namespace cm384::studies
