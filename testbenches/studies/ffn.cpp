// `cm384 run ffn`: the feed-forward network of a die's experts.
#include "testbenches/studies/ffn.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "firmware/abi/ffn.h"
#include "sim/error.h"
#include "testbenches/reference/ffn_reference.h"
#include "testbenches/studies/gemm_memory.h"
#include "testbenches/studies/options.h"
#include "testbenches/studies/session.h"
#include "testbenches/studies/studies.h"

namespace cm384::studies {
namespace {

cm384_gemm_tiling tiling_for(const reference::GemmCase& gemm, int blocks) {
  const GemmShape shape{gemm.group_rows, gemm.n, gemm.k, gemm.type, static_cast<std::uint32_t>(blocks)};
  const cm384_gemm_tiling tiling = choose_tiling(shape);
  check_tiling(tiling, shape);
  return tiling;
}

}  // namespace

FfnReading measure_ffn(const StudyContext& context, const FfnSetting& setting, SimulatorCounts& counts) {
  const reference::GemmCase gate_up{context.seed, setting.expert_rows, 2 * setting.width, setting.hidden,
                                    CM384_GEMM_INT8};
  const reference::GemmCase down{context.seed + 1, setting.expert_rows, setting.hidden, setting.width,
                                 CM384_GEMM_INT8};
  SessionOptions options;
  options.dies = {0};
  options.what = fmt::format("ffn, {} experts", setting.expert_rows.size());
  Session session(context, options);
  auto& runtime = session.runtime();
  const GemmMemory first(runtime, gate_up, tiling_for(gate_up, setting.blocks), setting.blocks, true,
                         setting.full);
  const GemmMemory second(runtime, down, tiling_for(down, setting.blocks), setting.blocks, true,
                          setting.full);
  std::optional<reference::GemmInputs> gate_up_inputs, down_inputs;
  if (setting.full) {
    gate_up_inputs = make_gemm_inputs(gate_up);
    down_inputs = make_gemm_inputs(down);
    first.put(runtime, gate_up, *gate_up_inputs);
    second.put(runtime, down, *down_inputs);
  }
  cm384_ffn arguments{};
  arguments.gate_up = first.arguments;
  arguments.down = second.arguments;
  arguments.width = setting.width;
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);
  std::vector<std::uint16_t> blocks(static_cast<std::size_t>(setting.blocks));
  std::iota(blocks.begin(), blocks.end(), std::uint16_t{0});
  npu::Die& die = session.machine().die(0);
  const auto launch = runtime.launch(0, session.built_in("ffn"), block, blocks, runtime.earliest_start(),
                                     npu::KernelType::mix);
  FfnReading reading;
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return reading;
  const npu::LaunchRecord& record = runtime.record(launch);
  reading.task_us = (record.task_end - record.task_start).us();
  reading.kernel_us = (record.last_retired - record.first_instruction).us();
  reading.operations = 6.0 * static_cast<double>(gate_up.rows()) * setting.hidden * setting.width;
  reading.hbm_bytes = static_cast<double>(die.memory().hbm_traffic());
  const npu::MemoryStatistics& s = die.memory().statistics();
  reading.l2_hit_rate = static_cast<double>(s.l2_hits) /
                        static_cast<double>(std::max<std::uint64_t>(1, s.l2_hits + s.l2_misses));
  reading.pipes = pipe_shares(die, setting.blocks, reading.kernel_us);
  if (setting.full) {
    reading.first_difference =
        compare_ffn(gate_up, *gate_up_inputs, down, *down_inputs,
                    runtime.get<std::uint16_t>(second.arguments.c, down.rows() * down.n));
    reading.correct = reading.first_difference.empty();
  }
  return reading;
}

namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("experts", integer_option(1, 1, 256), "experts the die holds")(
      "rows", integer_option(1024, 0, 100'000), "tokens of each expert")(
      "hidden", integer_option(7168, 64, 16384), "elements of a token, a multiple of 64")(
      "width", integer_option(2048, 64, 4096), "elements between the two multiplications, a multiple of 64")(
      "cores", integer_option(24, 1, 64), "AICs, each with its two AIVs")(
      "payload", choice_option("control", {"full", "control"}),
      "full computes every value and compares it with the host's; control moves tags of payload")(
      "measure", choice_option("task", {"task", "kernel"}),
      "latency_us of the whole task as the vendor's profiler reads it, or from first to last instruction");
}

FfnSetting setting_of(const StudyContext& context) {
  FfnSetting setting;
  setting.expert_rows.assign(static_cast<std::size_t>(context.option<int>("experts")),
                             static_cast<std::uint32_t>(context.option<int>("rows")));
  setting.hidden = static_cast<std::uint32_t>(context.option<int>("hidden"));
  setting.width = static_cast<std::uint32_t>(context.option<int>("width"));
  setting.blocks = context.option<int>("cores");
  setting.full = context.option<std::string>("payload") == "full";
  if (setting.hidden % 64 != 0 || setting.width % 64 != 0)
    throw InputError(fmt::format("run ffn: --hidden {} and --width {}: allowed: multiples of 64",
                                 setting.hidden, setting.width));
  if (setting.blocks > context.machine.die.aic)
    throw InputError(
        fmt::format("run ffn: --cores {}: a die has {} AICs", setting.blocks, context.machine.die.aic));
  return setting;
}

StudyResult run(const StudyContext& context) {
  StudyResult result;
  const FfnSetting setting = setting_of(context);
  const FfnReading reading = measure_ffn(context, setting, result.simulator);
  if (context.interrupted != 0) {
    result.complete = false;
    return result;
  }
  const double latency =
      context.option<std::string>("measure") == "task" ? reading.task_us : reading.kernel_us;
  Json row;
  row["experts"] = setting.expert_rows.size();
  row["rows"] = context.option<int>("rows");
  row["latency_us"] = latency;
  row["compute_utilisation"] =
      reading.operations / (latency * 1e-6) / cube_peak(context.machine, CM384_GEMM_INT8);
  row["hbm_GBps"] = reading.hbm_bytes / (latency * 1e3);
  row["l2_hit_rate"] = reading.l2_hit_rate;
  row["bottleneck"] = bottleneck(reading.pipes);
  row["task_us"] = reading.task_us;
  row["kernel_us"] = reading.kernel_us;
  row["correct"] = reading.correct ? Json(*reading.correct) : Json();
  row["pipes"] = to_json(reading.pipes);
  result.rows.push_back(row);
  if (reading.correct && !*reading.correct) {
    result.passed = false;
    result.notes.push_back(reading.first_difference);
  }
  return result;
}

}  // namespace

const Study kFfnStudy{"ffn", "feed-forward network of a die's experts, on its cube and vector cores",
                      add_options, run};

}  // namespace cm384::studies
