// A whole decode layer on eight dies in payload mode full, each kernel on what the one before left: prolog,
// attention, output projection, residual and norm, the gate's product and choice, dispatch, experts, combine
// with the residual. What integers decide (experts, row counts, quantised rows) and all behind it is the
// host's bit for bit; what stands before it within bounds of sums in double precision, which each comparison
// states.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <optional>

#include "firmware/abi/rows.h"
#include "firmware/abi/tokens.h"
#include "workloads/operators/combine/combine.h"
#include "workloads/operators/ffn/expert_ffn.h"
#include "workloads/operators/gemm/memory.h"
#include "workloads/operators/mla/projections.h"
#include "workloads/operators/reference/expert_networks.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/rows_reference.h"
#include "workloads/operators/reference/token_operators.h"
#include "workloads/operators/reference/values.h"

namespace cm384::testing::whole_layer_test {
namespace {

using operators::RankMemory;
using reference::DispatchCase;
using Floats = std::vector<float>;
using Halves = std::vector<std::uint16_t>;

constexpr int kRanks = 8, kExperts = 64, kTopK = CM384_GATE_TOP_K, kCores = 16;
constexpr std::uint32_t kHidden = 256, kWidth = 64;
constexpr double kEpsilon = 1e-6;

operators::MlaSetting attention_setting(std::size_t rank) {
  operators::MlaSetting setting;
  setting.kv_lens = {20 + static_cast<std::uint32_t>(rank), 129, 64};
  setting.queries = 2;
  setting.heads = 16;
  setting.hidden = kHidden;
  setting.q_lora = 64;
  setting.int8 = true;
  return setting;
}
const std::uint32_t kTokens = attention_setting(0).tokens();

// The weights that all ranks share, and what a rank reads and leaves between its kernels.
struct Gate {
  Halves gamma = reference::draw_bf16(7, 1, kHidden), weights = reference::draw_bf16(7, 2, kExperts*kHidden);
  Floats bias = reference::draw_floats(7, 3, kExperts, -0.1f, 0.1f);
};
struct Rank {
  Rank(std::size_t number, std::uint64_t seed)
      : attention(attention_setting(number), seed),
        prolog(attention_setting(number), seed, attention),
        output(attention_setting(number), seed, attention) {}

  operators::MlaAttention attention;
  operators::MlaProlog prolog;
  operators::MlaOutput output;
  std::optional<operators::ExpertFfn> experts;
  cm384_rows norm{};
  cm384_gemm product{};
  cm384_gate gate{};
};

class Layer {
 public:
  Layer()
      : memory_(operators::memory_of(runtime_, options().dies)),
        case_(routing()),
        dispatch_(case_, kCores, true),
        combine_(dispatch_, operators::CombineSetting{}) {
    dispatch_.place(memory_);
    combine_.place(memory_);
    for (std::size_t rank = 0; rank < memory_.size(); ++rank) place(rank);
  }

  // False: interrupted.
  bool run() {
    // What attention reads is kept for its comparison when it is enqueued.
    for (std::size_t n = 0; n < ranks_.size(); ++n) ranks_[n].prolog.enqueue(stream(n));
    if (!runtime_.wait()) return false;
    for (std::size_t n = 0; n < ranks_.size(); ++n) {
      Rank& rank = ranks_[n];
      rank.attention.enqueue(stream(n));
      rank.output.enqueue(stream(n));
      launch(n, "add_rms_norm", memory_[n].put(rank.norm), kTokens, npu::KernelType::aiv);
      launch(n, "gemm", memory_[n].put(rank.product), 2, npu::KernelType::aic);
      launch(n, "gate", memory_[n].put(rank.gate), kTokens, npu::KernelType::aiv);
      launch(n, "dispatch", dispatch_.tasks()[n].arguments, kCores, npu::KernelType::aiv);
      rank.experts->enqueue(stream(n));
      launch(n, "combine", combine_.tasks()[n].arguments, kCores, npu::KernelType::aiv);
    }
    return runtime_.wait();
  }

