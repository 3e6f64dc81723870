#include "testbenches/studies/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/error.h"
#include "testbenches/studies/gemm_memory.h"
#include "testbenches/studies/session.h"

namespace cm384::studies {

double cube_peak(const hw::Machine& machine, cm384_gemm_type type) {
  return (type == CM384_GEMM_INT8 ? machine.die.peak_int8_tops : machine.die.peak_bf16_tflops) * 1e12;
}

std::vector<PipeShare> pipe_shares(npu::Die& die, int blocks, double kernel_us) {
  constexpr const char* kNames[npu::kCubePipes] = {"S", "M", "MTE1", "MTE2", "FIX", "MTE3"};
  std::array<double, npu::kCubePipes> busy_us{}, wait_us{};
  std::array<npu::PipeWaits, npu::kCubePipes> waits{};
  const double cycle_us = 1.0 / (static_cast<double>(die.parameters().die.clock.hertz) / 1e6);
  for (int n = 0; n < blocks; ++n) {
    const npu::AicStatistics& s = die.aic(n).statistics();
    const double busy[] = {0,
                           static_cast<double>(s.mmad_cycles) * cycle_us,
                           static_cast<double>(s.load_cycles) * cycle_us,
                           static_cast<double>(s.mte2_busy_ps) / 1e6,
                           static_cast<double>(s.fix_busy_ps) / 1e6,
                           static_cast<double>(s.mte3_busy_ps) / 1e6};
    for (std::size_t p = 1; p < npu::kCubePipes; ++p) {
      busy_us[p] += busy[p];
      for (std::size_t q = 0; q < npu::kCubePipes; ++q) {
        wait_us[p] += static_cast<double>(s.waits[p][q]) * cycle_us;
        waits[p][q] += s.waits[p][q];
      }
    }
  }
  std::vector<PipeShare> shares;
  for (std::size_t p = 1; p < npu::kCubePipes; ++p) {
    if (busy_us[p] == 0) continue;
    const auto longest =
        static_cast<std::size_t>(std::max_element(waits[p].begin(), waits[p].end()) - waits[p].begin());
    const double whole = kernel_us * blocks;
    shares.push_back(
        {kNames[p], busy_us[p] / whole, wait_us[p] / whole, waits[p][longest] == 0 ? "" : kNames[longest]});
  }
  return shares;
}

Json to_json(const std::vector<PipeShare>& pipes) {
  Json list = Json::array();
  for (const PipeShare& p : pipes)
    list.push_back({{"name", p.name},
                    {"busy", p.busy},
                    {"waiting", p.waiting},
                    {"waits_for", p.waits_for.empty() ? Json() : Json(p.waits_for)}});
  return list;
}

std::string bottleneck(const std::vector<PipeShare>& pipes) {
  const auto busiest = std::max_element(
      pipes.begin(), pipes.end(), [](const PipeShare& x, const PipeShare& y) { return x.busy < y.busy; });
  if (busiest == pipes.end()) return "";
  std::string text = fmt::format("{}: busy {:.0f} %", busiest->name, busiest->busy * 100);
  if (!busiest->waits_for.empty())
    text += fmt::format(", waits for {} {:.0f} %", busiest->waits_for, busiest->waiting * 100);
  return text;
}

GemmReading measure_gemm(const StudyContext& context, const GemmSetting& setting, SimulatorCounts& counts) {
  const reference::GemmCase gemm{context.seed, setting.group_rows, setting.n, setting.k, setting.type};
  const GemmShape shape{setting.group_rows, setting.n, setting.k, setting.type,
                        static_cast<std::uint32_t>(setting.blocks)};
  GemmReading reading;
  reading.tiling =
      setting.tile_m == 0 ? choose_tiling(shape) : tiling_of(shape, setting.tile_m, setting.tile_n);
  check_tiling(reading.tiling, shape);
  SessionOptions options;
  options.dies = {0};
  options.what = fmt::format("gemm, {} groups, n {}, k {}", setting.group_rows.size(), setting.n, setting.k);
  Session session(context, options);
  auto& runtime = session.runtime();
  const GemmMemory memory(runtime, gemm, reading.tiling, setting.blocks, setting.b_nz, setting.full);
  const std::uint64_t arguments = memory.put_arguments(runtime);
  std::optional<reference::GemmInputs> inputs;
  if (setting.full) {
    inputs = reference::make_gemm_inputs(gemm);
    memory.put(runtime, gemm, *inputs);
  }
  std::vector<std::uint16_t> blocks(static_cast<std::size_t>(setting.blocks));
  std::iota(blocks.begin(), blocks.end(), std::uint16_t{0});
  npu::Die& die = session.machine().die(0);
  const auto launch =
      runtime.launch(0, session.built_in("gemm"), arguments, blocks, runtime.earliest_start(),
                     setting.type == CM384_GEMM_INT8 ? npu::KernelType::mix : npu::KernelType::aic);
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return reading;
  const npu::LaunchRecord& record = runtime.record(launch);
  reading.task_us = (record.task_end - record.task_start).us();
  reading.kernel_us = (record.last_retired - record.first_instruction).us();
  reading.operations = 2.0 * static_cast<double>(gemm.rows()) * gemm.n * gemm.k;
  reading.hbm_bytes = static_cast<double>(die.memory().hbm_traffic());
  const npu::MemoryStatistics& s = die.memory().statistics();
  reading.l2_hit_rate = static_cast<double>(s.l2_hits) /
                        static_cast<double>(std::max<std::uint64_t>(1, s.l2_hits + s.l2_misses));
  reading.pipes = pipe_shares(die, setting.blocks, reading.kernel_us);
  if (inputs) {
    reading.first_difference =
        compare_gemm(gemm, *inputs, runtime.get<std::uint16_t>(memory.arguments.c, gemm.rows() * gemm.n));
    reading.correct = reading.first_difference.empty();
  }
  return reading;
}

}  // namespace cm384::studies
