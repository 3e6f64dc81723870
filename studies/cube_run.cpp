#include "studies/cube_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hw/error.h"

namespace cm384::studies {
namespace {

SessionOptions die_0(std::string what, bool full) {
  SessionOptions options;
  options.die.aiv.check_hazards = full;
  options.dies = {0};
  options.what = std::move(what);
  return options;
}

constexpr std::array kPipe{
    Field{"name", FieldType::text, "of the pipe"},
    Field{"busy", FieldType::ratio, "share of the kernel's time in which it works, mean over the cores"},
    Field{"waiting", FieldType::ratio, "share in which it waits for a flag"},
    Field{"waits_for", FieldType::text, "the pipe that it waited for longest"},
};
constexpr std::array kFields{
    Field{"latency_us", FieldType::number, "of one launch, as --measure chooses", true},
    Field{"compute_utilisation", FieldType::ratio, "operations per second over the die's published peak",
          true},
    Field{"hbm_GBps", FieldType::number, "bytes to and from HBM over the latency", true},
    Field{"l2_hit_rate", FieldType::ratio, "hits over all requests to L2", true},
    Field{"bottleneck", FieldType::text, "the busiest pipe", true},
    Field{"task_us", FieldType::number, "task duration, launch and teardown of the blocks inside"},
    Field{"kernel_us", FieldType::number,
          "from the first instruction of the first block to the last of the last"},
    Field{"correct", FieldType::boolean, "values equal those of the reference; payload mode full only"},
    Field{"pipes", FieldType::list, "what each pipe of the cube cores did", false, kPipe},
};

Rows rows_of(const std::vector<PipeShare>& pipes) {
  Rows list;
  for (const PipeShare& p : pipes)
    list.push_back({{"name", p.name},
                    {"busy", p.busy},
                    {"waiting", p.waiting},
                    {"waits_for", p.waits_for.empty() ? Value() : Value(p.waits_for)}});
  return list;
}

}  // namespace

void CubeReading::compared(std::string difference) {
  first_difference = std::move(difference);
  correct = first_difference.empty();
}

CubeRun::CubeRun(const StudyContext& context, std::string what, int blocks, bool full)
    : session_(context, die_0(std::move(what), full)), blocks_(static_cast<std::size_t>(blocks)) {
  std::iota(blocks_.begin(), blocks_.end(), std::uint16_t{0});
}

void CubeRun::expect(double operations, bool int8) {
  const hw::Die& die = session_.machine().parameters().die;
  const double peak =
      (int8 ? die.peak_int8_tops : die.peak_bf16_tflops) * static_cast<double>(blocks_.size()) / die.aic;
  constexpr double kUsual = 0.75;  // of the peak
  session_.expect(1, {static_cast<std::int64_t>(operations / (peak * kUsual)) + 15'000'000});
}

bool CubeRun::launch(const char* kernel, std::uint64_t arguments, npu::KernelType type,
                     CubeReading& reading) {
  const auto launch =
      runtime().launch(0, session_.built_in(kernel), arguments, blocks_, runtime().earliest_start(), type);
  if (!runtime().wait()) return false;
  const npu::LaunchRecord& record = runtime().record(launch);
  reading.task_us = (record.task_end - record.task_start).us();
  reading.kernel_us = (record.last_retired - record.first_instruction).us();
  const Totals now = totals();
  const std::uint64_t hits = now.l2_hits - before_.l2_hits, misses = now.l2_misses - before_.l2_misses;
  reading.hbm_bytes = static_cast<double>(now.hbm_bytes - before_.hbm_bytes);
  reading.l2_hit_rate =
      static_cast<double>(hits) / static_cast<double>(std::max<std::uint64_t>(1, hits + misses));
  reading.pipes = shares(before_, now, reading.kernel_us);
  before_ = now;
  return true;
}

CubeRun::Totals CubeRun::totals() {
  npu::Die& die = session_.machine().die(0);
  const double cycle_us = 1.0 / (static_cast<double>(die.parameters().die.clock.hertz) / 1e6);
  Totals sum;
  for (const std::uint16_t n : blocks_) {
    const npu::AicStatistics& s = die.aic(n).statistics();
    const double busy[] = {0,
                           static_cast<double>(s.mmad_cycles) * cycle_us,
                           static_cast<double>(s.load_cycles) * cycle_us,
                           static_cast<double>(s.mte2_busy_ps) / 1e6,
                           static_cast<double>(s.fix_busy_ps) / 1e6,
                           static_cast<double>(s.mte3_busy_ps) / 1e6};
    for (std::size_t p = 1; p < npu::kCubePipes; ++p) {
      sum.busy_us[p] += busy[p];
      for (std::size_t q = 0; q < npu::kCubePipes; ++q) {
        sum.wait_us[p] += static_cast<double>(s.waits[p][q]) * cycle_us;
        sum.waits[p][q] += s.waits[p][q];
      }
    }
  }
  const npu::MemoryStatistics& memory = die.memory().statistics();
  sum.hbm_bytes = die.memory().hbm_traffic();
  sum.l2_hits = memory.l2_hits;
  sum.l2_misses = memory.l2_misses;
  return sum;
}

std::vector<PipeShare> CubeRun::shares(const Totals& from, const Totals& to, double kernel_us) const {
  constexpr const char* kNames[npu::kCubePipes] = {"S", "M", "MTE1", "MTE2", "FIX", "MTE3"};
  const double whole = kernel_us * static_cast<double>(blocks_.size());
  std::vector<PipeShare> shares;
  for (std::size_t p = 1; p < npu::kCubePipes; ++p) {
    const double busy = to.busy_us[p] - from.busy_us[p];
    if (busy == 0) continue;
    npu::PipeWaits waits{};
    for (std::size_t q = 0; q < waits.size(); ++q) waits[q] = to.waits[p][q] - from.waits[p][q];
    const auto longest =
        static_cast<std::size_t>(std::max_element(waits.begin(), waits.end()) - waits.begin());
    shares.push_back({kNames[p], busy / whole, (to.wait_us[p] - from.wait_us[p]) / whole,
                      waits[longest] == 0 ? "" : kNames[longest]});
  }
  return shares;
}

double cube_peak(const hw::Machine& machine, cm384_gemm_type type) {
  return (type == CM384_GEMM_INT8 ? machine.die.peak_int8_tops : machine.die.peak_bf16_tflops) * 1e12;
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

std::vector<Field> with_cube_fields(std::span<const Field> own) {
  std::vector<Field> fields(own.begin(), own.end());
  fields.insert(fields.end(), kFields.begin(), kFields.end());
  return fields;
}

void check_cores(const StudyContext& context, const CubeOptions& options, const char* study) {
  if (options.cores > context.machine.die.aic)
    throw InputError(
        fmt::format("run {}: --cores {}: a die has {} AICs", study, options.cores, context.machine.die.aic));
}

double latency_us(const CubeOptions& options, const CubeReading& reading) {
  return options.kernel_time ? reading.kernel_us : reading.task_us;
}

void add_row(const StudyContext& context, const CubeOptions& options, StudyResult& result, Row row,
             const CubeReading& reading, cm384_gemm_type type) {
  const double latency = latency_us(options, reading);
  row.set("latency_us", latency);
  row.set("compute_utilisation", reading.operations / (latency * 1e-6) / cube_peak(context.machine, type));
  row.set("hbm_GBps", reading.hbm_bytes / (latency * 1e3));
  row.set("l2_hit_rate", reading.l2_hit_rate);
  row.set("bottleneck", bottleneck(reading.pipes));
  row.set("task_us", reading.task_us).set("kernel_us", reading.kernel_us);
  row.set("correct", reading.correct);
  row.set("pipes", rows_of(reading.pipes));
  context.finish_row(result, std::move(row));
  if (!reading.correct || *reading.correct) return;
  result.passed = false;
  result.notes.push_back(reading.first_difference);
}

}  // namespace cm384::studies
