#include "studies/gemm.h"

#include <fmt/format.h>

#include "studies/gemm_memory.h"

namespace cm384::studies {

GemmReading measure_gemm(const StudyContext& context, const GemmSetting& setting, SimulatorCounts& counts) {
  const reference::GemmCase gemm{context.seed, setting.group_rows, setting.n, setting.k, setting.type};
  const GemmShape shape{setting.group_rows, setting.n, setting.k, setting.type,
                        static_cast<std::uint32_t>(setting.blocks)};
  GemmReading reading;
  reading.tiling =
      setting.tile_m == 0 ? choose_tiling(shape) : tiling_of(shape, setting.tile_m, setting.tile_n);
  check_tiling(reading.tiling, shape);
  CubeRun run(context,
              fmt::format("gemm, {} groups, n {}, k {}", setting.group_rows.size(), setting.n, setting.k),
              setting.blocks, setting.full);
  host::Runtime& runtime = run.runtime();
  const GemmMemory memory(runtime, gemm, reading.tiling, setting.blocks, setting.b_nz, setting.full);
  std::optional<reference::GemmInputs> inputs;
  if (setting.full) {
    inputs = reference::make_gemm_inputs(gemm);
    memory.put(runtime, *inputs);
  }
  reading.operations = 2.0 * static_cast<double>(gemm.rows()) * gemm.n * gemm.k;
  run.expect(reading.operations, setting.type == CM384_GEMM_INT8);
  const bool finished =
      run.launch("gemm", run.put(memory.arguments),
                 setting.type == CM384_GEMM_INT8 ? npu::KernelType::mix : npu::KernelType::aic, reading);
  run.count(counts);
  if (finished && inputs)
    reading.compared(
        compare_gemm(gemm, *inputs, runtime.get<std::uint16_t>(memory.arguments.c, gemm.rows() * gemm.n)));
  return reading;
}

}  // namespace cm384::studies