  const Rank& rank(std::size_t number) const { return ranks_[number]; }
  const Gate& gate() const { return gate_; }
  // With the experts that the firmware has chosen.
  DispatchCase chosen() const {
    DispatchCase made = case_;
    for (std::size_t n = 0; n < ranks_.size(); ++n)
      made.expert_ids[n] = get<std::int32_t>(dispatch_.arguments(static_cast<int>(n)).expert_ids,
                                             std::size_t{kTokens} * kTopK);
    return made;
  }
  const cm384_dispatch& dispatched(int rank) const { return dispatch_.arguments(rank); }
  const cm384_combine& combined(int rank) const { return std::as_const(combine_).arguments(rank); }
  template <class T>
  std::vector<T> get(std::uint64_t at, std::size_t count) const {
    return runtime_.get<T>(at, count);
  }

 private:
  static supernode::SupernodeOptions options() {
    supernode::SupernodeOptions made;
    for (int die = 0; die < kRanks; ++die) made.dies.push_back(die);
    made.die.aiv.check_hazards = true;
    return made;
  }
  // Any experts: the gate writes over them.
  static DispatchCase routing() {
    DispatchCase made;
    made.placement = reference::place_experts(kRanks, kExperts, 1);
    made.batch = static_cast<int>(kTokens);
    made.top_k = kTopK;
    made.hidden = static_cast<int>(kHidden);
    std::vector<std::int32_t> ids;
    for (std::uint32_t n = 0; n < kTokens * kTopK; ++n) ids.push_back(static_cast<std::int32_t>(n % kTopK));
    made.expert_ids.assign(kRanks, ids);
    return made;
  }
  static host::Stream stream(std::size_t rank) {
    return host::Runtime::default_stream(static_cast<int>(rank));
  }
  void launch(std::size_t rank, const char* kernel, std::uint64_t arguments, std::uint32_t cores,
              npu::KernelType type) {
    npu::LaunchRequest request{operators::load_built_in(runtime_, kernel), arguments,
                               operators::cores_from(0, static_cast<int>(cores)), type};
    request.graph = true;
    runtime_.launch(stream(rank), std::move(request));
  }
  template <class T>
  std::uint64_t put(std::size_t rank, const std::vector<T>& values) {
    const std::uint64_t at = memory_[rank].allocate_lines(values.size() * sizeof(T));
    runtime_.put(at, std::span<const T>(values));
    return at;
  }

