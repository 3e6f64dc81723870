#include "workloads/layer/layer_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "firmware/abi/rows.h"
#include "firmware/abi/tokens.h"
#include "system/host/placement.h"
#include "workloads/frame/session.h"
#include "workloads/moe/moe_case.h"
#include "workloads/operators/ffn/expert_ffn.h"
#include "workloads/operators/gemm/memory.h"
#include "workloads/operators/mla/projections.h"

namespace cm384::studies {
namespace {

using operators::RankMemory;

constexpr double kMostWeights = 3e9;  // of all ranks' memories together
constexpr double kEpsilon = 1e-6;

operators::MlaSetting attention_of(const LayerSetting& setting, std::size_t rank) {
  const AttentionSetting& a = setting.attention;
  const auto set = static_cast<std::size_t>(setting.lengths_of[rank]);
  return {setting.lengths[set].front(), a.queries, a.heads, a.hidden, a.q_lora, a.int8};
}

reference::LayerCase case_of(const LayerSetting& setting, const reference::DispatchCase& routed) {
  reference::LayerCase made;
  made.seed = routed.seed;
  made.draw = *routed.drawn;
  const AttentionSetting& a = setting.attention;
  const auto tokens = static_cast<std::uint32_t>(routed.batch);
  made.attention = {routed.seed, tokens, a.hidden, a.q_lora, a.heads, a.int8};
  made.gate = {.tokens = tokens,
               .experts = static_cast<std::uint32_t>(routed.placement.experts),
               .top_groups = setting.token_groups};
  made.gate.chosen = static_cast<std::uint32_t>(routed.top_k);
  made.gate.group = setting.expert_group;
  made.gate.softmax = setting.softmax_gate;
  made.width = setting.width;
  made.shared = routed.placement.shared > 0;
  made.queries = a.queries;
  for (int rank = 0; rank < setting.moe.ranks; ++rank)
    made.kv_lens.push_back(attention_of(setting, static_cast<std::size_t>(rank)).kv_lens);
  return made;
}

reference::DispatchCase routed_case(std::uint64_t seed, const LayerSetting& setting,
                                    const reference::Draw& draw) {
  reference::DispatchCase made = make_moe_case(seed, setting.moe);
  made.drawn = draw;
  return made;
}

struct Rank {
  Rank(const operators::MlaSetting& setting, std::uint64_t seed)
      : attention(setting, seed), prolog(setting, seed, attention), output(setting, seed, attention) {}

  operators::MlaAttention attention;
  operators::MlaProlog prolog;
  operators::MlaOutput output;
  cm384_rows norm{};
  cm384_gemm product{};
  cm384_gate gate{};
  std::optional<operators::ExpertFfn> experts;
};

class LayerWithValues {
 public:
  LayerWithValues(const StudyContext& context, const LayerSetting& setting, const reference::Draw& draw)
      : setting_(setting),
        routed_(routed_case(context.seed, setting, draw)),
        layer_(case_of(setting, routed_)),
        session_(context, session_options(context, setting)),
        memory_(operators::memory_of(session_.runtime(), dies_of(context, setting))),
        dispatch_(routed_, setting.moe.cores, true),
        combine_(dispatch_, operators::CombineSetting{}) {
    dispatch_.place(memory_);
    combine_.place(memory_);
    for (std::size_t rank = 0; rank < memory_.size(); ++rank) place(rank);
  }

  // False: interrupted.
  bool run() {
    host::Runtime& runtime = session_.runtime();
    // Attention takes what it reads for its comparison when it is enqueued.
    for (std::size_t n = 0; n < ranks_.size(); ++n) ranks_[n].prolog.enqueue(stream(n));
    if (!runtime.wait()) return false;
    const std::uint32_t tokens = layer_.attention.tokens;
    for (std::size_t n = 0; n < ranks_.size(); ++n) {
      Rank& rank = ranks_[n];
      rank.attention.enqueue(stream(n));
      rank.output.enqueue(stream(n));
      launch(n, "add_rms_norm", memory_[n].put(rank.norm), vectors(tokens), npu::KernelType::aiv);
      launch(n, "gemm", memory_[n].put(rank.product), setting_.cores[1].count, npu::KernelType::aic);
      launch(n, layer_.gate.of_eight() ? "gate" : "gate_any", memory_[n].put(rank.gate), vectors(tokens),
             npu::KernelType::aiv);
      launch(n, dispatch_.kernel(), dispatch_.tasks()[n].arguments, dispatch_.cores(), npu::KernelType::aiv);
      if (rank.experts) rank.experts->enqueue(stream(n));
      launch(n, combine_.kernel(), combine_.tasks()[n].arguments, dispatch_.cores(), npu::KernelType::aiv);
    }
    return runtime.wait();
  }

