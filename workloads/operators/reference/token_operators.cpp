#include "workloads/operators/reference/token_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "traces/random.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr std::size_t kRope = 64, kLatent = 512;
constexpr double kNear = 0x1p-13, kNearLogits = 0x1p-9;

// Positions below 8192; frequencies of a base of 10000.
std::vector<float> make_angles(std::uint64_t seed, std::uint32_t tokens) {
  traces::Random random(seed, 9);
  std::vector<float> angles;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    const auto position = static_cast<double>(random.below(8192));
    for (const bool sine : {false, true}) {
      for (std::size_t i = 0; i < kRope; ++i) {
        const double angle = position * std::pow(10000.0, -2.0 * static_cast<double>(i % 32) / 64.0);
        angles.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  return angles;
}

// Within 2^-8 of its value, and FP32's rounding of what it was made of.
bool near_bf16(std::uint16_t got, double wanted, double magnitude) {
  return std::fabs(of_bf16(got) - wanted) <= std::fabs(wanted) * 0x1p-8 + magnitude * 0x1p-20;
}

std::string compare_row(std::span<const std::uint16_t> x, std::span<const float> angles,
                        std::span<const std::uint16_t> out) {
  for (std::size_t i = 0; i < kRope / 2; ++i) {
    const double first = of_bf16(x[2 * i]), second = of_bf16(x[2 * i + 1]);
    const double cosine = angles[i], sine = angles[kRope + i];
    const double wanted[] = {first * cosine - second * sine, second * cosine + first * sine};
    for (std::size_t n = 0; n < 2; ++n) {
      const std::uint16_t got = out[n * kRope / 2 + i];
      if (!near_bf16(got, wanted[n], std::fabs(first) + std::fabs(second)))
        return fmt::format("element {}: {} instead of {}", n * kRope / 2 + i, of_bf16(got), wanted[n]);
    }
  }
  return {};
}

// Of a token's experts: what weights are made of, and what they are chosen by.
struct Scores {
  std::vector<double> weights, keys;
};

Scores scores_of(const GateCase& gate, const GateInputs& inputs, std::size_t token) {
  Scores made{std::vector<double>(gate.experts), std::vector<double>(gate.experts)};
  double sum = 0;
  for (std::size_t e = 0; e < gate.experts; ++e) {
    const double logit = inputs.logits[token * inputs.width + e], bias = inputs.bias[e];
    made.weights[e] = gate.softmax ? std::exp(logit + bias) : 1 / (1 + std::exp(-logit));
    made.keys[e] = gate.softmax ? logit + bias : made.weights[e] + bias;
    sum += made.weights[e];
  }
  for (double& weight : made.weights) weight /= gate.softmax ? sum : 1;
  return made;
}

// Of each expert's group: the sum of its two best keys. One group where there are none.
std::vector<double> group_sums(const GateCase& gate, const std::vector<double>& keys) {
  std::vector<double> sums;
  const auto size = static_cast<std::ptrdiff_t>(gate.group == 0 ? gate.experts : gate.group);
  for (auto at = keys.begin(); at != keys.end(); at += size) {
    std::vector<double> group(at, at + size);
    std::ranges::sort(group, std::greater{});
    sums.push_back(group[0] + group[1]);
  }
  return sums;
}

std::string compare_token(const GateCase& gate, const GateInputs& inputs, std::size_t token,
                          std::span<const float> weights, std::span<const std::int32_t> ids) {
  const auto [scores, keys] = scores_of(gate, inputs, token);
  const double near = gate.softmax ? kNearLogits : kNear;
  const std::vector<double> sums = group_sums(gate, keys);
  const std::size_t size = keys.size() / sums.size();
  std::vector<double> order = sums;
  std::ranges::sort(order, std::greater{});
  const double least = order[std::min<std::size_t>(gate.top_groups, sums.size()) - 1];
  const std::set<std::int32_t> chosen(ids.begin(), ids.end());
  if (chosen.size() != gate.chosen || *chosen.begin() < 0 ||
      *chosen.rbegin() >= static_cast<int>(gate.experts))
    return fmt::format("token {}: experts {}", token,
                       fmt::format("{} different ones in range", chosen.size()));
  double worst = 1e9, total = 0;
  for (const std::int32_t id : ids) {
    const auto e = static_cast<std::size_t>(id);
    if (sums[e / size] < least - near)
      return fmt::format("token {}: expert {} of a group left out", token, id);
    worst = std::min(worst, keys[e]);
    total += scores[e];
  }
  for (std::size_t e = 0; e < gate.experts; ++e) {
    if (sums[e / size] > least - near / 2 && sums[e / size] >= least && keys[e] > worst + near &&
        !chosen.contains(static_cast<std::int32_t>(e)))
      return fmt::format("token {}: expert {} is left out", token, e);
  }
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const double wanted =
        scores[static_cast<std::size_t>(ids[k])] / (gate.normalised ? total : 1) * gate.scale;
    if (std::fabs(weights[k] - wanted) > wanted * 0x1p-18)
      return fmt::format("token {} place {}: weight {} instead of {}", token, k, weights[k], wanted);
  }
  return {};
}

}  // namespace

