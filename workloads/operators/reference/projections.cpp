#include "workloads/operators/reference/projections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr double kHalfStep = 0x1p-8;  // of BF16, of a value
constexpr double kRopeBase = 10000;   // DeepSeek-V3's, before any stretching of positions

Estimate rounded(const Estimate& x) {
  return {x.value, x.variance + x.value * x.value * kHalfStep * kHalfStep / 3};
}

}  // namespace

std::vector<float> make_rope(std::span<const std::uint32_t> positions, std::uint32_t width) {
  const std::uint32_t half = width / 2;
  std::vector<float> rope;
  for (const std::uint32_t position : positions) {
    const auto angle = [&](std::uint32_t i) {
      return position * std::pow(kRopeBase, -2.0 * (i % half) / width);
    };
    for (std::uint32_t i = 0; i < width; ++i) rope.push_back(static_cast<float>(std::cos(angle(i))));
    for (std::uint32_t i = 0; i < width; ++i)
      rope.push_back(static_cast<float>(i < half ? -std::sin(angle(i)) : std::sin(angle(i))));
  }
  return rope;
}

std::vector<std::uint16_t> draw_elements(traces::Random random, std::uint64_t count, std::uint32_t shift) {
  std::vector<std::uint16_t> made(count);
  for (auto& x : made) {
    const auto bits = static_cast<std::uint32_t>(random.next());
    x = static_cast<std::uint16_t>((bits & 1) << 15 | (124 - shift + (bits >> 1 & 3)) << 7 |
                                   (bits >> 3 & 0x7f));
  }
  return made;
}

ProjectionWeights draw_weights(traces::Random random, std::uint64_t n, std::uint32_t k, bool int8) {
  ProjectionWeights made;
  if (!int8) {
    made.bf16 = draw_elements(random, n * k, static_cast<std::uint32_t>(std::lround(std::log2(k) / 2)));
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

Estimates exact(std::span<const std::uint16_t> bits) {
  Estimates made;
  for (const std::uint16_t b : bits) made.push_back({of_bf16(b), 0});
  return made;
}

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
  const std::size_t half = x.size() / 2;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Estimate &own = x[i], &other = x[i < half ? i + half : i - half];
    const double c = double{angles[i]}, s = double{angles[x.size() + i]};
    made[i] = {own.value * c + other.value * s, own.variance * c * c + other.variance * s * s};
  }
  return made;
}

std::string compare_estimates(const char* what, std::span<const Estimate> wanted,
                              std::span<const std::uint16_t> got) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double found = of_bf16(got[i]), value = wanted[i].value;
    const double bound = std::fabs(value) * kHalfStep * 1.02 + 8 * std::sqrt(wanted[i].variance);
    if (!(std::fabs(found - value) <= bound))
      return fmt::format("{} element {}: {} instead of {}, allowed {}", what, i, found, value, bound);
  }
  return {};
}

}  // namespace cm384::reference