  LayerExactness read(SimulatorCounts& counts) {
    LayerExactness made;
    std::vector<reference::LayerValues> values;
    for (std::size_t n = 0; n < ranks_.size(); ++n) {
      const Rank& rank = ranks_[n];
      for (const operators::KernelOperator* stage :
           {static_cast<const operators::KernelOperator*>(&rank.prolog),
            static_cast<const operators::KernelOperator*>(&rank.attention),
            static_cast<const operators::KernelOperator*>(&rank.output)}) {
        const std::string difference = stage->check();
        if (!difference.empty() && made.first_difference.empty())
          made.first_difference = fmt::format("rank {} {}: {}", n, stage->kernel(), difference);
      }
      values.push_back(values_of(n));
    }
    session_.count(counts);
    made.accuracy = reference::layer_accuracy(layer_, values);
    return made;
  }

 private:
  static std::vector<int> dies_of(const StudyContext& context, const LayerSetting& setting) {
    const hw::Topology& topology = context.machine.topology;
    return host::place_ranks(setting.moe.placement, setting.moe.ranks, topology.dies(),
                             topology.dies_per_node, context.seed);
  }
  static SessionOptions session_options(const StudyContext& context, const LayerSetting& setting) {
    SessionOptions options;
    options.dies = dies_of(context, setting);
    options.what = fmt::format("a layer with values, {} ranks", setting.moe.ranks);
    return options;
  }
  host::Stream stream(std::size_t rank) const {
    return host::Runtime::default_stream(dispatch_.tasks()[rank].die);
  }
  int vectors(std::uint32_t most) const {
    return std::min(static_cast<int>(most), 2 * setting_.cores[1].count);
  }
  void launch(std::size_t rank, const char* kernel, std::uint64_t arguments, int cores,
              npu::KernelType type) {
    npu::LaunchRequest request{session_.built_in(kernel), arguments, operators::cores_from(0, cores), type};
    request.graph = true;
    session_.runtime().launch(stream(rank), std::move(request));
  }
  template <class T>
  std::uint64_t place_values(std::size_t rank, const std::vector<T>& values) {
    const std::uint64_t at = memory_[rank].allocate_lines(values.size() * sizeof(T));
    session_.runtime().put(at, std::span<const T>(values));
    return at;
  }
  template <class T>
  std::vector<T> get(std::uint64_t at, std::size_t count) {
    return session_.runtime().get<T>(at, count);
  }

  void place(std::size_t n);
  void place_gate(std::size_t n, const cm384_dispatch& d, const cm384_combine& c);
  void place_experts(std::size_t n, const operators::Site& site);
  reference::LayerValues values_of(std::size_t n);
  std::vector<std::uint16_t> cache_of(const Rank& rank, std::size_t n);