GateInputs make_gate_inputs(const GateCase& gate, std::uint32_t width) {
  GateInputs made{draw_floats(gate.seed, 1, std::uint64_t{gate.tokens} * width, -4, 4),
                  draw_floats(gate.seed, 2, width, -0.1f, 0.1f), width};
  std::fill(made.bias.begin() + gate.experts, made.bias.end(), -1e4f);
  return made;
}

std::string compare_gate(const GateCase& gate, const GateInputs& inputs, std::span<const float> weights,
                         std::span<const std::int32_t> ids) {
  const std::size_t places = weights.size() / gate.tokens;
  for (std::size_t t = 0; t < gate.tokens; ++t) {
    std::string text = compare_token(gate, inputs, t, weights.subspan(t * places, gate.chosen),
                                     ids.subspan(t * places, gate.chosen));
    if (!text.empty()) return text;
  }
  return {};
}

RopeInputs make_rope_inputs(const RopeCase& rope) {
  return {draw_bf16(rope.seed, 1, std::uint64_t{rope.tokens} * rope.heads * kRope),
          make_angles(rope.seed, rope.tokens)};
}

std::string compare_rope(const RopeCase& rope, const RopeInputs& inputs, std::span<const std::uint16_t> out) {
  for (std::size_t row = 0; row < std::size_t{rope.tokens} * rope.heads; ++row) {
    const std::string text =
        compare_row(std::span(inputs.x).subspan(row * kRope, kRope),
                    std::span(inputs.angles).subspan(row / rope.heads * 2 * kRope, 2 * kRope),
                    out.subspan(row * kRope, kRope));
    if (!text.empty()) return fmt::format("row {} {}", row, text);
  }
  return {};
}

KvInputs make_kv_inputs(const KvCase& kv) {
  KvInputs in{draw_bf16(kv.seed, 1, std::uint64_t{kv.tokens} * (kLatent + kRope)),
              draw_bf16(kv.seed, 2, kLatent), make_angles(kv.seed, kv.tokens),
              std::vector<std::uint32_t>(kv.slots)};
  std::iota(in.slots.begin(), in.slots.end(), 0U);
  traces::Random random(kv.seed, 3);
  for (std::size_t n = 0; n < kv.tokens; ++n)
    std::swap(in.slots[n], in.slots[n + random.below(kv.slots - n)]);
  in.slots.resize(kv.tokens);
  return in;
}

std::string compare_kv(const KvCase& kv, const KvInputs& inputs, std::span<const std::uint16_t> latents,
                       std::span<const std::uint16_t> keys) {
  for (std::size_t t = 0; t < kv.tokens; ++t) {
    const auto row = std::span(inputs.kv).subspan(t * (kLatent + kRope), kLatent + kRope);
    const std::size_t slot = inputs.slots[t];
    double squares = 0;
    for (std::size_t i = 0; i < kLatent; ++i) squares += of_bf16(row[i]) * of_bf16(row[i]);
    const double factor = 1 / std::sqrt(squares / kLatent + kv.epsilon);
    for (std::size_t i = 0; i < kLatent; ++i) {
      const double wanted = of_bf16(row[i]) * factor * of_bf16(inputs.gamma[i]);
      if (!near_bf16(latents[slot * kLatent + i], wanted, 0))
        return fmt::format("token {} latent {}: {} instead of {}", t, i, of_bf16(latents[slot * kLatent + i]),
                           wanted);
    }
    const std::string text =
        compare_row(row.subspan(kLatent), std::span(inputs.angles).subspan(t * 2 * kRope, 2 * kRope),
                    keys.subspan(slot * kRope, kRope));
    if (!text.empty()) return fmt::format("token {} key {}", t, text);
  }
  return {};
}

}  // namespace cm384::reference
