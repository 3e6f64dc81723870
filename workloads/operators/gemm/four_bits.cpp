#include "workloads/operators/gemm/four_bits.h"

namespace cm384::operators {

std::vector<std::uint32_t> in_two_rows(std::span<const std::uint32_t> group_rows) {
  std::vector<std::uint32_t> made;
  for (const std::uint32_t rows : group_rows) made.push_back(2 * rows);
  return made;
}

CubeRates four_bit_rates(const Site& site) {
  CubeRates rates = rates_of(site, CM384_GEMM_INT8);
  rates.macs = site.memory.runtime().machine().parameters().cube_core.macs_per_cycle.int4 / 2.0;
  return rates;
}

void become_four_bits(cm384_gemm& gemm) {
  gemm.k *= 2;
  gemm.type = CM384_GEMM_INT4;
}

std::vector<std::byte> packed(std::span<const std::byte> weights) {
  constexpr std::byte kHalf{15};
  std::vector<std::byte> made(weights.size() / 2);
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = (weights[2 * i] & kHalf) | (weights[2 * i + 1] & kHalf) << 4;
  return made;
}

std::vector<float> eight_times_sums(std::span<const std::byte> weights, std::uint32_t k) {
  std::vector<float> made;
  for (std::size_t row = 0; row < weights.size(); row += k) {
    int sum = 0;
    for (const std::byte weight : weights.subspan(row, k)) sum += static_cast<std::int8_t>(weight);
    made.push_back(static_cast<float>(8 * sum));
  }
  return made;
}

}  // namespace cm384::operators