  const LayerSetting& setting_;
  reference::DispatchCase routed_;
  reference::LayerCase layer_;
  Session session_;
  RankMemory memory_;
  operators::Dispatch dispatch_;
  operators::Combine combine_;
  std::deque<Rank> ranks_;
};

void LayerWithValues::place(std::size_t n) {
  const operators::MlaSetting attention = attention_of(setting_, n);
  const auto load = [this](std::string_view kernel) { return session_.built_in(kernel); };
  const operators::Site site{memory_[n], load, setting_.cores[0].groups(), true};
  Rank& rank = ranks_.emplace_back(attention, routed_.seed + n);
  rank.attention.follows_prolog();
  rank.attention.read(reference::rounded_cache(layer_, n, rank.attention.page_table()), layer_.score_scale());
  rank.attention.place(site);
  rank.prolog.read(reference::rounded_prolog(layer_, n));
  rank.prolog.place(site);
  rank.output.read(reference::rounded_output(layer_));
  rank.output.place(site);
  const cm384_dispatch& d = dispatch_.arguments(static_cast<int>(n));
  const cm384_combine& c = std::as_const(combine_).arguments(static_cast<int>(n));
  const std::uint32_t hidden = layer_.attention.hidden;
  const std::vector<std::uint16_t> ones(hidden, reference::to_bf16(1));
  rank.norm = {{rank.output.arguments().out.c, rank.prolog.arguments().x, place_values(n, ones)},
               {d.x, c.shared_x},
               layer_.attention.tokens,
               hidden,
               0,
               1,
               0,
               static_cast<float>(kEpsilon)};
  place_gate(n, d, c);
  if (d.own_experts > 0)
    place_experts(n, {memory_[n], load, operators::cores_from(0, setting_.cores[1].count), true});
}

void LayerWithValues::place_gate(std::size_t n, const cm384_dispatch& d, const cm384_combine& c) {
  const reference::GateCase& gate = layer_.gate;
  const std::vector<std::uint32_t> rows{gate.tokens};
  const operators::GemmShape shape{rows, gate.experts, layer_.attention.hidden, CM384_GEMM_BF16,
                                   static_cast<std::uint32_t>(setting_.cores[1].count)};
  cm384_gemm& product = ranks_[n].product;
  product = operators::place_gemm(memory_[n], shape, operators::checked_tiling(shape), false, true);
  product.type = CM384_GEMM_BF16_PARTS;  // sums stay FP32
  product.a = d.x;
  product.c_pitch = gate.experts * 4ull;
  product.c = memory_[n].allocate_lines(gate.tokens * product.c_pitch);
  product.group_rows = place_values(n, rows);
  const std::vector<std::uint16_t> weights = reference::rounded_gate(layer_);
  operators::write_b(session_.runtime(), product, std::as_bytes(std::span(weights)));
  cm384_gate& a = ranks_[n].gate;
  a = {product.c,   place_values(n, std::vector<float>(gate.experts)),
       c.scales,    d.expert_ids,
       gate.tokens, gate.experts,
       0,           static_cast<float>(gate.scale),
       gate.chosen, gate.group,
       0,           0};
  if (gate.group > 0) a.groups = gate.experts / gate.group;
  a.top_groups = std::min(gate.top_groups, a.groups);
  if (gate.softmax) a.flags = CM384_GATE_SOFTMAX;
}

void LayerWithValues::place_experts(std::size_t n, const operators::Site& site) {
  const int rank = static_cast<int>(n);
  const cm384_dispatch& d = dispatch_.arguments(rank);
  operators::ExpertFfnSetting experts;
  const std::uint64_t rows = routed_.tokens() * (d.top_k + d.shared);
  experts.tile_rows = static_cast<std::uint32_t>((rows + d.slots - 1) / d.slots);
  experts.expert_rows.assign(d.own_experts, experts.tile_rows);
  experts.hidden = d.hidden;
  experts.width = setting_.width;
  operators::ExpertFfn& network = ranks_[n].experts.emplace(experts);
  network.stand_between(d, std::as_const(combine_).arguments(rank));
  network.place(site);
  network.launch_in_graph(true);
  for (const cm384_expert_slot& slot : routed_.placement.slots) {
    if (slot.rank == n)
      operators::copy_expert_weights(
          session_.runtime(), network.arguments(), slot.local,
          reference::network_of(routed_, static_cast<int>(slot.expert), setting_.width));
  }
}

// Of each sequence the tokens that its last query sees.
std::vector<std::uint16_t> LayerWithValues::cache_of(const Rank& rank, std::size_t n) {
  using reference::MlaLayout;
  const std::vector<std::uint32_t>& table = rank.attention.page_table();
  const auto pages = get<std::uint16_t>(rank.attention.arguments().kv,
                                        reference::pages_of(table) * MlaLayout::kPageElements);
  const std::size_t width = rank.attention.arguments().table_width;
  std::vector<std::uint16_t> cache;
  for (std::size_t sequence = 0; sequence < layer_.kv_lens[n].size(); ++sequence) {
    for (std::uint32_t t = 0; t < layer_.kv_lens[n][sequence] + layer_.queries - 1; ++t) {
      const std::uint64_t page =
          std::uint64_t{table[sequence * width + t / MlaLayout::kPageTokens]} * MlaLayout::kPageElements;
      for (std::uint32_t c = 0; c < MlaLayout::kWidth; ++c)
        cache.push_back(pages[page + MlaLayout::in_page(t % MlaLayout::kPageTokens, c)]);
    }
  }
  return cache;
}

reference::LayerValues LayerWithValues::values_of(std::size_t n) {
  const Rank& rank = ranks_[n];
  const int number = static_cast<int>(n);
  const cm384_dispatch& d = dispatch_.arguments(number);
  const cm384_combine& c = std::as_const(combine_).arguments(number);
  const std::size_t tokens = layer_.attention.tokens, heads = layer_.attention.heads,
                    elements = tokens * layer_.attention.hidden, chosen = tokens * layer_.gate.chosen;
  reference::LayerValues v;
  v.x = get<std::uint16_t>(rank.prolog.arguments().x, elements);
  v.queries = get<std::uint16_t>(rank.attention.arguments().q, tokens * heads * CM384_MLA_WIDTH);
  v.cache = cache_of(rank, n);
  v.latents = get<std::uint16_t>(rank.attention.arguments().out, tokens * heads * CM384_MLA_LATENT);
  v.output = get<std::uint16_t>(rank.output.arguments().out.c, elements);
  v.sums = get<std::uint16_t>(c.shared_x, elements);
  v.normed = get<std::uint16_t>(d.x, elements);
  v.logits = get<float>(rank.gate.logits, tokens * layer_.gate.experts);
  v.weights = get<float>(c.scales, chosen);
  v.ids = get<std::int32_t>(d.expert_ids, chosen);
  const auto counts = get<std::int64_t>(d.expert_token_nums, d.own_experts);
  std::size_t rows = 0;
  for (const std::int64_t count : counts) rows += static_cast<std::size_t>(count);
  v.rows = get<std::int8_t>(d.expand_x, rows * d.hidden);
  v.scales = get<float>(d.expand_scales, rows);
  v.triples = get<std::int32_t>(d.expand_triples, rows * 3);
  v.expert_rows = get<std::uint16_t>(c.expert_x, rows * d.hidden);
  v.out = get<std::uint16_t>(c.x, elements);
  return v;
}

}  // namespace

void check_values(const LayerSetting& setting) {
  const auto refuse = [](const std::string& what) { throw InputError("run layer: --accuracy: " + what); };
  const AttentionSetting& a = setting.attention;
  if (a.kv_heads != 0 || a.chosen != 0)
    refuse("allowed: attention over a latent, without --kv-heads and --sparse");
  if (setting.dense_width > 0) refuse("allowed: layers with experts");
  if (setting.tensor > 1 || setting.two_kinds()) refuse("allowed: --attention-tp 1, without --expert-ranks");
  if (setting.bf16_networks || setting.int4_networks) refuse("allowed: --networks int8");
  if (setting.moe.top_k % 8 != 0 || setting.moe.experts % 64 != 0)
    refuse("allowed: multiples of 8 --experts-per-token and of 64 --experts");
  const double hidden = a.hidden, heads = a.heads;
  const double attention =
      hidden * (a.q_lora + 576.0) + heads * (192.0 * a.q_lora + 256.0 * 512 + 128 * hidden);
  const double experts = 3.0 * setting.moe.experts * hidden * setting.width;
  const double all = setting.moe.ranks * attention + experts;
  if (all > kMostWeights)
    refuse(
        fmt::format("{:.1f} billion weights on all ranks; allowed: at most {:.0f}: smaller --hidden, "
                    "--heads, --width or --experts",
                    all / 1e9, kMostWeights / 1e9));
}

std::optional<LayerExactness> measure_exactness(const StudyContext& context, const LayerSetting& setting,
                                                const reference::Draw& draw, SimulatorCounts& counts) {
  LayerWithValues layer(context, setting, draw);
  if (!layer.run()) return {};
  return layer.read(counts);
}

}  // namespace cm384::studies