  void place(std::size_t n) {
    host::DeviceMemory& memory = memory_[n];
    const int number = static_cast<int>(n);
    const operators::Site site{
        memory, [this](std::string_view kernel) { return operators::load_built_in(runtime_, kernel); },
        operators::cores_from(0, 4), true};
    Rank& rank = ranks_.emplace_back(n, 100 + n);
    rank.attention.follows_prolog();
    rank.attention.place(site);
    rank.prolog.place(site);
    rank.output.place(site);
    const cm384_dispatch& d = dispatch_.arguments(number);
    const cm384_combine& c = combined(number);
    rank.norm = {{rank.output.arguments().out.c, rank.prolog.arguments().x, put(n, gate_.gamma)},
                 {d.x, c.shared_x},
                 kTokens,
                 kHidden,
                 0,
                 1,
                 0,
                 static_cast<float>(kEpsilon)};
    const std::vector<std::uint32_t> rows{kTokens};
    const operators::GemmShape shape{rows, kExperts, kHidden, CM384_GEMM_BF16, 2};
    rank.product = operators::place_gemm(memory, shape, operators::checked_tiling(shape), false, true);
    rank.product.type = CM384_GEMM_BF16_PARTS;  // sums stay FP32
    rank.product.a = d.x;
    rank.product.c_pitch = kExperts * 4;
    rank.product.c = memory.allocate_lines(kTokens * rank.product.c_pitch);
    rank.product.group_rows = put(n, rows);
    operators::write_b(runtime_, rank.product, std::as_bytes(std::span(gate_.weights)));
    rank.gate = {
        rank.product.c, put(n, gate_.bias), c.scales, d.expert_ids, kTokens, kExperts, 1, 2.5f, 0, 0, 0, 0};
    operators::ExpertFfnSetting experts;
    experts.tile_rows = 8;
    experts.expert_rows.assign(d.own_experts, experts.tile_rows);
    experts.hidden = kHidden;
    experts.width = kWidth;
    rank.experts.emplace(experts).stand_between(d, c);
    rank.experts->place(site);
    rank.experts->launch_in_graph(true);
    put_networks(number);
  }
  void put_networks(int rank) {
    const auto put = [&](cm384_gemm gemm, std::uint32_t local, std::span<const std::byte> b,
                         const Floats& scales) {
      gemm.groups = 1;
      gemm.b += local * std::uint64_t{gemm.n} * gemm.k;
      operators::write_b(runtime_, gemm, b);
      runtime_.put(gemm.channel_scales + local * std::uint64_t{gemm.n} * 4, std::span<const float>(scales));
    };
    const cm384_ffn& ffn = ranks_.back().experts->arguments();
    for (const cm384_expert_slot& slot : case_.placement.slots) {
      if (slot.rank != static_cast<std::uint32_t>(rank)) continue;
      const auto weights =
          reference::make_network_weights(case_.seed, static_cast<int>(slot.expert), kHidden, kWidth);
      put(ffn.gate_up, slot.local, weights.gate_up, weights.gate_up_scales);
      put(ffn.down, slot.local, weights.down, weights.down_scales);
    }
  }

