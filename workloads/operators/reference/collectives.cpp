#include "workloads/operators/reference/collectives.h"

#include <fmt/format.h>

#include <cmath>

#include "workloads/operators/reference/values.h"

namespace cm384::reference {
std::uint64_t CollectiveCase::in() const {
  const std::uint64_t part = bytes / 2;
  const bool parts = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
  return parts ? part * static_cast<std::uint64_t>(ranks) : part;
}

std::uint64_t CollectiveCase::out() const {
  const std::uint64_t part = bytes / 2;
  const bool parts = kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
  return parts ? part * static_cast<std::uint64_t>(ranks) : part;
}

std::vector<std::uint16_t> make_collective_input(const CollectiveCase& collective, int rank) {
  return draw_bf16(collective.seed, 1 + static_cast<std::uint64_t>(rank), collective.in());
}

std::string compare_collective(const CollectiveCase& collective, int rank,
                               std::span<const std::uint16_t> out) {
  const std::uint64_t part = collective.bytes / 2;
  std::vector<std::vector<std::uint16_t>> inputs;
  for (int r = 0; r < collective.ranks; ++r) inputs.push_back(make_collective_input(collective, r));
  for (std::uint64_t i = 0; i < collective.out(); ++i) {
    const bool sums =
        collective.kind != CollectiveKind::all_gather && collective.kind != CollectiveKind::all_to_all;
    if (!sums) {
      const std::uint64_t begin =
          collective.kind == CollectiveKind::all_to_all ? static_cast<std::uint64_t>(rank) * part : 0;
      const std::uint16_t wanted = inputs[i / part][begin + i % part];
      if (out[i] != wanted)
        return fmt::format("rank {} element {}: {:#06x} instead of {:#06x}", rank, i, out[i], wanted);
      continue;
    }
    const bool scatter = collective.kind == CollectiveKind::reduce_scatter;
    const std::uint64_t at = scatter ? static_cast<std::uint64_t>(rank) * part + i : i;
    double sum = 0, magnitude = 0, rounded = 0;
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      const double value = of_bf16(inputs[r][at]);
      sum += value;
      magnitude += std::fabs(value);
      if (collective.rounded_pairs && r % 2 == 1) rounded += std::fabs(value + of_bf16(inputs[r - 1][at]));
    }
    rounded += collective.roundings * magnitude;
    if (std::fabs(of_bf16(out[i]) - sum) > (std::fabs(sum) + rounded) * 0x1p-8 + magnitude * 0x1p-18)
      return fmt::format("rank {} element {}: {} instead of {}", rank, i, of_bf16(out[i]), sum);
  }
  return {};
}

}  // namespace cm384::reference
