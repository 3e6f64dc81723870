#include "workloads/layer/layer_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "traces/random.h"
#include "workloads/moe/moe_case.h"
#include "workloads/operators/collectives/collectives.h"
#include "workloads/operators/ffn/expert_ffn.h"
#include "workloads/operators/ffn/ffn.h"
#include "workloads/operators/gemm/gemm.h"
#include "workloads/operators/rows/rows.h"
#include "workloads/operators/token_operators/token_operators.h"

namespace cm384::studies {
namespace {

// Rows of replayed experts, in steps of these.
constexpr std::uint32_t kRowStep = 32;
// Widest network of one `ffn`; what is wider is cut into equal slices.
constexpr std::uint32_t kMostWidth = 4096;

// Operators one after another, placed as they run, in a captured graph.
class InTurn {
 public:
  template <class Operator, class... Arguments>
  Operator& add(Arguments&&... arguments) {
    auto made = std::make_unique<Operator>(std::forward<Arguments>(arguments)...);
    Operator& added = *made;
    added.launch_in_graph(true);
    stages_.run.push_back(made.get());
    stages_.placed.push_back(std::move(made));
    return added;
  }
  void rows(reference::RowOperation operation, std::uint32_t rows, std::uint32_t width,
            std::uint32_t buffers = 1) {
    reference::RowCase made;
    made.operation = operation;
    made.rows = rows;
    made.width = width;
    add<operators::Rows>(made, buffers);
  }
  Stages release() { return std::move(stages_); }

 private:
  Stages stages_;
};

// Attention of each rank's microbatch: all of it, or of the heads that it has.
LayerStep attention_step(const std::shared_ptr<const LayerSetting>& setting, std::uint64_t seed) {
  LayerStep step{attention_names(setting->attention), 0};
  const auto microbatch = [setting](const LayerSpot& at) {
    return at.part % static_cast<std::size_t>(setting->microbatches);
  };
  const auto lengths = [setting](std::size_t rank) {
    return static_cast<std::size_t>(setting->lengths_of[rank]);
  };
  step.make = [=](const LayerSpot& at) {
    AttentionSetting made = setting->attention;
    made.kv_lens = setting->lengths[lengths(at.rank)][microbatch(at)];
    return attention_stages(made, seed);
  };
  step.size = [=](const LayerSpot& at) { return fmt::format("{} {}", lengths(at.rank), microbatch(at)); };
  step.kind = [=](const LayerSpot& at) { return static_cast<int>(lengths(at.rank)); };
  return step;
}

// A collective of each group of `tensor` ranks, by the vector cores of one half.
LayerStep collective_step(const char* name, int half, const std::shared_ptr<const LayerSetting>& setting,
                          reference::CollectiveKind kind, std::uint64_t bytes) {
  const auto placed = std::make_shared<std::deque<operators::RankCollective>>();
  LayerStep step{{name}, half};
  step.exchange = [=](std::size_t, const ExchangeSite& site) {
    reference::CollectiveCase made;
    made.kind = kind;
    made.ranks = setting->tensor;
    made.bytes = bytes;
    const hw::Machine& machine = site.runtime.machine().parameters();
    const int aivs = 2 * setting->cores[static_cast<std::size_t>(half)].count;
    const auto algorithm = operators::choose_algorithm(made, aivs, machine);
    const int used = operators::cores_of(made, algorithm, aivs);
    std::vector<ExchangeLaunch> launches;
    const auto end = site.dies.begin() + setting->token_ranks();
    for (auto die = site.dies.begin(); die != end; die += made.ranks) {
      operators::RankCollective& one = placed->emplace_back(made, used, false, algorithm);
      site.memories.push_back(operators::memory_of(site.runtime, {die, die + made.ranks}));
      one.follows_others();
      one.place(site.memories.back());
      for (const operators::RankTask& task : one.tasks())
        launches.push_back({one.kernel(), task.arguments, used});
    }
    return launches;
  };
  return step;
}

// Routing of all parts, and what dispatch and combine of each left where.
class MoeParts {
 public:
  MoeParts(const std::shared_ptr<const LayerSetting>& setting, std::uint64_t seed)
      : held_(setting), setting_(*setting), seed_(seed) {
    for (int n = 0; n < setting_.layers * setting_.microbatches; ++n) {
      const std::uint64_t own = traces::mix(seed + static_cast<std::uint64_t>(n));
      if (setting_.renewal.every == 0) {
        layers_.push_back(make_moe_case(own, setting_.moe));
      } else if (n % setting_.microbatches == 0) {
        RenewedLayer layer = make_renewed_layer(own, setting_.moe, setting_.microbatches, setting_.renewal);
        new_copies_ += static_cast<double>(layer.new_copies) / setting_.layers;
        std::ranges::move(layer.parts, std::back_inserter(layers_));
      }
    }
    for (reference::DispatchCase& layer : layers_) {
      layer.relays = setting_.relays;
      rows_.emplace_back();
      RoutedRows routed = routed_rows(layer);
      for (std::vector<std::uint32_t>& own : routed.of_expert) {
        rows_.back().push_back(std::accumulate(own.begin(), own.end(), 0U));
        std::ranges::sort(own, std::greater());
        std::vector<double>& profile = profiles_[static_cast<int>(own.size())];
        profile.resize(own.size());
        for (std::size_t k = 0; k < own.size(); ++k) profile[k] += own[k];
      }
    }
  }

