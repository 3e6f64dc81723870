#include "workloads/operators/reference/mla_projections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "traces/random.h"
#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr double kHalfStep = 0x1p-8;  // of BF16, of a value
constexpr double kRopeBase = 10000;   // DeepSeek-V3's, before any stretching of positions
constexpr std::uint32_t kHalf = MlaLayout::kRope / 2;

// Both signs, magnitudes from 2^-3 to 2 times 2^-shift.
std::vector<std::uint16_t> elements(traces::Random random, std::uint64_t count, std::uint32_t shift = 0) {
  std::vector<std::uint16_t> made(count);
  for (auto& x : made) {
    const auto bits = static_cast<std::uint32_t>(random.next());
    x = static_cast<std::uint16_t>((bits & 1) << 15 | (124 - shift + (bits >> 1 & 3)) << 7 |
                                   (bits >> 3 & 0x7f));
  }
  return made;
}
// So large that the sums of k products are about as large as what is multiplied.
ProjectionWeights weights(traces::Random random, std::uint64_t n, std::uint32_t k, bool int8) {
  ProjectionWeights made;
  if (!int8) {
    made.bf16 = elements(random, n * k, static_cast<std::uint32_t>(std::lround(std::log2(k) / 2)));
    return made;
  }
  made.int8.resize(n * k);
  for (auto& w : made.int8) w = static_cast<std::int8_t>(static_cast<int>(random.below(255)) - 127);
  // Uniform integers to 127 have a standard deviation of 73.6; scales differ by up to a half.
  for (std::uint64_t row = 0; row < n; ++row)
    made.scales.push_back(static_cast<float>((0.75 + static_cast<double>(random.below(64)) / 128) /
                                             (73.6 * std::sqrt(static_cast<double>(k)))));
  return made;
}

// A value with the variance that the roundings so far give it.
struct Estimate {
  double value = 0, variance = 0;
};
using Estimates = std::vector<Estimate>;

Estimate rounded(const Estimate& x) {
  return {x.value, x.variance + x.value * x.value * kHalfStep * kHalfStep / 3};
}

Estimates exact(std::span<const std::uint16_t> bits) {
  Estimates made;
  for (const std::uint16_t b : bits) made.push_back({of_bf16(b), 0});
  return made;
}

// Rows `first` .. `first` + `rows` of `weights` times x.
Estimates multiply(std::span<const Estimate> x, const ProjectionWeights& weights, std::size_t first,
                   std::size_t rows) {
  const std::size_t k = x.size();
  Estimates made(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0, variance = 0, squares = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t at = (first + row) * k + i;
      const double w = weights.int8.empty() ? of_bf16(weights.bf16[at])
                                            : weights.int8[at] * double{weights.scales[first + row]};
      const double product = w * x[i].value;
      sum += product;
      squares += product * product;
      variance += w * w * x[i].variance;
    }
    made[row] = {sum, variance + static_cast<double>(k) * 0x1p-48 * squares};
  }
  return made;
}

Estimates round_all(Estimates x) {
  for (Estimate& e : x) e = rounded(e);
  return x;
}

// As what an INT8 projection reads, or a BF16 one.
Estimates to_project(Estimates x, bool int8) {
  if (!int8) return round_all(std::move(x));
  double largest = 0;
  for (const Estimate& e : x) largest = std::max(largest, std::fabs(e.value));
  for (Estimate& e : x) e.variance += largest * largest / (127.0 * 127 * 12);
  return x;
}

Estimates norm(std::span<const Estimate> x, std::span<const std::uint16_t> gamma) {
  double squares = 0;
  for (const Estimate& e : x) squares += e.value * e.value;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + double{kNormEpsilon});
  Estimates made(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scale = factor * of_bf16(gamma[i]);
    made[i] = {x[i].value * scale, x[i].variance * scale * scale};
  }
  return made;
}

Estimates rotate(std::span<const Estimate> x, std::span<const float> angles) {
  Estimates made(x.size());
  for (std::uint32_t i = 0; i < MlaLayout::kRope; ++i) {
    const Estimate &own = x[i], &other = x[i < kHalf ? i + kHalf : i - kHalf];
    const double c = double{angles[i]}, s = double{angles[MlaLayout::kRope + i]};
    made[i] = {own.value * c + other.value * s, own.variance * c * c + other.variance * s * s};
  }
  return made;
}

std::string compare(const char* what, std::span<const Estimate> wanted, std::span<const std::uint16_t> got) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double found = of_bf16(got[i]), value = wanted[i].value;
    const double bound = std::fabs(value) * kHalfStep * 1.02 + 8 * std::sqrt(wanted[i].variance);
    if (!(std::fabs(found - value) <= bound))
      return fmt::format("{} element {}: {} instead of {}, allowed {}", what, i, found, value, bound);
  }
  return {};
}

}  // namespace

