#include "workloads/operators/reference/expert_accuracy.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "workloads/operators/reference/both_arithmetics.h"
#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/expert_networks.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr std::uint64_t kGateSeed = 0x6a7e;

// The experts with the largest sums of products, in order of their numbers.
std::vector<std::size_t> choose(const std::vector<double>& x, std::span<const float> gate, int top_k) {
  std::vector<double> logits(gate.size() / x.size());
  for (std::size_t e = 0; e < logits.size(); ++e)
    logits[e] = std::inner_product(x.begin(), x.end(), &gate[e * x.size()], 0.0);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t one, std::size_t other) { return logits[one] > logits[other]; });
  order.resize(index(top_k));
  std::ranges::sort(order);
  return order;
}

void add_weighted(Both& sum, const Both& row, double weight) {
  for (std::size_t i = 0; i < sum.exact.size(); ++i) {
    sum.exact[i] += row.exact[i] * weight;
    sum.bf16[i] += row.bf16[i] * weight;
  }
}

}  // namespace

MoeAccuracy moe_accuracy(const DispatchCase& dispatch, std::uint32_t width, bool shared_output,
                         const std::vector<MoeValues>& got) {
  const DispatchReference routed(dispatch);
  const CombineReference combine(dispatch, shared_output);
  const std::size_t hidden = index(dispatch.hidden);
  const int ranks = dispatch.placement.ranks;
  StageAccuracy sent{"dispatch"}, made{"experts"}, combined{"combine"};
  Crest crest;
  std::vector<std::vector<Both>> sums;
  std::vector<std::vector<float>> weights;
  for (int rank = 0; rank < ranks; ++rank) {
    sums.emplace_back(index(dispatch.tokens_of(rank)), Both(hidden));
    weights.push_back(combine.scales(rank));
  }
  // By expert, so that each network is drawn once.
  std::vector<std::vector<std::pair<int, std::size_t>>> rows_of(
      index(dispatch.placement.experts + dispatch.placement.shared));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& rows = routed.rank(rank).rows;
    for (std::size_t n = 0; n < rows.size(); ++n)
      rows_of[index(expert_of(dispatch, rows[n]))].emplace_back(rank, n);
  }
  for (std::size_t expert = 0; expert < rows_of.size(); ++expert) {
    if (rows_of[expert].empty()) continue;
    const DrawnNetwork network =
        draw_network(dispatch.seed, static_cast<int>(expert), static_cast<std::uint32_t>(hidden), width);
    const BothWeights gate_up(network.gate_up, 2 * std::size_t{width}), down(network.down, hidden);
    for (const auto& [rank, n] : rows_of[expert]) {
      const ArrivedRow& row = routed.rank(rank).rows[n];
      const MoeValues& here = got[index(rank)];
      const std::vector<float> drawn = dispatch.drawn_row(row.source, row.token);
      crest.add(drawn);
      const Both token{std::span<const float>(drawn)};
      const Both out = down.multiply(activate(gate_up.multiply(token)));
      for (std::size_t i = 0; i < hidden; ++i) {
        compare_both(sent, token, i, here.rows[n * hidden + i] * double{here.scales[n]});
        compare_both(made, out, i, of_bf16(here.expert_rows[n * hidden + i]));
      }
      const double weight = row.k < dispatch.top_k
                                ? weights[index(row.source)][index(row.token * dispatch.top_k + row.k)]
                                : 1.0;
      add_weighted(sums[index(row.source)][index(row.token)], out, weight);
    }
  }
  const auto gate =
      draw_rows({}, dispatch.seed ^ kGateSeed, 0, static_cast<std::uint64_t>(dispatch.placement.experts),
                static_cast<std::uint32_t>(hidden));
  std::vector<std::uint16_t> shared(hidden);
  double rerouted = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int token = 0; token < dispatch.tokens_of(rank); ++token) {
      Both& sum = sums[index(rank)][index(token)];
      if (shared_output) {
        combine.shared_row(rank, token, shared);
        Both own(hidden);
        std::ranges::transform(shared, own.exact.begin(), of_bf16);
        own.bf16 = own.exact;
        add_weighted(sum, own, 1);
      }
      std::ranges::transform(sum.bf16, sum.bf16.begin(), rounded_to_bf16);
      std::vector<double> out(hidden);
      for (std::size_t i = 0; i < hidden; ++i) {
        out[i] = of_bf16(got[index(rank)].out[index(token) * hidden + i]);
        compare_both(combined, sum, i, out[i]);
      }
      if (choose(out, gate, dispatch.top_k) != choose(sum.exact, gate, dispatch.top_k)) ++rerouted;
    }
  }
  sent.crest = crest.value();
  return {{sent, made, combined}, rerouted / static_cast<double>(dispatch.tokens())};
}

}  // namespace cm384::reference
