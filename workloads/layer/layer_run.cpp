#include "workloads/layer/layer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "npu_core/replay/pace.h"
#include "system/host/device_memory.h"
#include "system/host/placement.h"
#include "workloads/frame/session.h"
#include "workloads/layer/layer_program.h"

namespace cm384::studies {
namespace {

// Ranks first .. end - 1, which have the same steps.
struct RankKind {
  LayerRanks ranks = LayerRanks::all;
  std::size_t first = 0, end = 0;
};

// A kernel of the program: which step has it, and which of its kernels it is.
struct PlannedStage {
  std::size_t step = 0, number = 0;
};

// The program, and what is recorded of firmware for it; made before the machine is.
struct LayerPlan {
  const StudyContext& context;
  const LayerSetting& setting;
  LayerProgram program;
  std::vector<PlannedStage> stages;  // in the order of a microbatch
  std::set<int> detail;
  std::set<int> setters;  // of the ranks that replay: those whose launches the others follow
  std::map<std::pair<std::size_t, std::string>, host::Recordings> recordings;  // by step and size

  LayerPlan(const StudyContext& of, const LayerSetting& what)
      : context(of), setting(what), program(make_layer_program(what, of.seed)) {
    for (const RankKind& kind : kinds()) {
      const int count = std::min(setting.detail, static_cast<int>(kind.end - kind.first));
      for (int n = 0; n < count; ++n)
        detail.insert(static_cast<int>(kind.first) +
                      detail_rank(n, count, static_cast<int>(kind.end - kind.first)));
    }
    for (std::size_t step = 0; step < program.steps.size(); ++step) {
      for (std::size_t n = 0; n < program.steps[step].names.size(); ++n) stages.push_back({step, n});
    }
  }

  std::vector<RankKind> kinds() const {
    const auto all = static_cast<std::size_t>(setting.moe.ranks),
               tokens = static_cast<std::size_t>(setting.token_ranks());
    if (!setting.two_kinds()) return {{LayerRanks::all, 0, all}};
    return {{LayerRanks::tokens, 0, tokens}, {LayerRanks::experts, tokens, all}};
  }
  bool has(std::size_t rank, const LayerStep& step) const {
    if (step.ranks == LayerRanks::all) return true;
    return (step.ranks == LayerRanks::tokens) == (rank < static_cast<std::size_t>(setting.token_ranks()));
  }
  const LayerStep& step_of(const PlannedStage& stage) const { return program.steps[stage.step]; }
  const std::string& name_of(const PlannedStage& stage) const { return step_of(stage).names[stage.number]; }
  bool is_replayed(const LayerStep& step) const {
    const bool some_follow = setting.replay > 0 && setting.replay + setting.detail < setting.moe.ranks;
    return step.size && (!step.is_short || some_follow);
  }
  bool replays(const LayerStep& step, std::size_t rank) const {
    return is_replayed(step) && has(rank, step) && !detail.contains(static_cast<int>(rank));
  }
  std::size_t parts() const {
    return static_cast<std::size_t>(setting.layers) * static_cast<std::size_t>(setting.microbatches);
  }