std::vector<float> make_rope(std::span<const std::uint32_t> positions) {
  std::vector<float> rope;
  for (const std::uint32_t position : positions) {
    const auto angle = [&](std::uint32_t i) {
      return position * std::pow(kRopeBase, -2.0 * (i % kHalf) / MlaLayout::kRope);
    };
    for (std::uint32_t i = 0; i < MlaLayout::kRope; ++i)
      rope.push_back(static_cast<float>(std::cos(angle(i))));
    for (std::uint32_t i = 0; i < MlaLayout::kRope; ++i)
      rope.push_back(static_cast<float>(i < kHalf ? -std::sin(angle(i)) : std::sin(angle(i))));
  }
  return rope;
}

PrologInputs make_prolog_inputs(const ProjectionCase& layer, std::span<const std::uint32_t> positions) {
  const auto random = [&](std::uint64_t stream) { return traces::Random(layer.seed, stream); };
  const std::uint32_t latents = layer.q_lora + MlaLayout::kWidth, heads = layer.heads;
  return {elements(random(20), std::uint64_t{layer.tokens} * layer.hidden),
          elements(random(21), layer.hidden),
          elements(random(22), layer.q_lora),
          elements(random(23), MlaLayout::kLatent),
          weights(random(24), latents, layer.hidden, layer.int8),
          weights(random(25), std::uint64_t{heads} * MlaLayout::kHead, layer.q_lora, layer.int8),
          weights(random(26), std::uint64_t{heads} * MlaLayout::kLatent, MlaLayout::kNope, false),
          make_rope(positions)};
}

std::string compare_prolog(const ProjectionCase& layer, const PrologInputs& in, std::uint32_t token,
                           const PrologOutput& out) {
  const std::size_t hidden = layer.hidden, q_lora = layer.q_lora;
  const auto angles = std::span(in.rope).subspan(token * 128ull, 128);
  const Estimates x = exact(std::span(in.x).subspan(token * hidden, hidden));
  const Estimates latents = round_all(
      multiply(to_project(norm(x, in.gamma_x), layer.int8), in.down, 0, layer.q_lora + MlaLayout::kWidth));
  const auto all = std::span(latents);
  std::string difference =
      compare("cached latent", norm(all.subspan(q_lora, MlaLayout::kLatent), in.gamma_kv),
              out.cached.first(MlaLayout::kLatent));
  if (difference.empty())
    difference = compare("cached rope", rotate(all.subspan(q_lora + MlaLayout::kLatent), angles),
                         out.cached.subspan(MlaLayout::kLatent));
  if (!difference.empty()) return difference;
  const Estimates queries = round_all(multiply(to_project(norm(all.first(q_lora), in.gamma_q), layer.int8),
                                               in.up, 0, std::size_t{layer.heads} * MlaLayout::kHead));
  for (std::uint32_t head = 0; head < layer.heads; ++head) {
    const auto own = std::span(queries).subspan(head * MlaLayout::kHead, MlaLayout::kHead);
    const auto got = out.queries.subspan(head * MlaLayout::kWidth, MlaLayout::kWidth);
    difference = compare("query latent",
                         multiply(own.first(MlaLayout::kNope), in.absorb,
                                  std::size_t{head} * MlaLayout::kLatent, MlaLayout::kLatent),
                         got.first(MlaLayout::kLatent));
    if (difference.empty())
      difference = compare("query rope", rotate(own.subspan(MlaLayout::kNope), angles),
                           got.subspan(MlaLayout::kLatent));
    if (!difference.empty()) return fmt::format("head {} {}", head, difference);
  }
  return {};
}

OutputWeights make_output_weights(const ProjectionCase& layer) {
  const std::uint32_t values = layer.heads * MlaLayout::kValue;
  return {weights(traces::Random(layer.seed, 27), values, MlaLayout::kLatent, false),
          weights(traces::Random(layer.seed, 28), layer.hidden, values, layer.int8)};
}

std::string compare_output(const ProjectionCase& layer, const OutputWeights& weights,
                           std::span<const std::uint16_t> latents, std::span<const std::uint16_t> out) {
  Estimates values;
  for (std::uint32_t head = 0; head < layer.heads; ++head) {
    const Estimates own =
        round_all(multiply(exact(latents.subspan(std::size_t{head} * MlaLayout::kLatent, MlaLayout::kLatent)),
                           weights.value, std::size_t{head} * MlaLayout::kValue, MlaLayout::kValue));
    values.insert(values.end(), own.begin(), own.end());
  }
  if (layer.int8) values = to_project(std::move(values), true);
  return compare("output", multiply(values, weights.out, 0, layer.hidden), out);
}

}  // namespace cm384::reference
