#include "workloads/operators/reference/attention_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr std::uint32_t kKey = MlaLayout::kHead, kValue = MlaLayout::kValue;

// Keys and values of a head of a sequence, and its queries, as numbers.
struct Head {
  std::vector<double> q, k, v;
};

Head head_of(const AttentionCase& c, const AttentionInputs& in, std::uint32_t sequence, std::uint32_t head) {
  const auto take = [&](const std::vector<std::uint16_t>& from, std::uint32_t width) {
    std::vector<double> made;
    for (std::uint32_t t = 0; t < c.length; ++t) {
      const std::uint64_t row = (std::uint64_t{sequence} * c.length + t) * c.heads + head;
      for (std::uint32_t e = 0; e < width; ++e) made.push_back(of_bf16(from[row * width + e]));
    }
    return made;
  };
  return {take(in.q, kKey), take(in.k, kKey), take(in.v, kValue)};
}

// What a token's row must be, and how far each element may be off.
void row_of(const AttentionCase& c, const Head& head, std::uint32_t token, std::span<double> wanted,
            std::span<double> bound) {
  std::vector<double> weights(token + 1);
  for (std::uint32_t t = 0; t <= token; ++t) {
    const double* const q = &head.q[std::size_t{token} * kKey];
    weights[t] = std::inner_product(q, q + kKey, &head.k[std::size_t{t} * kKey], 0.0) * double{c.scale};
  }
  const double largest = *std::ranges::max_element(weights);
  for (double& w : weights) w = std::exp(w - largest);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::uint32_t e = 0; e < kValue; ++e) {
    double sum = 0, magnitude = 0;
    for (std::uint32_t t = 0; t <= token; ++t) {
      const double weighted = weights[t] * head.v[std::size_t{t} * kValue + e];
      sum += weighted;
      magnitude += std::fabs(weighted);
    }
    wanted[e] = sum / total;
    bound[e] = (std::fabs(wanted[e]) + magnitude / total) * 0x1p-8;
  }
}

}  // namespace

AttentionInputs make_attention_inputs(const AttentionCase& c) {
  const std::uint64_t rows = c.tokens() * c.heads;
  return {draw_bf16(c.seed, 1, rows * kKey), draw_bf16(c.seed, 2, rows * kKey),
          draw_bf16(c.seed, 3, rows * kValue)};
}

std::string compare_attention(const AttentionCase& c, const AttentionInputs& in,
                              std::span<const std::uint16_t> out) {
  std::vector<double> wanted(kValue), bound(kValue);
  for (std::uint32_t sequence = 0; sequence < c.sequences; ++sequence) {
    for (std::uint32_t head = 0; head < c.heads; ++head) {
      const Head values = head_of(c, in, sequence, head);
      for (std::uint32_t token = c.cached; token < c.length; ++token) {
        row_of(c, values, token, wanted, bound);
        const std::uint64_t row = (std::uint64_t{sequence} * c.length + token) * c.heads + head;
        for (std::uint32_t e = 0; e < kValue; ++e) {
          const double got = of_bf16(out[row * kValue + e]);
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
