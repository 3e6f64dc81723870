#include "workloads/operators/reference/expert_networks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "traces/random.h"
#include "workloads/operators/reference/quantise.h"

namespace cm384::reference {
namespace {

constexpr std::uint64_t kNetworkSeed = 0xe19e57;
// What makes gate, up and the output of tokens.h's rows about 1.
constexpr double kGateUpScale = 0.036, kDownScale = 0.027;

std::vector<std::byte> make_bytes(traces::Random& random, std::uint64_t count) {
  std::vector<std::byte> made(count);
  for (std::uint64_t i = 0; i < count; i += 8) {
    const std::uint64_t bits = random.next();
    std::memcpy(&made[i], &bits, std::min<std::uint64_t>(8, count - i));
  }
  return made;
}

std::vector<float> make_scales(traces::Random& random, std::uint32_t count, double most) {
  std::vector<float> made(count);
  for (float& scale : made)
    scale = static_cast<float>(most * static_cast<double>(1 + random.below(1000)) / 1000);
  return made;
}

// The inner loop has a fixed length, which compilers turn into vector instructions.
std::int32_t dot(const std::int8_t* x, const std::byte* y, std::size_t k) {
  constexpr std::size_t kLanes = 32;
  std::int32_t sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += std::int32_t{x[i + lane]} * static_cast<std::int8_t>(y[i + lane]);
  }
  std::int32_t sum = 0;
  for (const std::int32_t part : sums) sum += part;
  for (; i < k; ++i) sum += std::int32_t{x[i]} * static_cast<std::int8_t>(y[i]);
  return sum;
}

// One element a row of `weights`.
std::vector<std::uint16_t> multiply(std::span<const std::int8_t> x, float scale,
                                    std::span<const std::byte> weights, std::span<const float> scales) {
  std::vector<std::uint16_t> out(scales.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    const auto sum = static_cast<float>(dot(x.data(), &weights[row * x.size()], x.size()));
    out[row] = to_bf16(sum * scales[row] * scale);
  }
  return out;
}

}  // namespace

std::vector<std::uint16_t> network_output(const NetworkWeights& weights, std::span<const std::int8_t> x,
                                          float scale) {
  const std::vector<std::uint16_t> both = multiply(x, scale, weights.gate_up, weights.gate_up_scales);
  const std::size_t width = both.size() / 2;
  std::vector<float> active(width);
  for (std::size_t i = 0; i < width; ++i) {
    const float gate = from_bf16(both[i]);
    active[i] = gate / (static_cast<float>(std::exp(double{-gate})) + 1.0f) * from_bf16(both[width + i]);
  }
  std::vector<std::int8_t> quantised(width);
  const float active_scale = quantise_values(active, quantised);
  return multiply(quantised, active_scale, weights.down, weights.down_scales);
}

NetworkWeights make_network_weights(std::uint64_t seed, int expert, std::uint32_t hidden,
                                    std::uint32_t width) {
  traces::Random random(seed ^ kNetworkSeed, static_cast<std::uint64_t>(expert));
  NetworkWeights made;
  made.gate_up = make_bytes(random, std::uint64_t{2} * width * hidden);
  made.down = make_bytes(random, std::uint64_t{width} * hidden);
  made.gate_up_scales = make_scales(random, 2 * width, kGateUpScale / std::sqrt(hidden));
  made.down_scales = make_scales(random, hidden, kDownScale / std::sqrt(width));
  return made;
}

DrawnNetwork draw_network(std::uint64_t seed, int expert, std::uint32_t hidden, std::uint32_t width) {
  const auto draw = [&](std::uint64_t matrix, std::uint64_t rows, std::uint32_t k) {
    const std::uint64_t stream = 2 * static_cast<std::uint64_t>(expert) + matrix;
    std::vector<float> made = draw_rows({}, seed ^ kNetworkSeed, stream, rows, k);
    const float gain = 1 / std::sqrt(static_cast<float>(k));
    for (float& weight : made) weight *= gain;
    return made;
  };
  return {draw(0, std::uint64_t{2} * width, hidden), draw(1, hidden, width)};
}

NetworkWeights network_of(const DispatchCase& dispatch, int expert, std::uint32_t width) {
  const auto hidden = static_cast<std::uint32_t>(dispatch.hidden);
  if (!dispatch.drawn) return make_network_weights(dispatch.seed, expert, hidden, width);
  const DrawnNetwork drawn = draw_network(dispatch.seed, expert, hidden, width);
  const auto quantise = [](std::span<const float> values, std::size_t k, std::vector<std::byte>& bytes,
                           std::vector<float>& scales) {
    bytes.resize(values.size());
    std::vector<std::int8_t> row(k);
    for (std::size_t at = 0; at < values.size(); at += k) {
      scales.push_back(quantise_values(values.subspan(at, k), row));
      std::memcpy(&bytes[at], row.data(), k);
    }
  };
  NetworkWeights made;
  quantise(drawn.gate_up, hidden, made.gate_up, made.gate_up_scales);
  quantise(drawn.down, width, made.down, made.down_scales);
  return made;
}

ExpertNetworkOutputs::ExpertNetworkOutputs(const DispatchCase& dispatch, std::uint32_t width)
    : batch_(dispatch.batch),
      choices_(dispatch.top_k + dispatch.placement.shared),
      hidden_(static_cast<std::size_t>(dispatch.hidden)) {
  std::vector<std::vector<ArrivedRow>> of_expert(
      static_cast<std::size_t>(dispatch.placement.experts + dispatch.placement.shared));
  for (int source = 0; source < dispatch.placement.ranks; ++source) {
    for (int token = 0; token < dispatch.tokens_of(source); ++token) {
      for (int k = 0; k < choices_; ++k)
        of_expert[static_cast<std::size_t>(expert_of(dispatch, {source, token, k}))].push_back(
            {source, token, k});
    }
  }
  rows_.resize(static_cast<std::size_t>(dispatch.placement.ranks * batch_ * choices_) * hidden_);
  std::vector<std::uint16_t> token(hidden_);
  std::vector<std::int8_t> quantised(hidden_);
  for (std::size_t expert = 0; expert < of_expert.size(); ++expert) {
    if (of_expert[expert].empty()) continue;
    const NetworkWeights weights = network_of(dispatch, static_cast<int>(expert), width);
    for (const ArrivedRow& row : of_expert[expert]) {
      dispatch.make_row(row.source, row.token, token);
      const float scale = quantise_row(token, quantised);
      const auto out = network_output(weights, quantised, scale);
      std::copy(out.begin(), out.end(), rows_.begin() + static_cast<std::ptrdiff_t>(place(row)));
    }
  }
}

std::size_t ExpertNetworkOutputs::place(const ArrivedRow& row) const {
  return static_cast<std::size_t>((row.source * batch_ + row.token) * choices_ + row.k) * hidden_;
}

std::span<const std::uint16_t> ExpertNetworkOutputs::row(const ArrivedRow& row) const {
  return std::span(rows_).subspan(place(row), hidden_);
}

}  // namespace cm384::reference
