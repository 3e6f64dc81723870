#include "workloads/operators/reference/ffn_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

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
