#include "workloads/operators/reference/index_projections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr std::uint32_t kIndexWidth = IndexLayout::kWidth;
constexpr double kDeviations = 8;

// The key's: by the mean and the variance of the row.
Estimates layer_norm(std::span<const Estimate> x, const IndexPrologInputs& of) {
  const auto count = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const Estimate& e : x) mean += e.value / count;
  for (const Estimate& e : x) variance += (e.value - mean) * (e.value - mean) / count;
  const double root = std::sqrt(variance + double{kNormEpsilon});
  Estimates made;
  for (std::size_t n = 0; n < x.size(); ++n) {
    const double factor = of_bf16(of.gamma[n]) / root;
    made.push_back({(x[n].value - mean) * factor + of_bf16(of.beta[n]), x[n].variance * factor * factor});
  }
  return made;
}

Estimates rotate_half(Estimates row, std::span<const float> angles) {
  const Estimates turned = rotate(std::span(row).first(kIndexWidth / 2), angles);
  std::ranges::copy(turned, row.begin());
  return row;
}

double largest_deviation(const Estimates& row) {
  double variance = 0;
  for (const Estimate& e : row) variance = std::max(variance, e.variance);
  return std::sqrt(variance);
}
double largest(const Estimates& row) {
  double magnitude = 0;
  for (const Estimate& e : row) magnitude = std::max(magnitude, std::fabs(e.value));
  return magnitude;
}

std::string compare_row(const char* what, const Estimates& wanted, std::span<const std::int8_t> got) {
  const double step = largest(wanted) / 127, deviation = largest_deviation(wanted);
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    // The step itself is as uncertain as the largest element.
    const double bound = step * 0.51 + kDeviations * (std::sqrt(wanted[n].variance) + deviation);
    if (!(std::fabs(got[n] * step - wanted[n].value) <= bound))
      return fmt::format("{} element {}: {} steps of {} instead of {}, allowed {}", what, n, got[n], step,
                         wanted[n].value, bound);
  }
  return {};
}

std::string compare_number(const char* what, double wanted, double bound, double got) {
  if (std::fabs(got - wanted) <= bound) return {};
  return fmt::format("{}: {} instead of {}, allowed {}", what, got, wanted, bound);
}

}  // namespace

IndexPrologInputs make_index_prolog_inputs(const ProjectionCase& layer, std::uint32_t heads) {
  const auto random = [&](std::uint64_t stream) { return traces::Random(layer.seed, stream); };
  return {draw_weights(random(64), std::uint64_t{heads} * kIndexWidth, layer.q_lora, layer.int8),
          draw_weights(random(65), std::uint64_t{kIndexWidth} + heads, layer.hidden, layer.int8),
          draw_elements(random(66), kIndexWidth), draw_elements(random(67), kIndexWidth)};
}

std::string compare_index_prolog(const ProjectionCase& layer, const PrologInputs& in,
                                 const IndexPrologInputs& of, std::uint32_t token,
                                 const IndexPrologOutput& out) {
  const std::size_t hidden = layer.hidden, q_lora = layer.q_lora, heads = out.weights.size();
  const auto angles = std::span(in.rope).subspan(token * 128ull, 128);
  const Estimates x =
      to_project(norm(exact(std::span(in.x).subspan(token * hidden, hidden)), in.gamma_x), layer.int8);
  const Estimates latents = round_all(multiply(x, in.down, 0, q_lora));
  const Estimates queries = round_all(
      multiply(to_project(norm(latents, in.gamma_q), layer.int8), of.query, 0, heads * kIndexWidth));
  const Estimates keys = round_all(multiply(x, of.key, 0, kIndexWidth + heads));
  const Estimates key = rotate_half(layer_norm(std::span(keys).first(kIndexWidth), of), angles);
  std::string difference = compare_row("key", key, out.key);
  if (difference.empty())
    difference = compare_number("scale of the key", largest(key) / 127,
                                largest(key) / 127 * 0x1p-10 + kDeviations * largest_deviation(key) / 127,
                                double{out.scale});
  const double factor = 32 / std::sqrt(static_cast<double>(heads) * kIndexWidth) / 127;
  for (std::size_t head = 0; head < heads && difference.empty(); ++head) {
    const auto own = std::span(queries).subspan(head * kIndexWidth, kIndexWidth);
    const Estimates row = rotate_half({own.begin(), own.end()}, angles);
    difference = compare_row("query", row, std::span(out.q).subspan(head * kIndexWidth, kIndexWidth));
    const Estimate& weight = keys[kIndexWidth + head];
    const double size = largest(row), wanted = weight.value * size * factor;
    const double bound =
        std::fabs(wanted) * 0x1p-10 + 0x1p-24 +
        kDeviations * factor *
            (std::sqrt(weight.variance) * size + std::fabs(weight.value) * largest_deviation(row));
    if (difference.empty()) difference = compare_number("weight", wanted, bound, of_fp16(out.weights[head]));
    if (!difference.empty()) difference = fmt::format("head {} {}", head, difference);
  }
  return difference;
}

}  // namespace cm384::reference
