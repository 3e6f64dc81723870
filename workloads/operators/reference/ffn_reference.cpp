#include "workloads/operators/reference/ffn_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

std::int32_t dot(const std::byte* x, const std::byte* y, std::uint32_t k) {
  std::int32_t sum = 0;
  for (std::uint32_t i = 0; i < k; ++i)
    sum += std::int32_t{static_cast<std::int8_t>(x[i])} * static_cast<std::int8_t>(y[i]);
  return sum;
}

// silu(gate) * up of a row.
std::vector<double> activations(const GemmCase& g, const GemmInputs& in, std::uint64_t row,
                                std::uint32_t group) {
  const std::uint32_t width = g.n / 2;
  const auto output = [&](std::uint32_t column) {
    const std::uint64_t c = std::uint64_t{group} * g.n + column;
    return double{in.channel_scales[c]} * in.token_scales[row] * dot(&in.a[row * g.k], &in.b[c * g.k], g.k);
  };
  std::vector<double> values(width);
  for (std::uint32_t i = 0; i < width; ++i) {
    const double gate = output(i);
    values[i] = gate / (1 + std::exp(-gate)) * output(width + i);
  }
  return values;
}

// With the most that roundings may have made of it.
struct Bounded {
  double value = 0, slack = 0;
};

Bounded dot_bf16(const std::byte* x, const std::byte* y, std::uint32_t k) {
  double sum = 0, magnitude = 0;
  for (std::uint32_t i = 0; i < k; ++i) {
    std::uint16_t a = 0, b = 0;
    std::memcpy(&a, x + i * 2, 2);
    std::memcpy(&b, y + i * 2, 2);
    const double product = of_bf16(a) * of_bf16(b);
    sum += product;
    magnitude += std::fabs(product);
  }
  return {sum, std::fabs(sum) * 0x1p-8 + magnitude * k * 0x1p-23};
}

std::vector<Bounded> activations_bf16(const GemmCase& g, const GemmInputs& in, std::uint64_t row,
                                      std::uint32_t group) {
  const std::uint32_t width = g.n / 2;
  const auto output = [&](std::uint32_t column) {
    return dot_bf16(&in.a[row * g.k * 2], &in.b[(std::uint64_t{group} * g.n + column) * g.k * 2], g.k);
  };
  std::vector<Bounded> values(width);
  for (std::uint32_t i = 0; i < width; ++i) {
    const Bounded gate = output(i), up = output(width + i);
    const double silu = gate.value / (1 + std::exp(-gate.value));
    values[i].value = silu * up.value;
    values[i].slack = 1.1 * gate.slack * (std::fabs(up.value) + up.slack) + std::fabs(silu) * up.slack +
                      std::fabs(values[i].value) * 0x1p-8;
  }
  return values;
}

}  // namespace

std::string compare_ffn_bf16(const GemmCase& gate_up, const GemmInputs& gate_up_inputs, const GemmCase& down,
                             const GemmInputs& down_inputs, std::span<const std::uint16_t> out) {
  std::uint64_t first = 0;
  for (std::uint32_t group = 0; group < down.group_rows.size(); first += down.group_rows[group++]) {
    const std::uint32_t rows = down.group_rows[group], step = std::max(1u, rows / 4);
    for (std::uint32_t r = 0; r < rows; ++r) {
      if (r % step != 0 && r + 1 != rows) continue;
      const std::vector<Bounded> hidden = activations_bf16(gate_up, gate_up_inputs, first + r, group);
      for (std::uint32_t column = 0; column < down.n; ++column) {
        const std::byte* weights = &down_inputs.b[(std::uint64_t{group} * down.n + column) * down.k * 2];
        double sum = 0, slack = 0, magnitude = 0;
        for (std::uint32_t i = 0; i < down.k; ++i) {
          std::uint16_t bits = 0;
          std::memcpy(&bits, weights + i * 2, 2);
          const double weight = of_bf16(bits);
          sum += weight * hidden[i].value;
          magnitude += std::fabs(weight * hidden[i].value);
          slack += std::fabs(weight) * hidden[i].slack;
        }
        const double got = of_bf16(out[(first + r) * down.n + column]);
        if (!(std::fabs(got - sum) <= slack + magnitude * down.k * 0x1p-23 + std::fabs(sum) * 0x1p-7))
          return fmt::format("group {} row {} column {}: {} instead of {}, allowed {}", group, first + r,
                             column, got, sum, slack);
      }
    }
  }
  return {};
}

std::string compare_ffn(const GemmCase& gate_up, const GemmInputs& gate_up_inputs, const GemmCase& down,
                        const GemmInputs& down_inputs, std::span<const std::uint16_t> out) {
  std::uint64_t first = 0;
  for (std::uint32_t group = 0; group < down.group_rows.size(); first += down.group_rows[group++]) {
    const std::uint32_t rows = down.group_rows[group], step = std::max(1u, rows / 4);
    for (std::uint32_t r = 0; r < rows; ++r) {
      if (r % step != 0 && r + 1 != rows) continue;
      const std::vector<double> hidden = activations(gate_up, gate_up_inputs, first + r, group);
      double largest = 0;
      for (const double h : hidden) largest = std::max(largest, std::fabs(h));
      for (std::uint32_t column = 0; column < down.n; ++column) {
        const std::uint64_t c = std::uint64_t{group} * down.n + column;
        double sum = 0, slack = 0;
        for (std::uint32_t i = 0; i < down.k; ++i) {
          const double weight =
              static_cast<std::int8_t>(down_inputs.b[c * down.k + i]) * double{down_inputs.channel_scales[c]};
          sum += weight * hidden[i];
          slack += std::fabs(weight) * (largest / 254 * 1.02 + std::fabs(hidden[i]) * 0x1p-6);
        }
        const double got = of_bf16(out[(first + r) * down.n + column]);
        if (!(std::fabs(got - sum) <= slack + std::fabs(sum) * 0x1p-7))
          return fmt::format("group {} row {} column {}: {} instead of {}, allowed {}", group, first + r,
                             column, got, sum, slack);
      }
    }
  }
  return {};
}

}  // namespace cm384::reference
