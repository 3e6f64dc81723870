#include "workloads/kernels/cube_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/text/content_hash.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/parameter_list.h"
#include "base/text/standard_error.h"
#include "firmware/embedded.h"
#include "system/host/launch_recorder.h"
#include "workloads/kernels/unit_run.h"

namespace cm384::studies {

using operators::Grade;

namespace {

SessionOptions die_0(std::string what, bool full) {
  SessionOptions options;
  options.die.aiv.check_hazards = full;
  options.dies = {0};
  options.what = std::move(what);
  return options;
}

void place(const Stages& stages, host::DeviceMemory& memory, const CubeSetting& setting,
           const std::function<std::shared_ptr<npu::Program>(std::string_view)>& load) {
  for (const auto& stage : stages.placed) {
    const int cores = stage->type() == npu::KernelType::aiv ? 2 * setting.blocks : setting.blocks;
    stage->place({memory, load, operators::cores_from(0, cores), setting.full});
  }
}

// What a file of recordings is of: the operators, and all of the machine that times between transfers come
// from.
std::string key_of(const hw::Machine& machine, const CubeSetting& setting, const Stages& stages) {
  std::string key = fmt::format("{} groups", setting.blocks);
  for (const auto& stage : stages.placed) key += "; " + stage->size();
  std::string kernels;
  for (const operators::KernelOperator* stage : stages.run) {
    const auto image = firmware::kernel_image(stage->kernel());
    kernels += hash_of({reinterpret_cast<const char*>(image.data()), image.size()});
  }
  key += "; kernels " + hash_of(kernels);
  hw::Machine copy = machine;
  std::string cores;
  for (const hw::Parameter& parameter : hw::list_parameters(copy)) {
    const std::string_view section = std::string_view(parameter.key).substr(0, parameter.key.find('.'));
    constexpr std::array kSections{"die", "scalar_core", "vector_core", "mte", "cube_core", "cube_mte"};
    if (std::ranges::find(kSections, section) != kSections.end())
      cores += parameter.key + " = " + hw::value_text(parameter) + "\n";
  }
  return key + "; cores " + hash_of(cores);
}

host::Recordings recordings_of(const StudyContext& context, const CubeSetting& setting,
                               const CubeRun::Make& make) {
  if (setting.recording.empty()) return record_stages(context, setting, make);
  const std::string key = key_of(context.machine, setting, make());
  if (std::filesystem::exists(setting.recording)) {
    bool checked = true;
    host::Recordings recordings = host::load_recordings(setting.recording, key, &checked);
    if (!checked)
      print_error(
          "cm384: {}: has no checksum, as recordings of earlier versions: it cannot be checked for damage\n",
          setting.recording);
    return recordings;
  }
  OutputFile file(setting.recording);
  host::Recordings recordings = record_stages(context, setting, make);
  if (context.interrupted != 0) return recordings;
  file.write(host::bytes_of(key, recordings));
  file.finish();
  return recordings;
}

constexpr std::array kPipe{
    Field{"name", FieldType::text, "of the pipe"},
    Field{"busy", FieldType::ratio, "share of the kernel's time in which it works, mean over the cores"},
    Field{"waiting", FieldType::ratio, "share in which it waits for a flag"},
    Field{"waits_for", FieldType::text, "the pipe that it waited for longest"},
};
constexpr std::array kCubeRunFields{
    Field{"latency_us", FieldType::number, "of one launch, as --measure chooses", true},
    Field{"TOPS", FieldType::number, "10^12 operations per second, two for a multiply-add", true},
    Field{"compute_utilisation", FieldType::ratio, "these over the peak of the die, all its cube cores",
          true},
    Field{"cube_utilisation", FieldType::ratio, "these over the peak of the cube cores that it ran on", true},
    Field{"peak_TOPS", FieldType::number,
          "of the die: multiply-adds per cycle of its cube cores at their clock, or the dense peak of "
          "section processor; compute_utilisation is of it"},
    Field{"cube_peak_TOPS", FieldType::number, "the same of those that it ran on; cube_utilisation is of it"},
    Field{"hbm_GBps", FieldType::number, "bytes to and from HBM over the latency", true},
    Field{"l2_hit_rate", FieldType::ratio, "hits over all requests to L2", true},
    Field{"bottleneck", FieldType::text,
          "the busiest pipe of the kernel, or launch and teardown where they take longer; `several` before "
          "what takes less than half",
          true},
    Field{"task_us", FieldType::number, "task duration, launch and teardown of the blocks inside"},
    Field{"kernel_us", FieldType::number,
          "from the first instruction of the first block to the last of the last"},
    Field{"correct", FieldType::boolean, "values equal those of the reference; payload mode full only"},
    Field{"pipes", FieldType::list, "what each pipe of the cube cores did", false, kPipe},
};

constexpr std::array kStageFields{
    Field{"name", FieldType::text, "of the operator, or of its step"},
    Field{"snr_db", FieldType::number,
          "power of the values in double precision over that of the differences from them"},
    Field{"error", FieldType::ratio, "Frobenius norm of these differences over that of the values"},
    Field{"largest_error", FieldType::number, "largest difference over the values' root mean square"},
    Field{"cosine", FieldType::number, "of the angle between both"},
    Field{"from_bf16_snr_db", FieldType::number,
          "the same ratio with BF16 arithmetic, operands and results rounded to BF16, in place of double "
          "precision"},
    Field{"bf16_snr_db", FieldType::number, "of BF16 arithmetic, compared with double precision"},
    Field{"crest", FieldType::number,
          "of what is quantised by rows: root mean square of their largest magnitudes over that of all "
          "elements"},
    Field{"weights_crest", FieldType::number, "the same of the weights, by their channels"},
    Field{"own_snr_db", FieldType::number,
          "of the operator alone: compared with double precision on what it read, in `run layer`"},
};
constexpr std::array kAccuracy{
    Field{"drawn", FieldType::text, "distribution of the activations, with --accuracy"}.as_condition(),
    Field{"accuracy", FieldType::list, "how exact each step is, with the noise of those before it", false,
          kStageFields},
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

host::Recordings record_stages(const StudyContext& context, const CubeSetting& setting,
                               const CubeRun::Make& make) {
  supernode::SupernodeOptions options;
  options.dies = {0};
  options.interrupted = &context.interrupted;
  supernode::Supernode machine(context.machine, options);
  host::Runtime runtime(machine);
  host::LaunchRecorder recorder(machine);
  host::DeviceMemory memory(runtime, 0);
  const Stages stages = make();
  place(stages, memory, setting,
        [&runtime](std::string_view kernel) { return operators::load_built_in(runtime, kernel); });
  host::Recordings recordings;
  for (operators::KernelOperator* stage : stages.run) {
    stage->enqueue(host::Runtime::default_stream(0));
    if (!runtime.wait()) break;
    recordings.push_back(
        std::make_shared<npu::Recording>(recorder.recording_of(0, stage->request(), memory.regions())));
  }
  return recordings;
}

void CubeReading::compared(std::string difference) {
  first_difference = std::move(difference);
  correct = first_difference.empty();
}

CubeRun::CubeRun(const StudyContext& context, std::string what, const CubeSetting& setting, const Make& make)
    : setting_(setting),
      recordings_(setting.grade == Grade::replay ? recordings_of(context, setting, make)
                                                 : host::Recordings()),
      session_(context, die_0(std::move(what), setting.full)),
      memory_(session_.runtime(), 0),
      stages_(make()) {
  place(stages_, memory_, setting, [this](std::string_view kernel) { return session_.built_in(kernel); });
  // Recording was interrupted.
  if (setting.grade == Grade::replay) stages_.run.resize(recordings_.size());
  for (std::size_t n = 0; n < stages_.run.size(); ++n) {
    stages_.run[n]->run_at(setting.grade, recordings_.empty() ? nullptr : recordings_[n]);
    stages_.run[n]->launch_in_graph(setting.graph);
  }
}

std::vector<CubeReading> CubeRun::measure(SimulatorCounts& counts) {
  std::vector<CubeReading> readings;
  for (operators::KernelOperator* stage : stages_.run) {
    CubeReading reading;
    if (!run(*stage, reading)) break;
    readings.push_back(std::move(reading));
  }
  session_.count(counts);
  return readings;
}

void CubeRun::expect(const operators::Work& work) {
  constexpr double kUsual = 0.75;  // of the peak
  const Time best =
      operators::duration_of({work.operations, work.int8}, static_cast<std::size_t>(setting_.blocks),
                             session_.machine().parameters());
  const auto share = 1.0 / static_cast<double>(stages_.run.size());
  session_.expect(share, Time{static_cast<std::int64_t>(static_cast<double>(best.ps) / kUsual) + 15'000'000});
}

bool CubeRun::run(operators::KernelOperator& stage, CubeReading& reading) {
  expect(stage.work());
  stage.enqueue(host::Runtime::default_stream(0));
  if (!session_.runtime().wait()) return false;
  const npu::LaunchRecord& record = stage.record();
  reading.task_us = (record.task_end - record.task_start).us();
  reading.kernel_us = (record.last_retired - record.first_instruction).us();
  reading.operations = stage.work().operations;
  const Totals now = totals();
  const std::uint64_t hits = now.l2_hits - before_.l2_hits, misses = now.l2_misses - before_.l2_misses;
  reading.hbm_bytes = static_cast<double>(now.hbm_bytes - before_.hbm_bytes);
  reading.l2_hit_rate =
      static_cast<double>(hits) / static_cast<double>(std::max<std::uint64_t>(1, hits + misses));
  reading.pipes = shares(before_, now, reading.kernel_us);
  before_ = now;
  if (!setting_.full) return true;
  reading.compared(stage.check());
  reading.accuracy = stage.accuracy();
  return true;
}

CubeRun::Totals CubeRun::totals() {
  npu::Die& die = session_.machine().die(0);
  const double cycle_us = 1.0 / (static_cast<double>(die.parameters().die.clock.hertz) / 1e6);
  Totals sum;
  for (int n = 0; n < setting_.blocks; ++n) {
    const npu::AicStatistics& s = die.cluster().aic(n).statistics();
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
  const double whole = kernel_us * setting_.blocks;
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
  const hw::Peaks peaks = hw::peaks_of(machine);
  return (type == CM384_GEMM_INT8 ? peaks.int8_tops : peaks.bf16_tflops) * 1e12;
}

std::string bottleneck(const std::vector<PipeShare>& pipes, double kernel_share) {
  const auto busiest = std::max_element(
      pipes.begin(), pipes.end(), [](const PipeShare& x, const PipeShare& y) { return x.busy < y.busy; });
  if (busiest == pipes.end()) return "";
  constexpr double kHalf = 0.5;
  const double launch = 1 - kernel_share;
  const bool launched = launch > busiest->busy * kernel_share;
  std::string text = (launched ? launch : busiest->busy) < kHalf ? "several (--explain); " : "";
  if (launched) return text + fmt::format("launch: {:.0f} %", launch * 100);
  text += fmt::format("{}: busy {:.0f} %", busiest->name, busiest->busy * 100);
  if (!busiest->waits_for.empty())
    text += fmt::format(", waits for {} {:.0f} %", busiest->waits_for, busiest->waiting * 100);
  return text;
}

constinit const std::span<const Field> kAccuracyFields = kAccuracy;

void add_accuracy(const AccuracyOptions& options, const std::vector<reference::StageAccuracy>& stages,
                  StudyResult& result, Row& row) {
  if (!options.wanted) return;
  Rows list;
  const auto decibels = [](const std::optional<double>& ratio) {
    return ratio ? fmt::format("{:.1f} dB", *ratio) : std::string("exact");
  };
  for (const reference::StageAccuracy& stage : stages) {
    list.push_back({{"name", stage.name},
                    {"snr_db", stage.exact.snr_db()},
                    {"error", stage.exact.relative_error()},
                    {"largest_error", stage.exact.largest_error()},
                    {"cosine", stage.exact.cosine()},
                    {"from_bf16_snr_db", stage.bf16.snr_db()},
                    {"bf16_snr_db", stage.of_bf16.snr_db()},
                    {"crest", stage.crest},
                    {"weights_crest", stage.weights_crest}});
    if (stage.own) list.back().set("own_snr_db", stage.own->snr_db());
    result.notes.push_back(fmt::format(
        "{}, activations drawn {}: {} against double precision, where BF16 arithmetic has {}{}", stage.name,
        options.drawn, decibels(stage.exact.snr_db()), decibels(stage.of_bf16.snr_db()),
        stage.crest ? fmt::format("; crest factor {:.1f}", *stage.crest) : std::string()));
  }
  row.set("drawn", options.drawn).set("accuracy", std::move(list));
}

std::vector<Field> with_cube_fields(std::span<const Field> own, std::span<const Field> more) {
  std::vector<Field> fields(own.begin(), own.end());
  fields.insert(fields.end(), more.begin(), more.end());
  fields.insert(fields.end(), kCubeRunFields.begin(), kCubeRunFields.end());
  fields.push_back(kGradeField);
  return fields;
}

void check_without_cores(const StudyContext& context, const CubeOptions& options, const char* study) {
  refuse_beside_formula(context, study,
                        {"cores", "payload", "launch", "recording", "tile", "b-layout", "accuracy", "draw"});
  if (options.grade != "formula")
    throw InputError(
        fmt::format("run {}: --grade {}: needs cores, and accelerator.kind is {}; allowed: formula", study,
                    options.grade, context.machine.accelerator.kind));
}

CubeSetting cube_setting(const StudyContext& context, const CubeOptions& options, const char* study) {
  if (options.cores > context.machine.die.groups())
    throw InputError(fmt::format("run {}: --cores {}: a die has {} AICs with two AIVs each", study,
                                 options.cores, context.machine.die.groups()));
  const Grade grade = operators::grade_of(options.grade);
  if (grade != Grade::firmware && options.full)
    throw InputError(fmt::format("run {}: --payload full: only --grade firmware has values", study));
  if (grade != Grade::firmware && (context.observers != nullptr || context.gdb_port != 0))
    throw InputError(fmt::format(
        "run {}: --explain, --record, --timeline, --waves and --gdb look at instructions; allowed: "
        "--grade firmware",
        study));
  return {options.cores, options.full, grade, options.recording, options.graph};
}

std::string cores_without_group(const hw::Die& die) {
  const int aic = die.aic - die.groups(), aiv = die.aiv - 2 * die.groups();
  if (aic == 0 && aiv == 0) return "";
  return fmt::format(
      "{} of the die's {} AICs and {} of its {} AIVs idle: a kernel on both has two AIVs for each AIC", aic,
      die.aic, aiv, die.aiv);
}

double latency_us(const CubeOptions& options, const CubeReading& reading) {
  return options.kernel_time ? reading.kernel_us : reading.task_us;
}

void add_row(const StudyContext& context, const CubeOptions& options, StudyResult& result, Row row,
             const CubeReading& reading, cm384_gemm_type type) {
  const double latency = latency_us(options, reading);
  row.set("latency_us", latency);
  const double rate = reading.operations / (latency * 1e-6);
  const double peak = cube_peak(context.machine, type),
               cubes = peak * options.cores / context.machine.die.aic;
  row.set("TOPS", rate / 1e12);
  row.set("compute_utilisation", rate / peak).set("cube_utilisation", rate / cubes);
  row.set("peak_TOPS", peak / 1e12).set("cube_peak_TOPS", cubes / 1e12);
  row.set("hbm_GBps", reading.hbm_bytes / (latency * 1e3));
  row.set("l2_hit_rate", reading.l2_hit_rate);
  row.set("bottleneck", bottleneck(reading.pipes, std::min(1.0, reading.kernel_us / latency)));
  row.set("task_us", reading.task_us).set("kernel_us", reading.kernel_us);
  row.set("correct", reading.correct);
  row.set("pipes", rows_of(reading.pipes));
  context.finish_row(result, std::move(row));
  if (const std::string idle = cores_without_group(context.machine.die);
      !idle.empty() && result.rows.size() == 1)
    result.notes.push_back(idle);
  if (!reading.correct || *reading.correct) return;
  result.passed = false;
  result.notes.push_back(reading.first_difference);
}

}  // namespace cm384::studies