  // Records what ranks replay. False: interrupted.
  bool record() {
    for (std::size_t part = 0; part < parts(); ++part) {
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(setting.moe.ranks); ++rank) {
        for (std::size_t step = 0; step < program.steps.size(); ++step) {
          if (replays(program.steps[step], rank) && !record(step, {part, rank})) return false;
        }
      }
    }
    return true;
  }
  const host::Recordings& recording_of(std::size_t step, const LayerSpot& at) const {
    return recordings.at({step, program.steps[step].size(at)});
  }
  // Chooses who sets the pace: evenly among the ranks of a kind that replay, in the order of their work, and
  // whoever has a kernel of another kind, or one that takes a tenth longer or shorter, than any of these.
  void choose_setters() {
    for (const RankKind& kind : kinds()) {
      std::vector<std::pair<Time, int>> ranks;
      for (std::size_t rank = kind.first; rank < kind.end; ++rank) {
        Time work;
        for_each_replayed_step(rank, [&](const PacedStep&, Time alone) { work += alone; });
        if (!detail.contains(static_cast<int>(rank))) ranks.emplace_back(work, static_cast<int>(rank));
      }
      std::ranges::sort(ranks);
      const auto all = static_cast<int>(ranks.size());
      const int count = setting.replay == 0 ? all : std::min(setting.replay, all);
      std::map<PacedStep, std::set<Time>> paces;  // alone
      const auto choose = [&](int rank) {
        setters.insert(rank);
        for_each_replayed_step(static_cast<std::size_t>(rank),
                               [&](const PacedStep& step, Time alone) { paces[step].insert(alone); });
      };
      for (int n = 0; n < count; ++n)
        choose(ranks[static_cast<std::size_t>(detail_rank(n, count, all))].second);
      for (const auto& [work, rank] : ranks) {
        bool unlike = false;
        for_each_replayed_step(static_cast<std::size_t>(rank), [&](const PacedStep& step, Time alone) {
          const Time tenth{alone.ps / 10};
          const auto near = paces[step].lower_bound(alone - tenth);
          unlike = unlike || near == paces[step].end() || *near > alone + tenth;
        });
        if (unlike) choose(rank);
      }
    }
  }
  int kind_of(std::size_t step, const LayerSpot& at) const {
    const LayerStep& of = program.steps[step];
    return of.kind ? of.kind(at) : 0;
  }
  bool follows(std::size_t rank) const {
    return !detail.contains(static_cast<int>(rank)) && !setters.contains(static_cast<int>(rank));
  }
  int recorded() const {
    std::size_t count = 0;
    for (const auto& [key, of] : recordings) count += of.size();
    return static_cast<int>(count);
  }

 private:
  using PacedStep = std::pair<std::size_t, int>;  // which step, and the kind of its work
  // Calls visit(PacedStep, how long it takes by itself) for what a rank replays, part by part.
  template <class Visit>
  void for_each_replayed_step(std::size_t rank, Visit&& visit) const {
    for (std::size_t part = 0; part < parts(); ++part) {
      for (std::size_t step = 0; step < program.steps.size(); ++step) {
        if (!replays(program.steps[step], rank)) continue;
        Time sum;
        for (const auto& recording : recording_of(step, {part, rank})) sum += recording->alone;
        visit(PacedStep{step, kind_of(step, {part, rank})}, sum);
      }
    }
  }
  bool record(std::size_t number, const LayerSpot& at) {
    const LayerStep& step = program.steps[number];
    const auto [played, fresh] = recordings.try_emplace({number, step.size(at)});
    if (!fresh) return true;
    CubeSetting cubes;
    cubes.blocks = setting.cores_of(step.half, static_cast<int>(at.rank)).count;
    played->second = record_stages(context, cubes, [&] { return step.make(at); });
    return played->second.size() == step.names.size();
  }
};

// What a rank has of a step in one part.
struct PlacedStep {
  std::optional<host::DeviceMemory> memory;  // of an exchange: none
  Stages stages;
  host::LaunchHandle launched;  // of an exchange
};

// One microbatch in one layer, on all ranks.
struct PlacedPart {
  std::vector<std::vector<ExchangeLaunch>> exchanges;  // by step, by rank; of others none
  std::vector<std::deque<PlacedStep>> ranks;           // by rank, by step
};

class LayerRun {
 public:
  explicit LayerRun(const LayerPlan& plan)
      : plan_(plan),
        setting_(plan.setting),
        dies_(host::place_ranks(setting_.moe.placement, setting_.moe.ranks, plan.context.machine.topology,
                                plan.context.seed)),
        session_(plan.context, session_options()),
        board_(session_.machine().workers()) {
    session_.machine().probes().between_windows.attach(
        &board_, [](void* self, Time reached) { static_cast<npu::PaceBoard*>(self)->settle(reached); });
    for (std::size_t part = 0; part < plan.parts(); ++part) place_exchanges(part);
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      for (std::size_t rank = 0; rank < dies_.size(); ++rank) place({part, rank});
    }
  }

