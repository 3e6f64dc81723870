#include "workloads/kernels/op_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw/parameters/die.h"

namespace cm384::studies {
namespace {

struct UnitTime {
  const char* name;
  double busy_us = 0;  // sum over the cores
};

// What the pipes of all cores have done since construction.
std::vector<UnitTime> busy(npu::Die& die, bool cubes) {
  const double cycle_us = 1e6 / static_cast<double>(die.parameters().die.clock.hertz);
  std::vector<UnitTime> times{{"vector unit"}, {"AIV MTE2"}, {"AIV MTE3"}};
  for (int n = 0; n < die.parameters().die.aiv; ++n) {
    const npu::AivStatistics& s = die.cluster().core(n).aiv().statistics();
    times[0].busy_us += static_cast<double>(s.vector_busy_cycles) * cycle_us;
    times[1].busy_us += static_cast<double>(s.mte2_busy_ps) / 1e6;
    times[2].busy_us += static_cast<double>(s.mte3_busy_ps) / 1e6;
  }
  if (!cubes) return times;
  times.insert(times.end(), {{"cube unit"}, {"AIC MTE1"}, {"AIC MTE2"}, {"fixpipe"}});
  for (int n = 0; n < die.parameters().die.aic; ++n) {
    const npu::AicStatistics& s = die.cluster().aic(n).statistics();
    times[3].busy_us += static_cast<double>(s.mmad_cycles) * cycle_us;
    times[4].busy_us += static_cast<double>(s.load_cycles) * cycle_us;
    times[5].busy_us += static_cast<double>(s.mte2_busy_ps) / 1e6;
    times[6].busy_us += static_cast<double>(s.fix_busy_ps) / 1e6;
  }
  return times;
}

// The unit that works for the largest share of the task, or the launch.
std::string bottleneck_of(const std::vector<UnitTime>& from, const std::vector<UnitTime>& to,
                          double iterations, npu::KernelType type, const OpReading& reading) {
  double most = reading.task_us - reading.kernel_us;
  const char* name = "launch";
  for (std::size_t n = 0; n < to.size(); ++n) {
    // Of a group's three blocks two are vector cores.
    const std::size_t part = type != npu::KernelType::mix ? 3 : n < 3 ? 2 : 1;
    const std::size_t cores = reading.blocks * part / 3;
    const double before = n < from.size() ? from[n].busy_us : 0;
    const double each = (to[n].busy_us - before) / iterations / static_cast<double>(cores);
    if (each > most) {
      most = each;
      name = to[n].name;
    }
  }
  return fmt::format("{}: {:.0f} %", name, most / reading.task_us * 100);
}

}  // namespace

std::optional<OpReading> run_operator_alone(const StudyContext& context, const std::string& what,
                                            const OpSetting& setting, const MakeOperator& make,
                                            SimulatorCounts& counts) {
  SessionOptions options;
  options.die.aiv.check_hazards = setting.full;
  options.dies = {0};
  options.what = what;
  Session session(context, options);
  host::DeviceMemory memory(session.runtime(), 0);
  std::vector<std::unique_ptr<operators::KernelOperator>> placed;
  const auto enqueue = [&] {
    placed.push_back(make());
    operators::KernelOperator& one = *placed.back();
    const int cores = one.type() == npu::KernelType::aiv ? 2 * setting.groups : setting.groups;
    one.place({memory, [&session](std::string_view kernel) { return session.built_in(kernel); },
               operators::cores_from(0, cores), setting.full});
    one.launch_in_graph(setting.graph);
    one.enqueue(host::Runtime::default_stream(0));
  };
  const auto about = [&](int launches) { session.expect(static_cast<double>(launches), Time{20'000'000}); };
  about(setting.warmup);
  for (int n = 0; n < setting.warmup; ++n) enqueue();
  if (!session.runtime().wait()) return {};
  session.begin_counted();
  npu::Die& die = session.machine().die(0);
  const bool cubes = make()->type() != npu::KernelType::aiv;
  const std::vector<UnitTime> before = setting.warmup > 0 ? busy(die, cubes) : std::vector<UnitTime>{};
  const std::uint64_t hbm_before = die.memory().hbm_traffic();
  for (int n = 0; n < setting.iterations; ++n) enqueue();
  if (!session.runtime().wait()) return {};
  session.count(counts);
  OpReading reading;
  reading.hbm_bytes = static_cast<double>(die.memory().hbm_traffic() - hbm_before) / setting.iterations;
  const npu::LaunchRecord& first =
      placed[placed.size() - static_cast<std::size_t>(setting.iterations)]->record();
  reading.pace_us = (placed.back()->record().task_end - first.task_start).us() / setting.iterations;
  for (std::size_t n = placed.size() - static_cast<std::size_t>(setting.iterations); n < placed.size(); ++n) {
    const npu::LaunchRecord& record = placed[n]->record();
    reading.task_us += (record.task_end - record.task_start).us() / setting.iterations;
    reading.kernel_us += (record.last_retired - record.first_instruction).us() / setting.iterations;
    reading.blocks = record.blocks;
    if (!setting.full) continue;
    if (reading.first_difference.empty()) reading.first_difference = placed[n]->check();
    reading.correct = reading.first_difference.empty();
  }
  reading.bottleneck =
      bottleneck_of(before, busy(die, cubes), setting.iterations, placed.back()->type(), reading);
  return reading;
}

std::optional<OpReading> run_collective(const StudyContext& context, const std::string& what,
                                        const OpSetting& setting, const CollectiveRun& collective,
                                        SimulatorCounts& counts) {
  const int ranks = collective.ranks;
  SessionOptions options;
  options.die.aiv.check_hazards = setting.full;
  for (int rank = 0; rank < ranks; ++rank) options.dies.push_back(rank);
  options.what = what;
  Session session(context, options);
  host::Runtime& runtime = session.runtime();
  operators::RankMemory memory = operators::memory_of(runtime, options.dies);
  std::vector<std::unique_ptr<operators::Collective>> placed;
  std::vector<host::LaunchHandle> launches;
  const auto program = session.built_in(collective.make()->kernel());
  const auto enqueue = [&](int times) {
    launches.clear();
    for (int n = 0; n < times; ++n) {
      placed.push_back(collective.make());
      placed.back()->place(memory);
      for (const operators::RankTask& task : placed.back()->tasks()) {
        npu::LaunchRequest request{program, task.arguments, runtime.first_cores(collective.cores)};
        request.graph = setting.graph;
        launches.push_back(runtime.launch(host::Runtime::default_stream(task.die), std::move(request)));
      }
    }
    return runtime.wait();
  };
  if (!enqueue(setting.warmup)) return {};
  session.begin_counted();
  if (!enqueue(setting.iterations)) return {};
  session.count(counts);
  OpReading reading;
  const auto all = static_cast<double>(launches.size());
  std::uint64_t hbm = 0;
  for (const int die : options.dies) hbm += session.machine().die(die).memory().hbm_traffic();
  reading.hbm_bytes = static_cast<double>(hbm) / ranks / (setting.warmup + setting.iterations);
  for (const host::LaunchHandle& launch : launches) {
    const npu::LaunchRecord& record = runtime.record(launch);
    reading.task_us += (record.task_end - record.task_start).us() / all;
    reading.kernel_us += (record.last_retired - record.first_instruction).us() / all;
    reading.blocks = record.blocks;
  }
  const Time began = runtime.record(launches.front()).task_start;
  reading.pace_us = (runtime.record(launches.back()).task_end - began).us() / setting.iterations;
  for (std::size_t n = placed.size() - static_cast<std::size_t>(setting.iterations);
       setting.full && n < placed.size(); ++n) {
    if (reading.first_difference.empty()) reading.first_difference = placed[n]->check();
    reading.correct = reading.first_difference.empty();
  }
  reading.bottleneck = reading.task_us > 2 * reading.kernel_us ? "launch" : "fabric and ranks: --explain";
  return reading;
}

std::optional<OpReading> run_copy_collective(const StudyContext& context, const std::string& what,
                                             const OpSetting& setting, const CopyRun& copies,
                                             SimulatorCounts& counts) {
  const int ranks = copies.collective.ranks;
  SessionOptions options;
  options.die.aiv.check_hazards = setting.full;
  for (int rank = 0; rank < ranks; ++rank) options.dies.push_back(rank);
  options.what = what;
  Session session(context, options);
  host::Runtime& runtime = session.runtime();
  const auto program = session.built_in("sum_parts");
  operators::RankMemory memory = operators::memory_of(runtime, options.dies);
  std::vector<std::unique_ptr<operators::CopyCollective>> placed;
  const auto enqueue = [&](int times) {
    placed.clear();
    for (int n = 0; n < times; ++n) {
      placed.push_back(
          std::make_unique<operators::CopyCollective>(runtime, copies.collective, copies.setting, program));
      placed.back()->enqueue(memory);
      if (!runtime.wait()) return false;
    }
    return true;
  };
  if (!enqueue(setting.warmup)) return {};
  session.begin_counted();
  const auto traffic = [&] {
    std::uint64_t hbm = 0;
    for (const int die : options.dies) hbm += session.machine().die(die).memory().hbm_traffic();
    return static_cast<double>(hbm);
  };
  const double before = traffic();
  if (!enqueue(setting.iterations)) return {};
  session.count(counts);
  OpReading reading;
  reading.hbm_bytes = (traffic() - before) / ranks / setting.iterations;
  for (const auto& one : placed) {
    for (int rank = 0; rank < ranks; ++rank)
      reading.task_us += one->rank_us(rank) / ranks / setting.iterations;
    reading.pace_us += (one->end() - one->begin()).us() / setting.iterations;
    reading.blocks = one->launches() / static_cast<std::size_t>(ranks);
    if (!setting.full) continue;
    if (reading.first_difference.empty()) reading.first_difference = one->check();
    reading.correct = reading.first_difference.empty();
  }
  reading.bottleneck = "fabric and ranks: --explain";
  return reading;
}

}  // namespace cm384::studies
