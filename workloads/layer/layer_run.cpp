#include "workloads/layer/layer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "system/host/placement.h"
#include "traces/random.h"
#include "workloads/frame/session.h"

namespace cm384::studies {
namespace {

constexpr std::array kNames{"prolog", "attention", "output",  "norm",   "gate_product",
                            "gate",   "dispatch",  "experts", "combine"};
constexpr std::size_t kDispatchPlace = 6, kExpertsPlace = 7, kCombinePlace = 8;
// Rows of replayed experts, in steps of these.
constexpr std::uint32_t kRowStep = 32;

// Routing of all parts and what is recorded of firmware for them; made before the machine is.
struct Plan {
  const StudyContext& context;
  const LayerSetting& setting;
  std::set<int> detail;
  std::deque<reference::DispatchCase> layers;    // by layer and microbatch
  double new_copies = 0;                         // at a renewal, mean over layers
  std::vector<std::vector<std::uint32_t>> rows;  // of each, by rank
  std::map<int, std::vector<double>> profiles;   // by experts of a rank: their rows, falling, over all ranks
  std::map<std::pair<int, int>, host::Recordings> attention;          // by set of lengths and microbatch
  std::map<std::pair<int, std::uint32_t>, host::Recordings> experts;  // by experts and rows

  Plan(const StudyContext& of, const LayerSetting& what) : context(of), setting(what) {
    for (int n = 0; n < setting.detail; ++n) detail.insert(detail_rank(n, setting.detail, setting.moe.ranks));
    for (int n = 0; n < setting.layers * setting.microbatches; ++n) {
      const std::uint64_t seed = traces::mix(context.seed + static_cast<std::uint64_t>(n));
      if (setting.renewal.every == 0) {
        layers.push_back(make_moe_case(seed, setting.moe));
      } else if (n % setting.microbatches == 0) {
        RenewedLayer layer = make_renewed_layer(seed, setting.moe, setting.microbatches, setting.renewal);
        new_copies += static_cast<double>(layer.new_copies) / setting.layers;
        std::ranges::move(layer.parts, std::back_inserter(layers));
      }
    }
    for (const reference::DispatchCase& layer : layers) {
      rows.emplace_back();
      RoutedRows routed = routed_rows(layer);
      for (std::vector<std::uint32_t>& own : routed.of_expert) {
        rows.back().push_back(std::accumulate(own.begin(), own.end(), 0U));
        std::ranges::sort(own, std::greater());
        std::vector<double>& profile = profiles[static_cast<int>(own.size())];
        profile.resize(own.size());
        for (std::size_t k = 0; k < own.size(); ++k) profile[k] += own[k];
      }
    }
  }

  bool in_detail(std::size_t rank) const { return detail.contains(static_cast<int>(rank)); }
  operators::MlaSetting attention_of(std::size_t rank, std::size_t microbatch) const {
    operators::MlaSetting made = setting.attention;
    made.kv_lens = setting.lengths[static_cast<std::size_t>(setting.lengths_of[rank])][microbatch];
    return made;
  }
  ExpertHalf::Setting experts_of(std::size_t part, std::size_t rank) const {
    const reference::DispatchCase& layer = layers[part];
    const std::size_t slots = layer.placement.slots.size(),
                      tokens = layer.expert_ids.size() * static_cast<std::size_t>(layer.batch) *
                               static_cast<std::size_t>(layer.top_k + layer.placement.shared);
    ExpertHalf::Setting made;
    made.tokens = static_cast<std::uint32_t>(layer.batch);
    made.hidden = static_cast<std::uint32_t>(layer.hidden);
    made.experts = static_cast<std::uint32_t>(layer.placement.experts);
    made.width = setting.width;
    made.expert_rows = dealt_out(layer.placement.own_experts[rank], expert_key(part, rank).second);
    made.tile_rows = static_cast<std::uint32_t>((tokens + slots - 1) / slots);
    made.seed = context.seed;
    return made;
  }
  std::pair<int, std::uint32_t> expert_key(std::size_t part, std::size_t rank) const {
    const reference::DispatchCase& layer = layers[part];
    const int own = layer.placement.own_experts[rank];
    // No more than a rank has memory for.
    const std::uint64_t most = cm384_dispatch_max_rows(
        layer.expert_ids.size(), static_cast<std::uint64_t>(own), static_cast<std::uint64_t>(layer.batch),
        static_cast<std::uint64_t>(layer.top_k + layer.placement.shared));
    const std::uint32_t step = (rows[part][rank] + kRowStep / 2) / kRowStep * kRowStep;
    return {own, static_cast<std::uint32_t>(std::min<std::uint64_t>(step, most))};
  }

  // `all` rows over so many experts, as unevenly as experts of a rank have them on the average.
  std::vector<std::uint32_t> dealt_out(int slots, std::uint32_t all) const {
    const std::vector<double>& profile = profiles.at(slots);
    const double sum = std::accumulate(profile.begin(), profile.end(), 0.0);
    std::vector<std::uint32_t> made;
    double before = 0;
    for (const double part : profile) {
      const auto at = [&](double share) { return std::lround(share / std::max(1.0, sum) * all); };
      made.push_back(static_cast<std::uint32_t>(at(before + part) - at(before)));
      before += part;
    }
    return made;
  }