  hw::Machine parameters_ = hw::load_machine(std::string(hw::kDefaultMachine), {});
  supernode::Supernode machine_{parameters_, options()};
  host::Runtime runtime_{machine_};
  RankMemory memory_;
  Gate gate_;
  DispatchCase case_;
  operators::Dispatch dispatch_;
  operators::Combine combine_;
  std::deque<Rank> ranks_;
};

// Sums of products of BF16 in FP32: within k 2^-24 of the sum of their magnitudes.
void expect_logits(const Layer& layer, const Halves& normed, const Floats& logits) {
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t e = 0; e < kExperts; ++e) {
      double sum = 0, magnitude = 0;
      for (std::size_t k = 0; k < kHidden; ++k) {
        const double product = reference::of_bf16(normed[t * kHidden + k]) *
                               reference::of_bf16(layer.gate().weights[e * kHidden + k]);
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(logits[t * kExperts + e], sum, magnitude * kHidden * 0x1p-24) << "token " << t << " " << e;
    }
  }
}

// What all tokens of a rank come to behind the gate, bit for bit.
void expect_combined(const Layer& layer, const DispatchCase& chosen, int rank, const Halves& normed,
                     const std::map<int, reference::NetworkWeights>& networks) {
  const cm384_combine& c = layer.combined(rank);
  const auto weights = layer.get<float>(c.scales, std::size_t{kTokens} * kTopK);
  const auto residual = layer.get<std::uint16_t>(c.shared_x, std::size_t{kTokens} * kHidden),
             got = layer.get<std::uint16_t>(c.x, std::size_t{kTokens} * kHidden);
  std::vector<std::int8_t> quantised(kHidden);
  for (int token = 0; token < static_cast<int>(kTokens); ++token) {
    const std::size_t first = static_cast<std::size_t>(token) * kHidden;
    const float scale = reference::quantise_row(std::span(normed).subspan(first, kHidden), quantised);
    Floats sum(kHidden);
    for (int k = 0; k <= kTopK; ++k) {
      const int expert = reference::expert_of(chosen, {rank, token, k});
      const Halves row = reference::network_output(networks.at(expert), quantised, scale);
      const float weight = k < kTopK ? weights[static_cast<std::size_t>(token * kTopK + k)] : 1;
      for (std::size_t i = 0; i < kHidden; ++i) sum[i] += reference::from_bf16(row[i]) * weight;
    }
    for (std::size_t i = 0; i < kHidden; ++i)
      ASSERT_EQ(got[first + i], reference::to_bf16(sum[i] + reference::from_bf16(residual[first + i])))
          << "rank " << rank << " token " << token << " element " << i;
  }
}

void expect_routed(const Layer& layer, const DispatchCase& chosen, const std::vector<Halves>& normed) {
  const reference::DispatchReference expected(chosen);
  std::vector<std::int8_t> wanted(kHidden);
  for (int rank = 0; rank < kRanks; ++rank) {
    const cm384_dispatch& d = layer.dispatched(rank);
    const auto& rows = expected.rank(rank).rows;
    EXPECT_EQ(
        expected.compare_plain(rank, layer.get<std::int32_t>(d.expand_triples, rows.size() * 3),
                               layer.get<std::int32_t>(d.send_counts, std::size_t{d.own_experts} * d.ranks),
                               layer.get<std::int64_t>(d.expert_token_nums, d.own_experts)),
        "");
    const auto got = layer.get<std::int8_t>(d.expand_x, rows.size() * kHidden);
    const auto scales = layer.get<float>(d.expand_scales, rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto from = std::span(normed[static_cast<std::size_t>(rows[i].source)])
                            .subspan(static_cast<std::size_t>(rows[i].token) * kHidden, kHidden);
      ASSERT_EQ(scales[i], reference::quantise_row(from, wanted)) << "rank " << rank << " row " << i;
      ASSERT_TRUE(
          std::equal(wanted.begin(), wanted.end(), got.begin() + static_cast<std::ptrdiff_t>(i * kHidden)))
          << "rank " << rank << " row " << i;
    }
  }
}

TEST(WholeLayer, IsTheReferencesKernelAfterKernel) {
  Layer layer;
  ASSERT_TRUE(layer.run());
  const DispatchCase chosen = layer.chosen();
  const std::size_t elements = std::size_t{kTokens} * kHidden;
  std::map<int, reference::NetworkWeights> networks;
  for (int expert = 0; expert <= kExperts; ++expert)
    networks[expert] = reference::make_network_weights(chosen.seed, expert, kHidden, kWidth);
  std::vector<Halves> normed;
  for (std::size_t n = 0; n < kRanks; ++n) {
    const Rank& rank = layer.rank(n);
    EXPECT_EQ(rank.prolog.check(), "") << "rank " << n;
    EXPECT_EQ(rank.attention.check(), "") << "rank " << n;
    EXPECT_EQ(rank.output.check(), "") << "rank " << n;
    reference::RowCase norm{reference::RowOperation::rms_norm, kTokens, kHidden, kEpsilon};
    const reference::RowInputs in{layer.get<std::uint16_t>(rank.norm.in[0], elements),
                                  layer.get<std::uint16_t>(rank.norm.in[1], elements),
                                  layer.gate().gamma,
                                  {},
                                  {}};
    reference::RowOutputs out;
    out.values = layer.get<std::uint16_t>(rank.norm.out[0], elements);
    out.sums = layer.get<std::uint16_t>(rank.norm.out[1], elements);
    EXPECT_EQ(reference::compare_rows(norm, in, out), "") << "rank " << n;
    const auto logits = layer.get<float>(rank.gate.logits, std::size_t{kTokens} * kExperts);
    expect_logits(layer, out.values, logits);
    const reference::GateCase gate{kTokens, kExperts, 1};
    EXPECT_EQ(reference::compare_gate(gate, {logits, layer.gate().bias, kExperts},
                                      layer.get<float>(rank.gate.weights, std::size_t{kTokens} * kTopK),
                                      chosen.expert_ids[n]),
              "")
        << "rank " << n;
    normed.push_back(out.values);
  }
  expect_routed(layer, chosen, normed);
  for (int rank = 0; rank < kRanks; ++rank)
    expect_combined(layer, chosen, rank, normed[static_cast<std::size_t>(rank)], networks);
}

}  // namespace
}  // namespace cm384::testing::whole_layer_test