  // False: interrupted.
  bool run() {
    host::Runtime& runtime = session_.runtime();
    session_.expect(1, Time{static_cast<std::int64_t>(setting_.layers * 1.3e9)});
    for (std::size_t rank = 0; rank < dies_.size(); ++rank) enqueue(rank);
    return runtime.wait();
  }

  LayerReading read(SimulatorCounts& counts);

 private:
  SessionOptions session_options() const {
    SessionOptions options;
    options.dies = dies_;
    options.rdma = plan_.context.machine.topology.supernode_of(dies_.back()) != 0;
    options.what = fmt::format("{} layers, {} ranks", setting_.layers, setting_.moe.ranks);
    return options;
  }
  std::size_t microbatches() const { return static_cast<std::size_t>(setting_.microbatches); }

  // One for all launches of a kernel.
  std::shared_ptr<npu::Program> program(std::string_view kernel) {
    std::shared_ptr<npu::Program>& loaded = programs_[std::string(kernel)];
    if (!loaded) loaded = session_.built_in(kernel);
    return loaded;
  }
  CoreShare cores_of(const LayerStep& step, std::size_t rank) const {
    return setting_.cores_of(step.half, static_cast<int>(rank));
  }

  void place_exchanges(std::size_t number) {
    PlacedPart& part = parts_.emplace_back();
    for (const LayerStep& step : plan_.program.steps)
      part.exchanges.push_back(step.exchange ? step.exchange(number, {session_.runtime(), dies_, memories_})
                                             : std::vector<ExchangeLaunch>{});
    part.ranks.resize(dies_.size());
  }

  // A rank's own work in a part. Microbatches of a layer share its weights.
  void place(const LayerSpot& at) {
    const PlacedPart& first = parts_[at.part - at.part % microbatches()];
    const auto load = [this](std::string_view kernel) { return program(kernel); };
    std::deque<PlacedStep>& own = parts_[at.part].ranks[at.rank];
    for (std::size_t n = 0; n < plan_.program.steps.size(); ++n) {
      const LayerStep& step = plan_.program.steps[n];
      PlacedStep& placed = own.emplace_back();
      if (!step.make || !plan_.has(at.rank, step)) continue;
      placed.memory.emplace(session_.runtime(), dies_[at.rank]);
      if (at.part % microbatches() != 0) placed.memory->borrow_weights_of(*first.ranks[at.rank][n].memory);
      placed.stages = step.make(at);
      const CoreShare cores = cores_of(step, at.rank);
      for (const auto& stage : placed.stages.placed) {
        const bool vectors = stage->type() == npu::KernelType::aiv;
        stage->place({*placed.memory, load, vectors ? cores.aivs() : cores.groups(), false});
      }
      if (!plan_.replays(step, at.rank)) continue;
      const host::Recordings& recordings = plan_.recording_of(n, at);
      for (std::size_t k = 0; k < recordings.size(); ++k) {
        placed.stages.run[k]->run_at(operators::Grade::replay, recordings[k],
                                     pacing_of({n, k}, at, recordings[k]->alone));
      }
    }
  }

  // Of a kernel on a rank that replays.
  npu::Pacing pacing_of(const PlannedStage& stage, const LayerSpot& at, Time alone) {
    if (plan_.setters.size() + plan_.detail.size() >= dies_.size()) return {};
    const auto [launch, first] = paced_.try_emplace({at.part, stage.step, stage.number});
    if (first) launch->second = board_.add();
    const int kind = plan_.kind_of(stage.step, at);
    if (plan_.follows(at.rank)) return {npu::Pacing::Role::follows, &board_, launch->second, kind};
    board_.add_setter(launch->second, {kind, alone});
    return {npu::Pacing::Role::sets, &board_, launch->second, kind};
  }

  host::LaunchHandle launch(host::Stream stream, const ExchangeLaunch& what, const CoreShare& cores) {
    npu::LaunchRequest request{program(what.kernel), what.arguments, cores.aivs()};
    request.cores.resize(static_cast<std::size_t>(what.aivs));
    request.graph = true;
    return session_.runtime().launch(stream, std::move(request));
  }