  // Records what ranks replay. False: interrupted.
  bool record() {
    for (std::size_t part = 0; part < layers.size(); ++part) {
      for (std::size_t rank = 0; rank < rows[part].size(); ++rank) {
        if (!in_detail(rank) && !record(part, rank)) return false;
      }
    }
    return true;
  }

 private:
  bool record(std::size_t part, std::size_t rank) {
    const std::size_t microbatch = part % static_cast<std::size_t>(setting.microbatches);
    CubeSetting cubes;
    const auto [played, fresh] =
        attention.try_emplace({setting.lengths_of[rank], static_cast<int>(microbatch)});
    if (fresh) {
      cubes.blocks = setting.cores[0].count;
      played->second = record_stages(context, cubes, [&] {
        return AttentionHalf::stages_of(attention_of(rank, microbatch), context.seed);
      });
      if (played->second.size() != AttentionHalf::kStages) return false;
    }
    auto& recordings = experts[expert_key(part, rank)];
    if (!recordings.empty()) return true;
    cubes.blocks = setting.cores[1].count;
    recordings = record_stages(context, cubes, [&] {
      Stages stages;
      stages.placed.push_back(
          std::make_unique<operators::ExpertFfn>(ExpertHalf::experts_of(experts_of(part, rank))));
      stages.run = {stages.placed.back().get()};
      stages.run.front()->launch_in_graph(true);
      return stages;
    });
    return !recordings.empty();
  }
};

// One microbatch in one layer, on all ranks.
struct Part {
  std::optional<operators::Dispatch> dispatch;
  std::optional<operators::Combine> combine;
  std::vector<std::unique_ptr<AttentionHalf>> attention;
  std::vector<std::unique_ptr<ExpertHalf>> experts;
  std::vector<host::LaunchHandle> dispatched, combined;
};

class LayerRun {
 public:
  explicit LayerRun(const Plan& plan)
      : plan_(plan),
        setting_(plan.setting),
        dies_(host::place_ranks(setting_.moe.placement, setting_.moe.ranks,
                                plan.context.machine.topology.dies(),
                                plan.context.machine.topology.dies_per_node, plan.context.seed)),
        session_(plan.context, session_options()),
        memory_(operators::memory_of(session_.runtime(), dies_)) {
    for (const reference::DispatchCase& layer : plan.layers) route(parts_.emplace_back(), layer);
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      for (std::size_t rank = 0; rank < dies_.size(); ++rank) place(part, rank);
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

  // Dispatch and combine of a part.
  void route(Part& part, const reference::DispatchCase& layer) {
    std::vector<cm384_peer> windows;
    if (parts_.size() > 1) windows = parts_.front().dispatch->windows();
    part.dispatch.emplace(layer, setting_.moe.cores, false, std::move(windows));
    part.dispatch->place(memory_);
    part.combine.emplace(*part.dispatch, operators::CombineSetting{});
    part.combine->place(memory_);
  }

  // A rank's own work in a part.
  void place(std::size_t number, std::size_t rank) {
    Part& part = parts_[number];
    const std::size_t microbatch = number % microbatches();
    const Part& first = parts_[number - microbatch];
    const bool lends = microbatch != 0;
    const LoadKernel load = [this](std::string_view kernel) { return program(kernel); };
    host::Runtime& runtime = session_.runtime();
    part.attention.push_back(std::make_unique<AttentionHalf>(
        runtime, dies_[rank], plan_.attention_of(rank, microbatch), plan_.context.seed, load,
        setting_.cores[0], lends ? first.attention[rank].get() : nullptr));
    const int own = static_cast<int>(rank);
    part.experts.push_back(std::make_unique<ExpertHalf>(
        runtime, dies_[rank], plan_.experts_of(number, rank), part.dispatch->arguments(own),
        std::as_const(*part.combine).arguments(own), load, setting_.cores[1],
        lends ? first.experts[rank].get() : nullptr));
    if (plan_.in_detail(rank)) return;
    part.attention.back()->play(
        plan_.attention.at({setting_.lengths_of[rank], static_cast<int>(microbatch)}));
    part.experts.back()->play(plan_.experts.at(plan_.expert_key(number, rank)).front());
  }

  host::LaunchHandle launch(host::Stream stream, const operators::Collective& what, std::size_t rank) {
    npu::LaunchRequest request{program(what.kernel()), what.tasks()[rank].arguments,
                               setting_.cores[1].aivs()};
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
      Part& part = parts_[number];
      const std::size_t microbatch = number % microbatches();
      if (two && number >= microbatches()) runtime.stream_wait_event(first, done[microbatch]);
      part.attention[rank]->enqueue(first);
      if (two) {
        runtime.record_event(first, attended[microbatch]);
        runtime.stream_wait_event(second, attended[microbatch]);
      }
      part.experts[rank]->enqueue_before_dispatch(second);
      part.dispatched.push_back(launch(second, *part.dispatch, rank));
      part.experts[rank]->enqueue_experts(second);
      part.combined.push_back(launch(second, *part.combine, rank));
      if (two) runtime.record_event(second, done[microbatch]);
    }
  }