  const std::vector<std::vector<std::uint32_t>>& rows() const { return rows_; }
  double new_copies() const { return new_copies_; }

  std::vector<ExchangeLaunch> place_dispatch(std::size_t part, const ExchangeSite& site) {
    if (memory_ == nullptr)
      memory_ = &site.memories.emplace_back(operators::memory_of(site.runtime, site.dies));
    std::vector<cm384_peer> windows;
    if (!dispatches_.empty()) windows = dispatches_.front().windows();
    dispatches_.emplace_back(layers_[part], setting_.moe.cores, false, std::move(windows)).place(*memory_);
    return launches_of(dispatches_.back());
  }
  std::vector<ExchangeLaunch> place_combine(std::size_t part) {
    const operators::CombineSetting combine{false, setting_.shared_output};
    combines_.emplace_back(dispatches_[part], combine).place(*memory_);
    return launches_of(combines_.back());
  }

  Stages gate(const LayerSpot& at) const {
    const reference::DispatchCase& layer = layers_[at.part];
    const auto tokens = static_cast<std::uint32_t>(layer.batch),
               hidden = static_cast<std::uint32_t>(layer.hidden),
               experts = static_cast<std::uint32_t>(layer.placement.experts);
    InTurn made;
    made.rows(reference::RowOperation::rms_norm, tokens, hidden);
    operators::GemmSetting product;
    product.group_rows = {tokens};
    product.n = experts;
    product.k = hidden;
    product.type = CM384_GEMM_BF16;
    product.b_nz = false;
    made.add<operators::Gemm>(product, seed_);
    reference::GateCase gate{.tokens = tokens, .experts = experts, .top_groups = setting_.token_groups};
    gate.chosen = static_cast<std::uint32_t>(layer.top_k);
    gate.group = setting_.expert_group;
    gate.softmax = setting_.softmax_gate;
    made.add<operators::Gate>(gate);
    return made.release();
  }

  // Between dispatch and combine, where these are placed; to be recorded otherwise.
  Stages experts(const LayerSpot& at) const {
    const reference::DispatchCase& layer = layers_[at.part];
    const std::size_t slots = layer.placement.slots.size(),
                      tokens = static_cast<std::size_t>(layer.tokens()) *
                               static_cast<std::size_t>(layer.top_k + layer.placement.shared);
    operators::ExpertFfnSetting setting;
    setting.expert_rows = dealt_out(layer.placement.own_experts[at.rank], expert_key(at).second);
    setting.tile_rows = static_cast<std::uint32_t>((tokens + slots - 1) / slots);
    setting.hidden = static_cast<std::uint32_t>(layer.hidden);
    setting.width = setting_.width;
    setting.bf16 = setting_.bf16_networks;
    setting.int4 = setting_.int4_networks;
    InTurn made;
    auto& network = made.add<operators::ExpertFfn>(setting);
    const int rank = static_cast<int>(at.rank);
    if (at.part < combines_.size())
      network.stand_between(dispatches_[at.part].arguments(rank), combines_[at.part].arguments(rank));
    return made.release();
  }
  int experts_of(const LayerSpot& at) const { return layers_[at.part].placement.own_experts[at.rank]; }
  std::string experts_size(const LayerSpot& at) const {
    const auto [experts, rows] = expert_key(at);
    return fmt::format("{} {}", experts, rows);
  }

