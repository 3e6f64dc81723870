#include "workloads/operators/reference/attention_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

// Keys and values of a head of a sequence, and its queries, as numbers.
struct Head {
  std::vector<double> q, k, v;
  std::vector<double> sink;  // at most one
};

Head head_of(const AttentionCase& c, const AttentionInputs& in, std::uint32_t sequence, std::uint32_t head) {
  const auto take = [&](const std::vector<std::uint16_t>& from, std::uint32_t width, std::uint32_t heads,
                        std::uint32_t own) {
    std::vector<double> made;
    for (std::uint32_t t = 0; t < c.length; ++t) {
      const std::uint64_t row = (std::uint64_t{sequence} * c.length + t) * heads + own;
      for (std::uint32_t e = 0; e < width; ++e) made.push_back(of_bf16(from[row * width + e]));
    }
    return made;
  };
  const std::uint32_t shared = head / (c.heads / c.kv());
  return {take(in.q, c.key(), c.heads, head), take(in.k, c.key(), c.kv(), shared),
          take(in.v, c.value(), c.kv(), shared),
          c.sinks ? std::vector<double>{double{in.sinks[head]}} : std::vector<double>{}};
}

// What a token's row must be, and how far each element may be off.
void row_of(const AttentionCase& c, const Head& head, std::uint32_t token, std::span<double> wanted,
            std::span<double> bound) {
  const std::uint32_t first = c.window > 0 && token + 1 > c.window ? token + 1 - c.window : 0;
  const std::uint32_t key = c.key(), value = c.value();
  const std::uint32_t end = c.causal ? token + 1 : c.length;
  std::vector<double> weights(end - first);
  for (std::uint32_t t = first; t < end; ++t) {
    const double* const q = &head.q[std::size_t{token} * key];
    weights[t - first] = std::inner_product(q, q + key, &head.k[std::size_t{t} * key], 0.0) * double{c.scale};
  }
  weights.insert(weights.end(), head.sink.begin(), head.sink.end());  // no value is its
  const double largest = *std::ranges::max_element(weights);
  for (double& w : weights) w = std::exp(w - largest);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::uint32_t e = 0; e < value; ++e) {
    double sum = 0, magnitude = 0;
    for (std::uint32_t t = first; t < end; ++t) {
      const double weighted = weights[t - first] * head.v[std::size_t{t} * value + e];
      sum += weighted;
      magnitude += std::fabs(weighted);
    }
    wanted[e] = sum / total;
    bound[e] = (std::fabs(wanted[e]) + magnitude / total) * 0x1p-8;
  }
}

}  // namespace

AttentionInputs make_attention_inputs(const AttentionCase& c) {
  const std::uint64_t rows = c.tokens() * c.heads, kv_rows = c.tokens() * c.kv();
  return {draw_bf16(c.seed, 1, rows * c.key()), draw_bf16(c.seed, 2, kv_rows * c.key()),
          draw_bf16(c.seed, 3, kv_rows * c.value()), draw_sinks(c.seed, c.sinks ? c.heads : 0)};
}

std::string compare_attention(const AttentionCase& c, const AttentionInputs& in,
                              std::span<const std::uint16_t> out) {
  const std::uint32_t value = c.value();
  std::vector<double> wanted(value), bound(value);
  for (std::uint32_t sequence = 0; sequence < c.sequences; ++sequence) {
    for (std::uint32_t head = 0; head < c.heads; ++head) {
      const Head values = head_of(c, in, sequence, head);
      for (std::uint32_t token = c.cached; token < c.length; ++token) {
        row_of(c, values, token, wanted, bound);
        const std::uint64_t row = (std::uint64_t{sequence} * c.length + token) * c.heads + head;
        for (std::uint32_t e = 0; e < value; ++e) {
          const double got = of_bf16(out[row * value + e]);
          if (!(std::fabs(got - wanted[e]) <= bound[e]))
            return fmt::format("sequence {} head {} token {} element {}: {} instead of {}, allowed {}",
                               sequence, head, token, e, got, wanted[e], bound[e]);
        }
      }
    }
  }
  return {};
}

}  // namespace cm384::reference