  // All that a rank has to do, in the order of its streams.
  void enqueue(std::size_t rank) {
    host::Runtime& runtime = session_.runtime();
    const int die = dies_[rank];
    const bool two = setting_.microbatches > 1;
    const host::Stream first = runtime.create_stream(die), second = two ? runtime.create_stream(die) : first;
    std::vector<host::Event> attended, done;
    for (std::size_t n = 0; two && n < microbatches(); ++n) {
      attended.push_back(runtime.create_event(die));
      done.push_back(runtime.create_event(die));
    }
    for (std::size_t number = 0; number < parts_.size(); ++number) {
      const std::size_t microbatch = number % microbatches();
      if (two && number >= microbatches()) runtime.stream_wait_event(first, done[microbatch]);
      int half = 0;
      for (std::size_t n = 0; n < plan_.program.steps.size(); ++n) {
        const LayerStep& step = plan_.program.steps[n];
        if (!plan_.has(rank, step)) continue;
        if (two && step.half != half) {
          runtime.record_event(first, attended[microbatch]);
          runtime.stream_wait_event(second, attended[microbatch]);
        }
        half = step.half;
        const host::Stream stream = half == 0 ? first : second;
        PlacedStep& placed = parts_[number].ranks[rank][n];
        if (step.exchange)
          placed.launched = launch(stream, parts_[number].exchanges[n][rank], cores_of(step, rank));
        for (operators::KernelOperator* stage : placed.stages.run) stage->enqueue(stream);
      }
      if (two) runtime.record_event(second, done[microbatch]);
    }
  }

  const npu::LaunchRecord& record(std::size_t part, std::size_t rank, const PlannedStage& stage) {
    const PlacedStep& placed = parts_[part].ranks[rank][stage.step];
    if (plan_.step_of(stage).exchange) return session_.runtime().record(placed.launched);
    return placed.stages.run[stage.number]->record();
  }

  // What a rank has, in the order of a microbatch.
  std::vector<PlannedStage> stages_of(std::size_t rank) const {
    std::vector<PlannedStage> own;
    for (const PlannedStage& stage : plan_.stages) {
      if (plan_.has(rank, plan_.step_of(stage))) own.push_back(stage);
    }
    return own;
  }
  // Adds what ranks of a kind measured in the last layer.
  void read(const RankKind& kind, LayerReading& reading, std::vector<double>& layers);

  // What a rank's streams did.
  std::vector<LayerKernel> kernels_of(std::size_t rank) {
    const std::vector<PlannedStage> own = stages_of(rank);
    const auto first = static_cast<std::size_t>(*plan_.detail.begin());
    const Time start = record(0, first, plan_.stages.front()).task_start;
    std::vector<LayerKernel> kernels;
    for (std::size_t number = 0; number < parts_.size(); ++number) {
      for (const PlannedStage& stage : own) {
        const npu::LaunchRecord& r = record(number, rank, stage);
        kernels.push_back({static_cast<int>(number / microbatches()),
                           static_cast<int>(number % microbatches()),
                           microbatches() > 1 ? plan_.step_of(stage).half : 0, plan_.name_of(stage),
                           (r.task_start - start).us(), (r.task_end - start).us()});
      }
    }
    return kernels;
  }

  const LayerPlan& plan_;
  const LayerSetting& setting_;
  std::vector<int> dies_;
  Session session_;
  npu::PaceBoard board_;
  std::map<std::array<std::size_t, 3>, std::size_t> paced_;  // by part, step and kernel: number on the board
  std::map<std::string, std::shared_ptr<npu::Program>> programs_;
  std::deque<operators::RankMemory> memories_;  // of exchanges
  std::deque<PlacedPart> parts_;                // by layer and microbatch; operators refer to them
};