 private:
  std::vector<ExchangeLaunch> launches_of(const operators::Collective& of) const {
    std::vector<ExchangeLaunch> launches;
    for (const operators::RankTask& task : of.tasks())
      launches.push_back({of.kernel(), task.arguments, setting_.moe.cores});
    return launches;
  }
  std::pair<int, std::uint32_t> expert_key(const LayerSpot& at) const {
    const reference::DispatchCase& layer = layers_[at.part];
    const int own = layer.placement.own_experts[at.rank];
    // No more than a rank has memory for.
    const std::uint64_t most = cm384_dispatch_max_rows(
        layer.expert_ids.size(), static_cast<std::uint64_t>(own), static_cast<std::uint64_t>(layer.batch),
        static_cast<std::uint64_t>(layer.top_k) + static_cast<std::uint64_t>(layer.placement.shared));
    const std::uint32_t step = (rows_[at.part][at.rank] + kRowStep / 2) / kRowStep * kRowStep;
    return {own, static_cast<std::uint32_t>(std::min<std::uint64_t>(step, most))};
  }
  // `all` rows over so many experts, as unevenly as experts of a rank have them on the average.
  std::vector<std::uint32_t> dealt_out(int slots, std::uint32_t all) const {
    const std::vector<double>& profile = profiles_.at(slots);
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

  std::shared_ptr<const LayerSetting> held_;
  const LayerSetting& setting_;
  std::uint64_t seed_;
  std::deque<reference::DispatchCase> layers_;    // by part; operators refer to them
  double new_copies_ = 0;                         // at a renewal, mean over layers
  std::vector<std::vector<std::uint32_t>> rows_;  // of each part, by rank
  std::map<int, std::vector<double>> profiles_;   // by experts of a rank: their rows, falling, over all ranks
  operators::RankMemory* memory_ = nullptr;
  std::deque<operators::Dispatch> dispatches_;
  std::deque<operators::Combine> combines_;
};

// Of two kinds of ranks one stream sends tokens and the other gets them back, so that a microbatch is on its
// way while the next one has attention; ranks with experts take a microbatch in while they compute another.
std::vector<LayerStep> expert_steps(const std::shared_ptr<MoeParts>& moe, bool two_kinds) {
  LayerStep gate{{"norm", "gate_product", "gate"}, 1}, dispatch{{"dispatch"}, 1}, experts{{"experts"}, 1},
      combine{{"combine"}, 1};
  gate.make = [moe](const LayerSpot& at) { return moe->gate(at); };
  gate.size = [](const LayerSpot&) { return std::string("gate"); };
  gate.is_short = true;
  dispatch.exchange = [moe](std::size_t part, const ExchangeSite& site) {
    return moe->place_dispatch(part, site);
  };
  experts.make = [moe](const LayerSpot& at) { return moe->experts(at); };
  experts.size = [moe](const LayerSpot& at) { return moe->experts_size(at); };
  experts.kind = [moe](const LayerSpot& at) { return moe->experts_of(at); };
  combine.exchange = [moe](std::size_t part, const ExchangeSite&) { return moe->place_combine(part); };
  if (two_kinds) {
    gate.half = dispatch.half = 0;
    gate.ranks = LayerRanks::tokens;
    experts.ranks = LayerRanks::experts;
  }
  return {gate, dispatch, experts, combine};
}

// A dense gated network on the tokens of a rank, in slices of a width that the kernel holds, which are summed
// in pairs; before it its norm and, for INT8, the quantisation of its rows. What is replayed is the network
// alone.
std::vector<LayerStep> dense_steps(const LayerSetting& asked, std::uint32_t tokens, std::uint64_t seed) {
  const std::uint32_t hidden = asked.attention.hidden, width = asked.dense_width;
  const bool bf16 = asked.bf16_networks, int4 = asked.int4_networks;
  const int slices = dense_slices(width);
  LayerStep rows{{"norm"}, 1}, network{{"network"}, 1},
      sums{std::vector<std::string>(additions_of(slices).size(), "add"), 1};
  if (!bf16) rows.names.emplace_back("quantise");
  rows.make = [=](const LayerSpot&) {
    InTurn made;
    made.rows(reference::RowOperation::rms_norm, tokens, hidden);
    if (!bf16) made.rows(reference::RowOperation::quantise, tokens, hidden);
    return made.release();
  };
  rows.size = sums.size = [](const LayerSpot&) { return std::string("rows"); };
  rows.is_short = sums.is_short = true;
  network.make = [=](const LayerSpot&) {
    InTurn made;
    made.add<operators::Ffn>(
        operators::FfnSetting{std::vector<std::uint32_t>(static_cast<std::size_t>(slices), tokens),
                              hidden,
                              width / static_cast<std::uint32_t>(slices),
                              bf16,
                              false,
                              {},
                              int4},
        seed);
    return made.release();
  };
  network.size = [](const LayerSpot&) { return std::string("dense"); };
  sums.make = [=](const LayerSpot&) {
    InTurn made;
    for (const int part : additions_of(slices))
      made.rows(reference::RowOperation::add, static_cast<std::uint32_t>(part) * tokens, hidden, 2);
    return made.release();
  };
  std::vector<LayerStep> steps{rows, network};
  if (!sums.names.empty()) steps.push_back(sums);
  return steps;
}

}  // namespace

std::vector<int> additions_of(int slices) {
  std::vector<int> made;
  while (slices > 1) {
    made.push_back(slices / 2);
    slices -= slices / 2;
  }
  return made;
}

int dense_slices(std::uint32_t width) {
  int slices = static_cast<int>((width + kMostWidth - 1) / kMostWidth);
  while (width % (static_cast<std::uint32_t>(slices) * 64) != 0) ++slices;
  return slices;
}

LayerProgram make_layer_program(const LayerSetting& asked, std::uint64_t seed) {
  using reference::CollectiveKind;
  const auto setting = std::make_shared<const LayerSetting>(asked);
  const std::uint32_t hidden = asked.attention.hidden;
  const bool shares = asked.tensor > 1, dense = asked.dense_width > 0;
  // Tokens whose heads ranks share; with experts each rank then has its own part of them.
  const auto tokens = static_cast<std::uint32_t>(asked.moe.batch * asked.tensor);
  const std::uint64_t bytes = std::uint64_t{tokens} * hidden * 2,
                      part = bytes / static_cast<std::uint64_t>(asked.tensor);
  LayerProgram program;
  program.steps.push_back(attention_step(setting, seed));
  if (dense) {
    if (shares)
      program.steps.push_back(
          collective_step("all_reduce_attention", 0, setting, CollectiveKind::all_reduce, bytes));
    for (LayerStep& step : dense_steps(asked, tokens, seed)) program.steps.push_back(std::move(step));
    if (shares)
      program.steps.push_back(
          collective_step("all_reduce_network", 1, setting, CollectiveKind::all_reduce, bytes));
    return program;
  }
  if (shares)
    program.steps.push_back(
        collective_step("reduce_scatter", 0, setting, CollectiveKind::reduce_scatter, part));
  const auto moe = std::make_shared<MoeParts>(setting, seed);
  for (LayerStep& step : expert_steps(moe, asked.two_kinds())) program.steps.push_back(std::move(step));
  if (shares)
    program.steps.push_back(collective_step("all_gather", 1, setting, CollectiveKind::all_gather, part));
  // What has no experts belongs to the tokens.
  for (LayerStep& step : program.steps) {
    const bool both = step.names.front() == "dispatch" || step.names.front() == "combine";
    if (asked.two_kinds() && !both && step.ranks == LayerRanks::all) step.ranks = LayerRanks::tokens;
  }
  program.rows = moe->rows();
  program.new_copies = moe->new_copies();
  return program;
}

}  // namespace cm384::studies
