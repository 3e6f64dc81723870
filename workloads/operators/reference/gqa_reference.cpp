#include "workloads/operators/reference/gqa_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "traces/random.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

// A page holds 128 tokens; of each KV head columns of 16 elements, each of all tokens (NZ).
constexpr std::uint32_t kPageTokens = 128;

// Of element `channel` of a KV head of a token, in the pages of keys or of values.
std::size_t place_of(const GqaCase& gqa, const GqaInputs& in, std::uint32_t batch, std::uint32_t kv_head,
                     std::uint32_t token, std::uint32_t channel) {
  const std::size_t page = in.page_table[batch * gqa.table_width() + token / kPageTokens];
  const std::size_t column = (std::size_t{kv_head} * gqa.width + channel) / 16;
  return page * kPageTokens * gqa.kv_heads * gqa.width + (column * kPageTokens + token % kPageTokens) * 16 +
         channel % 16;
}

// One query head against tokens [first, end) of its KV head.
std::string compare_query(const GqaCase& gqa, const GqaInputs& in, std::uint32_t batch, std::uint32_t head,
                          std::uint32_t first, std::uint32_t end, std::span<const std::uint16_t> q,
                          std::span<const std::uint16_t> out) {
  const std::uint32_t kv_head = head / (gqa.heads / gqa.kv_heads);
  const auto element = [&](const std::vector<std::uint16_t>& pages, std::uint32_t token, std::uint32_t c) {
    return of_bf16(pages[place_of(gqa, in, batch, kv_head, token, c)]);
  };
  std::vector<double> weights;
  for (std::uint32_t t = first; t < end; ++t) {
    double score = 0;
    for (std::uint32_t c = 0; c < gqa.width; ++c) score += of_bf16(q[c]) * element(in.k, t, c);
    weights.push_back(score * double{gqa.scale});
  }
  // The score that no value belongs to is the last one.
  if (gqa.sinks) weights.push_back(in.sinks[head]);
  const double largest = *std::ranges::max_element(weights);
  for (double& w : weights) w = std::exp(w - largest);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::uint32_t c = 0; c < gqa.width; ++c) {
    double sum = 0, magnitude = 0;
    for (std::uint32_t t = first; t < end; ++t) {
      const double weighted = weights[t - first] * element(in.v, t, c);
      sum += weighted;
      magnitude += std::fabs(weighted);
    }
    const double wanted = sum / total, got = of_bf16(out[c]);
    const double bound = (std::fabs(wanted) + magnitude / total) * 0x1p-8;
    if (!(std::fabs(got - wanted) <= bound))
      return fmt::format("element {}: {} instead of {}, allowed {}", c, got, wanted, bound);
  }
  return {};
}

}  // namespace

std::uint32_t GqaCase::table_width() const {
  const std::uint32_t longest = *std::ranges::max_element(kv_lens) + queries - 1;
  return (longest + kPageTokens - 1) / kPageTokens;
}

std::vector<std::uint32_t> make_gqa_page_table(const GqaCase& gqa) {
  std::vector<std::uint32_t> table(std::size_t{gqa.batch()} * gqa.table_width());
  std::iota(table.begin(), table.end(), 0u);
  traces::Random random(gqa.seed, 7);
  for (std::size_t i = table.size(); i > 1; --i) std::swap(table[i - 1], table[random.below(i)]);
  return table;
}

GqaInputs make_gqa_inputs(const GqaCase& gqa) {
  const std::vector<std::uint32_t> table = make_gqa_page_table(gqa);
  const std::uint64_t cached = table.size() * kPageTokens * gqa.kv_heads * gqa.width;
  return {draw_bf16(gqa.seed, 8, std::uint64_t{gqa.batch()} * gqa.queries * gqa.heads * gqa.width),
          draw_bf16(gqa.seed, 9, cached), draw_bf16(gqa.seed, 10, cached), table,
          draw_sinks(gqa.seed, gqa.sinks ? gqa.heads : 0)};
}

