#include "workloads/operators/reference/gemm_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "traces/random.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr double kMostProducts = 4e9;  // of one comparison

std::uint16_t bf16_of(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
std::vector<std::byte> make_matrix(traces::Random random, std::uint64_t elements, cm384_gemm_type type) {
  std::vector<std::byte> matrix(elements * (type == CM384_GEMM_INT8 ? 1 : 2));
  if (type == CM384_GEMM_INT8) {
    for (std::uint64_t i = 0; i < matrix.size(); i += 8) {
      const std::uint64_t bits = random.next();
      std::memcpy(&matrix[i], &bits, std::min<std::uint64_t>(8, matrix.size() - i));
    }
    return matrix;
  }
  // Sign, magnitudes from 1/8 to 2, one in 16 zero.
  for (std::uint64_t i = 0; i < elements; ++i) {
    const auto bits = static_cast<std::uint32_t>(random.next());
    const auto value =
        static_cast<std::uint16_t>((bits & 1) << 15 | (124 + (bits >> 1 & 3)) << 7 | (bits >> 3 & 0x7f));
    const std::uint16_t kept = (bits >> 10 & 15) == 0 ? std::uint16_t{0} : value;
    std::memcpy(&matrix[i * 2], &kept, 2);
  }
  return matrix;
}

std::vector<float> make_scales(traces::Random random, std::uint64_t count) {
  std::vector<float> scales(count);
  for (float& s : scales) s = static_cast<float>(1 + random.below(1000)) * 0x1p-16f;
  return scales;
}

// One row of C; empty when it is right.
std::string compare_row(const GemmCase& g, const GemmInputs& in, std::uint64_t row, std::uint32_t group,
                        std::span<const std::uint16_t> c) {
  const std::uint64_t row_bytes = std::uint64_t{g.k} * g.element_bytes();
  const std::byte* a = &in.a[row * row_bytes];
  for (std::uint32_t j = 0; j < g.n; ++j) {
    const std::uint64_t column = std::uint64_t{group} * g.n + j;
    const std::byte* b = &in.b[column * row_bytes];
    const std::uint16_t got = c[row * g.n + j];
    if (g.type == CM384_GEMM_INT8) {
      std::int32_t sum = 0;
      for (std::uint32_t i = 0; i < g.k; ++i)
        sum += std::int32_t{static_cast<std::int8_t>(a[i])} * static_cast<std::int8_t>(b[i]);
      const std::uint16_t wanted =
          bf16_of(static_cast<float>(sum) * in.channel_scales[column] * in.token_scales[row]);
      if (got != wanted)
        return fmt::format("row {} column {}: {:#06x} instead of {:#06x}", row, j, got, wanted);
      continue;
    }
    double sum = 0, magnitude = 0;
    for (std::uint32_t i = 0; i < g.k; ++i) {
      std::uint16_t x = 0, y = 0;
      std::memcpy(&x, a + i * 2, 2);
      std::memcpy(&y, b + i * 2, 2);
      const double product = of_bf16(x) * of_bf16(y);
      sum += product;
      magnitude += std::fabs(product);
    }
    const double bound = std::fabs(sum) * 0x1p-8 + magnitude * g.k * 0x1p-23;
    if (!(std::fabs(of_bf16(got) - sum) <= bound))
      return fmt::format("row {} column {}: {} instead of {}, allowed {}", row, j, of_bf16(got), sum, bound);
  }
  return {};
}

}  // namespace

std::uint64_t GemmCase::rows() const {
  return std::accumulate(group_rows.begin(), group_rows.end(), std::uint64_t{0});
}

GemmInputs make_gemm_inputs(const GemmCase& g) {
  const std::uint64_t groups = g.group_rows.size();
  std::vector<std::byte> b = make_matrix(traces::Random(g.seed, 2), groups * g.n * g.k, g.type);
  if (g.four_bits) {
    for (std::byte& weight : b) weight = static_cast<std::byte>((std::to_integer<int>(weight) & 15) - 8);
  }
  return {make_matrix(traces::Random(g.seed, 1), g.rows() * g.k, g.type), std::move(b),
          make_scales(traces::Random(g.seed, 3), g.rows()),
          make_scales(traces::Random(g.seed, 4), groups * g.n)};
}

std::string compare_gemm(const GemmCase& g, const GemmInputs& inputs, std::span<const std::uint16_t> c) {
  const double products = static_cast<double>(g.rows()) * g.n * g.k;
  const auto step = static_cast<std::uint32_t>(std::max(1.0, std::ceil(products / kMostProducts)));
  std::uint64_t first = 0;
  for (std::uint32_t group = 0; group < g.group_rows.size(); first += g.group_rows[group++]) {
    const std::uint32_t rows = g.group_rows[group];
    for (std::uint32_t r = 0; r < rows; ++r) {
      if (r % step != 0 && r + 1 != rows) continue;
      const std::string difference = compare_row(g, inputs, first + r, group, c);
      if (!difference.empty()) return fmt::format("group {} {}", group, difference);
    }
  }
  return {};
}

}  // namespace cm384::reference
