#include "workloads/operators/reference/product_accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "workloads/operators/reference/both_arithmetics.h"
#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr double kMostMultiplied = 5e8;  // products of one operator that are computed again

template <class Row>
void for_rows(const GemmCase& gemm, double products_of_row, Row&& look) {
  const auto step = static_cast<std::uint32_t>(
      std::max(1.0, std::ceil(static_cast<double>(gemm.rows()) * products_of_row / kMostMultiplied)));
  std::uint64_t first = 0;
  for (std::uint32_t group = 0; group < gemm.group_rows.size(); first += gemm.group_rows[group++]) {
    for (std::uint32_t r = 0; r < gemm.group_rows[group]; r += step) look(group, first + r);
  }
}

double crest_of(std::span<const float> rows, std::size_t width) {
  Crest crest;
  for (std::size_t at = 0; at < rows.size(); at += width) crest.add(rows.subspan(at, width));
  return crest.value();
}

std::span<const float> weights_of(const GemmCase& gemm, const DrawnOperands& drawn, std::uint32_t group) {
  const std::uint64_t elements = std::uint64_t{gemm.n} * gemm.k;
  return std::span(drawn.b).subspan(group * elements, elements);
}

std::span<const float> row_of(const DrawnOperands& drawn, const GemmCase& gemm, std::uint64_t row) {
  return std::span(drawn.a).subspan(row * gemm.k, gemm.k);
}

}  // namespace

DrawnOperands draw_operands(const GemmCase& gemm, const Draw& draw) {
  DrawnOperands drawn{draw_rows(draw, gemm.seed, 5, gemm.rows(), gemm.k),
                      draw_rows({}, gemm.seed, 6, gemm.group_rows.size() * gemm.n, gemm.k)};
  const float gain = 1 / std::sqrt(static_cast<float>(gemm.k));
  for (float& weight : drawn.b) weight *= gain;
  return drawn;
}

GemmInputs round_operands(const GemmCase& gemm, const DrawnOperands& drawn) {
  GemmInputs made;
  const auto to_bits = [](std::span<const float> values) {
    std::vector<std::uint16_t> bits(values.size());
    std::ranges::transform(values, bits.begin(), to_bf16);
    return bits;
  };
  const auto put = [](std::vector<std::byte>& into, std::size_t at, const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    std::memcpy(into.data() + at, bytes.data(), bytes.size());
  };
  made.a.resize(drawn.a.size() * gemm.element_bytes());
  made.b.resize(drawn.b.size() * gemm.element_bytes());
  made.token_scales.assign(gemm.rows(), 1);
  made.channel_scales.assign(gemm.group_rows.size() * gemm.n, 1);
  if (gemm.type != CM384_GEMM_INT8) {
    put(made.a, 0, to_bits(drawn.a));
    put(made.b, 0, to_bits(drawn.b));
    return made;
  }
  std::vector<std::int8_t> row(gemm.k);
  for (std::uint64_t r = 0; r < gemm.rows(); ++r) {
    made.token_scales[r] = quantise_row(to_bits(row_of(drawn, gemm, r)), row);
    put(made.a, r * gemm.k, row);
  }
  for (std::uint64_t r = 0; r < made.channel_scales.size(); ++r) {
    made.channel_scales[r] = quantise_values(std::span(drawn.b).subspan(r * gemm.k, gemm.k), row);
    put(made.b, r * gemm.k, row);
  }
  return made;
}

StageAccuracy product_accuracy(const GemmCase& gemm, const DrawnOperands& drawn,
                               std::span<const std::uint16_t> c) {
  StageAccuracy stage{"product"};
  std::optional<BothWeights> weights;
  std::optional<std::uint32_t> held;
  for_rows(gemm, 2.0 * gemm.n * gemm.k, [&](std::uint32_t group, std::uint64_t row) {
    if (held != group) weights.emplace(weights_of(gemm, drawn, group), gemm.n);
    held = group;
    const Both wanted = weights->multiply(Both(row_of(drawn, gemm, row)));
    for (std::uint32_t j = 0; j < gemm.n; ++j) compare_both(stage, wanted, j, of_bf16(c[row * gemm.n + j]));
  });
  if (gemm.type != CM384_GEMM_INT8) return stage;
  stage.crest = crest_of(drawn.a, gemm.k);
  stage.weights_crest = crest_of(drawn.b, gemm.k);
  return stage;
}

std::vector<StageAccuracy> ffn_accuracy(const GemmCase& gate_up, const DrawnOperands& gate_up_drawn,
                                        const GemmCase& down, const DrawnOperands& down_drawn,
                                        const FfnValues& got) {
  const std::uint32_t width = down.k;
  StageAccuracy first{"gate_up"}, between{"activation"}, last{"output"};
  Crest crest;
  std::optional<BothWeights> before, behind;
  std::optional<std::uint32_t> held;
  for_rows(down, 6.0 * down.n * width, [&](std::uint32_t group, std::uint64_t row) {
    if (held != group) {
      before.emplace(weights_of(gate_up, gate_up_drawn, group), gate_up.n);
      behind.emplace(weights_of(down, down_drawn, group), down.n);
    }
    held = group;
    const Both products = before->multiply(Both(row_of(gate_up_drawn, gate_up, row)));
    for (std::uint32_t j = 0; j < gate_up.n; ++j)
      compare_both(first, products, j, of_bf16(got.gate_up[row * gate_up.n + j]));
    const Both active = activate(products);
    for (std::uint32_t i = 0; i < width; ++i)
      compare_both(between, active, i, got.activations[row * width + i] * double{got.scales[row]});
    const std::vector<float> quantised(active.exact.begin(), active.exact.end());
    crest.add(quantised);
    const Both out = behind->multiply(active);
    for (std::uint32_t j = 0; j < down.n; ++j) compare_both(last, out, j, of_bf16(got.out[row * down.n + j]));
  });
  first.crest = crest_of(gate_up_drawn.a, gate_up.k);
  first.weights_crest = crest_of(gate_up_drawn.b, gate_up.k);
  between.crest = crest.value();
  last.weights_crest = crest_of(down_drawn.b, down.k);
  return {first, between, last};
}

}  // namespace cm384::reference