std::string compare_gqa(const GqaCase& gqa, const GqaInputs& in, std::span<const std::uint16_t> out) {
  for (std::uint32_t b = 0; b < gqa.batch(); ++b) {
    for (std::uint32_t query = 0; query < gqa.queries; ++query) {
      const std::uint32_t end = gqa.kv_lens[b] + query;
      const std::uint32_t first = gqa.window > 0 && end > gqa.window ? end - gqa.window : 0;
      for (std::uint32_t head = 0; head < gqa.heads; ++head) {
        const std::size_t row = ((std::size_t{b} * gqa.queries + query) * gqa.heads + head) * gqa.width;
        const std::string difference =
            compare_query(gqa, in, b, head, first, end, std::span(in.q).subspan(row, gqa.width),
                          out.subspan(row, gqa.width));
        if (!difference.empty())
          return fmt::format("sequence {} query {} head {} {}", b, query, head, difference);
      }
    }
  }
  return {};
}

GqaPrologInputs make_gqa_prolog_inputs(const GqaProjectionCase& layer,
                                       std::span<const std::uint32_t> positions) {
  const auto random = [&](std::uint64_t stream) { return traces::Random(layer.seed, stream); };
  return {draw_elements(random(20), std::uint64_t{layer.tokens} * layer.hidden),
          draw_elements(random(21), layer.hidden),
          draw_elements(random(22), layer.norms ? layer.width : 0),
          draw_elements(random(23), layer.norms ? layer.width : 0),
          draw_weights(random(24), std::uint64_t{layer.heads + 2 * layer.kv_heads} * layer.width,
                       layer.hidden, layer.int8),
          make_rope(positions, layer.width)};
}

std::string compare_gqa_prolog(const GqaProjectionCase& layer, const GqaPrologInputs& in, std::uint32_t token,
                               const GqaPrologOutput& out) {
  const std::size_t hidden = layer.hidden, width = layer.width;
  const auto angles = std::span(in.rope).subspan(token * 2 * width, 2 * width);
  const Estimates x = exact(std::span(in.x).subspan(token * hidden, hidden));
  const Estimates all = round_all(multiply(to_project(norm(x, in.gamma_x), layer.int8), in.qkv, 0,
                                           (layer.heads + 2 * layer.kv_heads) * width));
  const auto head_of = [&](std::size_t head) { return std::span(all).subspan(head * width, width); };
  const auto turned = [&](std::size_t head, const std::vector<std::uint16_t>& gamma) {
    return layer.norms ? rotate(norm(head_of(head), gamma), angles) : rotate(head_of(head), angles);
  };
  for (std::size_t head = 0; head < layer.heads; ++head) {
    const std::string difference =
        compare_estimates("query", turned(head, in.gamma_q), out.queries.subspan(head * width, width));
    if (!difference.empty()) return fmt::format("head {} {}", head, difference);
  }
  for (std::size_t head = 0; head < layer.kv_heads; ++head) {
    std::string difference = compare_estimates("key", turned(layer.heads + head, in.gamma_k),
                                               out.key.subspan(head * width, width));
    if (difference.empty())
      difference = compare_estimates("value", head_of(layer.heads + layer.kv_heads + head),
                                     out.value.subspan(head * width, width));
    if (!difference.empty()) return fmt::format("KV head {} {}", head, difference);
  }
  return {};
}

ProjectionWeights make_gqa_output_weights(const GqaProjectionCase& layer) {
  return draw_weights(traces::Random(layer.seed, 28), layer.hidden, layer.heads * layer.width, layer.int8);
}

std::string compare_gqa_output(const GqaProjectionCase& layer, const ProjectionWeights& weights,
                               std::span<const std::uint16_t> values, std::span<const std::uint16_t> out) {
  Estimates x = exact(values);
  if (layer.int8) x = to_project(std::move(x), true);
  return compare_estimates("output", multiply(x, weights, 0, layer.hidden), out);
}

}  // namespace cm384::reference
