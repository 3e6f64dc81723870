#include "testbenches/runs/machine_run.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

namespace cm384::testing {
namespace {

class Silence final : public studies::Progress {
  void update(double, Time, std::uint64_t) override {}
};

template <class Measure>
auto measure(const Changes& changes, std::uint64_t seed, Measure&& run) {
  static const volatile std::sig_atomic_t never = 0;
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  Silence silence;
  return run(studies::StudyContext{machine, seed, silence, never});
}

}  // namespace

studies::DispatchReading run_dispatch(const studies::DispatchCase& setting, const Changes& changes,
                                      std::uint64_t seed, studies::SimulatorCounts* counts,
                                      unsigned threads) {
  return measure(changes, seed, [&](studies::StudyContext context) {
    studies::SimulatorCounts own;
    context.threads = threads;
    return studies::measure_dispatch(context, setting, counts != nullptr ? *counts : own);
  });
}

studies::CombineReading run_combine(const studies::CombineCase& setting, const Changes& changes,
                                    std::uint64_t seed) {
  return measure(changes, seed, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_combine(context, setting, counts);
  });
}

studies::MoeReading run_moe(const studies::MoeCase& setting, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_moe(context, setting, counts);
  });
}

studies::GemmReading run_gemm(const studies::GemmSetting& setting, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_gemm(context, setting, counts);
  });
}

studies::CubeReading run_ffn(const studies::FfnSetting& setting, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_ffn(context, setting, counts);
  });
}

studies::OpReading run_operator(const studies::OpSetting& setting, const studies::MakeOperator& make,
                                const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::run_operator_alone(context, "operator", setting, make, counts).value();
  });
}

studies::OpReading run_collective(const studies::OpSetting& setting, const studies::CollectiveRun& collective,
                                  const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::run_collective(context, "collective", setting, collective, counts).value();
  });
}

studies::OpReading run_copies(const studies::OpSetting& setting, const studies::CopyRun& copies,
                              const Changes& changes, unsigned threads) {
  return measure(changes, 1, [&](studies::StudyContext context) {
    context.threads = threads;
    studies::SimulatorCounts counts;
    return studies::run_copy_collective(context, "copies", setting, copies, counts).value();
  });
}

studies::Summary run_exchange(const studies::ExchangeCase& exchange, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_exchange(context, "exchange", exchange, counts);
  });
}

studies::Overlap run_overlap(int ranks, const studies::Sequence& sequence, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_overlap(context, "overlap", ranks, sequence, counts).value();
  });
}

studies::MlaReading run_mla(const studies::MlaSetting& setting, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_mla(context, setting, counts);
  });
}

studies::P2pReading run_p2p(const studies::P2pPoint& point, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_p2p(context, point, counts);
  });
}

studies::SdmaReading run_sdma(SdmaBy by, const studies::P2pPoint& point, const Changes& changes) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return by == SdmaBy::host
               ? studies::measure_sdma(context, point, counts)
               : studies::measure_core_sdma(context, point, by == SdmaBy::core_prefetch, counts);
  });
}

double run_shared_p2p(const studies::P2pPoint& point) {
  return measure({}, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_shared_p2p(context, point, counts);
  });
}

studies::StreamReading run_stream(const studies::StreamShape& shape, const Changes& changes, int cores) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    return studies::measure_stream(context, shape, cores, 1, false, counts);
  });
}

studies::StreamReading run_stream(const std::string& name, const Changes& changes, double share, int cores) {
  return measure(changes, 1, [&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    for (studies::StreamShape shape : studies::stream_shapes()) {
      if (shape.name != name) continue;
      if (shape.shared == 0) shape.rows = static_cast<std::uint64_t>(static_cast<double>(shape.rows) * share);
      return studies::measure_stream(context, shape, cores, 1, false, counts);
    }
    return studies::StreamReading{};
  });
}

studies::DispatchCase small_dispatch(int ranks, int batch, int hidden, int cores) {
  studies::DispatchCase setting;
  setting.ranks = ranks;
  setting.batch = batch;
  setting.hidden = hidden;
  setting.cores = cores;
  setting.warmup = 0;
  setting.iterations = 1;
  return setting;
}

studies::CombineCase small_combine(int ranks, int batch, int hidden, int cores) {
  return {small_dispatch(ranks, batch, hidden, cores)};
}

std::string times_differ(const studies::DispatchReading& one, const studies::DispatchReading& other) {
  if (one.tasks.empty() || one.tasks.size() != other.tasks.size())
    return fmt::format("{} and {} tasks", one.tasks.size(), other.tasks.size());
  for (std::size_t i = 0; i < one.tasks.size(); ++i) {
    const npu::LaunchRecord &a = one.tasks[i], &b = other.tasks[i];
    const auto differ = [&](const std::string& what, Time of_one, Time of_other) {
      return of_one == of_other
                 ? std::string()
                 : fmt::format("task {}: {} at {} and {} ps; ", i, what, of_one.ps, of_other.ps);
    };
    std::string text = differ("starts", a.task_start, b.task_start) +
                       differ("first instruction", a.first_instruction, b.first_instruction) +
                       differ("last retired", a.last_retired, b.last_retired) +
                       differ("ends", a.task_end, b.task_end);
    for (std::size_t p = 0; p < a.phase_total.size(); ++p)
      text += differ(fmt::format("phase {}", p), a.phase_total[p], b.phase_total[p]);
    if (!text.empty()) return text;
  }
  return {};
}

std::string sample_trace() {
  return CM384_SOURCE_DIR "/traces/samples/qwen1.5-moe-a2.7b-layer0-part.jsonl";
}

std::string full_trace() {
  const std::string path = CM384_SOURCE_DIR "/../shared/traces/qwen1.5-moe-a2.7b-layer0.jsonl";
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace cm384::testing