void LayerRun::read(const RankKind& kind, LayerReading& reading, std::vector<double>& layers) {
  const std::size_t last = parts_.size() - microbatches();
  const std::vector<PlannedStage> stages = stages_of(kind.first);
  const auto half_of = [&](const PlannedStage& stage) { return plan_.step_of(stage).half; };
  std::vector<std::vector<double>> tasks(stages.size());
  std::array<std::vector<double>, 2> halves;
  const auto end_of = [&](std::size_t part, std::size_t rank) {
    return record(part, rank, stages.back()).task_end;
  };
  for (std::size_t rank = kind.first; rank < kind.end; ++rank) {
    for (std::size_t n = last; n < parts_.size(); ++n) {
      std::array<std::optional<Time>, 2> start;
      std::array<Time, 2> end{};
      for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        const npu::LaunchRecord& r = record(n, rank, stages[stage]);
        tasks[stage].push_back((r.task_end - r.task_start).us());
        const auto half = static_cast<std::size_t>(half_of(stages[stage]));
        if (!start[half]) start[half] = r.task_start;
        end[half] = r.task_end;
      }
      for (std::size_t half = 0; half < 2; ++half) {
        const bool own = kind.ranks == LayerRanks::all || (kind.ranks == LayerRanks::experts) == (half == 1);
        if (own && start[half]) halves[half].push_back((end[half] - *start[half]).us());
      }
    }
    layers.push_back((end_of(parts_.size() - 1, rank) - end_of(last - 1, rank)).us());
    if (kind.first == 0)
      reading.first_us +=
          (end_of(microbatches() - 1, rank) - record(0, rank, stages.front()).task_start).us() /
          static_cast<double>(kind.end);
  }
  for (std::size_t n = 0; n < stages.size(); ++n) {
    const LayerStep& step = plan_.step_of(stages[n]);
    const bool some_replay = setting_.detail < static_cast<int>(kind.end - kind.first);
    reading.stages.push_back({plan_.name_of(stages[n]), kind.ranks, step.half,
                              plan_.is_replayed(step) && some_replay, summarise(std::move(tasks[n]))});
  }
  for (std::size_t half = 0; half < 2; ++half) {
    if (!halves[half].empty()) reading.half_us[half] = summarise(std::move(halves[half]));
  }
}

LayerReading LayerRun::read(SimulatorCounts& counts) {
  LayerReading reading;
  std::vector<double> layers;
  for (const RankKind& kind : plan_.kinds()) read(kind, reading, layers);
  reading.layer_us = summarise(std::move(layers));
  const std::size_t last = parts_.size() - microbatches();
  double rows = 0;
  for (std::size_t n = last; n < plan_.program.rows.size(); ++n) {
    for (const std::uint32_t own : plan_.program.rows[n]) {
      rows += own;
      reading.rows_max = std::max(reading.rows_max, double{static_cast<double>(own)});
    }
  }
  reading.rows_mean =
      rows / static_cast<double>(microbatches() * static_cast<std::size_t>(setting_.moe.holders()));
  reading.new_copies = plan_.program.new_copies;
  reading.recordings = plan_.recorded();
  reading.followers = static_cast<int>(dies_.size() - plan_.setters.size() - plan_.detail.size());
  const npu::PaceBoard::Late& late = board_.late();
  reading.late_us = {late.launches == 0 ? 0 : late.sum.us() / static_cast<double>(late.launches),
                     late.most.us()};
  reading.kernels_rank = *plan_.detail.begin();
  const auto detailed_rank = static_cast<std::size_t>(reading.kernels_rank);
  reading.kernels = kernels_of(detailed_rank);
  if (setting_.two_kinds()) {
    reading.experts_rank = *plan_.detail.lower_bound(setting_.token_ranks());
    reading.experts_kernels = kernels_of(static_cast<std::size_t>(reading.experts_rank));
  }
  npu::Die& detailed = session_.machine().die(dies_[detailed_rank]);
  reading.hbm_bytes = detailed.memory().hbm_traffic();
  session_.count(counts);
  return reading;
}

}  // namespace

int detail_rank(int n, int detail, int ranks) {
  return static_cast<int>((2 * std::int64_t{n} + 1) * ranks / (2 * std::int64_t{detail}));
}

LayerReading measure_layer(const StudyContext& context, const LayerSetting& setting,
                           SimulatorCounts& counts) {
  LayerPlan plan(context, setting);
  if (!plan.record()) return {};
  plan.choose_setters();
  LayerRun run(plan);
  if (!run.run()) return {};
  return run.read(counts);
}

}  // namespace cm384::studies