  const npu::LaunchRecord& record(const Part& part, std::size_t rank, std::size_t stage) {
    if (stage < AttentionHalf::kStages) return part.attention[rank]->record(stage);
    const host::Runtime& runtime = session_.runtime();
    if (stage == kDispatchPlace) return runtime.record(part.dispatched[rank]);
    if (stage == kCombinePlace) return runtime.record(part.combined[rank]);
    const std::size_t own = stage - AttentionHalf::kStages;
    return part.experts[rank]->record(stage == kExpertsPlace ? ExpertHalf::kBefore : own);
  }

  // What a rank's streams did.
  std::vector<LayerKernel> kernels_of(std::size_t rank) {
    const Time start = record(parts_.front(), rank, 0).task_start;
    std::vector<LayerKernel> kernels;
    for (std::size_t number = 0; number < parts_.size(); ++number) {
      for (std::size_t stage = 0; stage < kNames.size(); ++stage) {
        const npu::LaunchRecord& r = record(parts_[number], rank, stage);
        kernels.push_back({static_cast<int>(number / microbatches()),
                           static_cast<int>(number % microbatches()),
                           microbatches() > 1 && stage >= AttentionHalf::kStages ? 1 : 0, kNames[stage],
                           (r.task_start - start).us(), (r.task_end - start).us()});
      }
    }
    return kernels;
  }

  const Plan& plan_;
  const LayerSetting& setting_;
  std::vector<int> dies_;
  Session session_;
  std::map<std::string, std::shared_ptr<npu::Program>> programs_;
  operators::RankMemory memory_;
  std::deque<Part> parts_;  // by layer and microbatch; operators refer to them
};

LayerReading LayerRun::read(SimulatorCounts& counts) {
  const std::size_t last = parts_.size() - microbatches();
  std::array<std::vector<double>, kNames.size()> tasks;
  std::array<std::vector<double>, 2> halves, idle;
  std::vector<double> layers;
  LayerReading reading;
  const auto end_of = [&](std::size_t part, std::size_t rank) {
    return record(parts_[part], rank, kCombinePlace).task_end;
  };
  for (std::size_t rank = 0; rank < dies_.size(); ++rank) {
    std::array<double, 2> busy{};
    for (std::size_t n = last; n < parts_.size(); ++n) {
      std::array<double, kNames.size()> us{};
      for (std::size_t stage = 0; stage < kNames.size(); ++stage) {
        const npu::LaunchRecord& r = record(parts_[n], rank, stage);
        us[stage] = (r.task_end - r.task_start).us();
        tasks[stage].push_back(us[stage]);
        busy[stage < AttentionHalf::kStages ? 0 : 1] += us[stage];
      }
      const auto from = [&](std::size_t stage) { return record(parts_[n], rank, stage).task_start; };
      const auto to = [&](std::size_t stage) { return record(parts_[n], rank, stage).task_end; };
      halves[0].push_back((to(AttentionHalf::kStages - 1) - from(0)).us());
      halves[1].push_back((to(kCombinePlace) - from(AttentionHalf::kStages)).us());
    }
    const double layer = (end_of(parts_.size() - 1, rank) - end_of(last - 1, rank)).us();
    layers.push_back(layer);
    for (std::size_t half = 0; half < 2; ++half) idle[half].push_back(layer - busy[half]);
    reading.first_us += (end_of(microbatches() - 1, rank) - record(parts_[0], rank, 0).task_start).us() /
                        static_cast<double>(dies_.size());
  }
  for (std::size_t stage = 0; stage < kNames.size(); ++stage) {
    const int half = stage < AttentionHalf::kStages ? 0 : 1;
    reading.stages.push_back({kNames[stage], half, summarise(std::move(tasks[stage]))});
  }
  for (std::size_t half = 0; half < 2; ++half) {
    reading.half_us[half] = summarise(std::move(halves[half]));
    reading.idle_us[half] = summarise(std::move(idle[half]));
  }
  reading.layer_us = summarise(std::move(layers));
  double rows = 0;
  for (std::size_t n = last; n < parts_.size(); ++n) {
    for (const std::uint32_t own : plan_.rows[n]) {
      rows += own;
      reading.rows_max = std::max(reading.rows_max, double{static_cast<double>(own)});
    }
  }
  reading.rows_mean = rows / static_cast<double>(microbatches() * dies_.size());
  reading.new_copies = plan_.new_copies;
  reading.recordings =
      static_cast<int>(plan_.attention.size() * AttentionHalf::kStages + plan_.experts.size());
  reading.kernels_rank = *plan_.detail.begin();
  const auto detailed_rank = static_cast<std::size_t>(reading.kernels_rank);
  reading.kernels = kernels_of(detailed_rank);
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
  Plan plan(context, setting);
  if (!plan.record()) return {};
  LayerRun run(plan);
  if (!run.run()) return {};
  return run.read(counts);
}

}  // namespace cm384::studies
