#include "workloads/operators/reference/product_accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

constexpr double kMostMultiplied = 5e8;  // products of one operator that are computed again

double rounded(double value) {
  return of_bf16(to_bf16(static_cast<float>(value)));
}

// A vector as it is and as BF16 arithmetic has it.
struct Both {
  explicit Both(std::size_t size = 0) : exact(size), bf16(size) {}
  explicit Both(std::span<const float> row) : Both(row.size()) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      exact[i] = row[i];
      bf16[i] = rounded(row[i]);
    }
  }

  std::vector<double> exact, bf16;
};

double sum_products(const std::vector<double>& x, const double* y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// Rows of weights of one group times some x.
class Weights {
 public:
  Weights(const GemmCase& gemm, const DrawnOperands& drawn, std::uint32_t group)
      : n_(gemm.n),
        both_(std::span(drawn.b).subspan(std::uint64_t{group} * gemm.n * gemm.k,
                                         std::uint64_t{gemm.n} * gemm.k)) {}

  Both multiply(const Both& x) const {
    Both made(n_);
    const std::size_t k = x.exact.size();
    for (std::size_t j = 0; j < n_; ++j) {
      made.exact[j] = sum_products(x.exact, &both_.exact[j * k]);
      made.bf16[j] = rounded(sum_products(x.bf16, &both_.bf16[j * k]));
    }
    return made;
  }

 private:
  std::size_t n_;
  Both both_;
};

void compare(StageAccuracy& stage, const Both& wanted, std::size_t i, double got) {
  stage.exact.add(got, wanted.exact[i]);
  stage.bf16.add(got, wanted.bf16[i]);
  stage.of_bf16.add(wanted.bf16[i], wanted.exact[i]);
}

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
  std::optional<Weights> weights;
  std::optional<std::uint32_t> held;
  for_rows(gemm, 2.0 * gemm.n * gemm.k, [&](std::uint32_t group, std::uint64_t row) {
    if (held != group) weights.emplace(gemm, drawn, group);
    held = group;
    const Both wanted = weights->multiply(Both(row_of(drawn, gemm, row)));
    for (std::uint32_t j = 0; j < gemm.n; ++j) compare(stage, wanted, j, of_bf16(c[row * gemm.n + j]));
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
  std::optional<Weights> before, behind;
  std::optional<std::uint32_t> held;
  for_rows(down, 6.0 * down.n * width, [&](std::uint32_t group, std::uint64_t row) {
    if (held != group) {
      before.emplace(gate_up, gate_up_drawn, group);
      behind.emplace(down, down_drawn, group);
    }
    held = group;
    const Both products = before->multiply(Both(row_of(gate_up_drawn, gate_up, row)));
    for (std::uint32_t j = 0; j < gate_up.n; ++j)
      compare(first, products, j, of_bf16(got.gate_up[row * gate_up.n + j]));
    Both active(width);
    for (std::uint32_t i = 0; i < width; ++i) {
      const auto silu = [](double gate) { return gate / (1 + std::exp(-gate)); };
      active.exact[i] = silu(products.exact[i]) * products.exact[width + i];
      active.bf16[i] = rounded(rounded(silu(products.bf16[i])) * products.bf16[width + i]);
      compare(between, active, i, got.activations[row * width + i] * double{got.scales[row]});
    }
    const std::vector<float> quantised(active.exact.begin(), active.exact.end());
    crest.add(quantised);
    const Both out = behind->multiply(active);
    for (std::uint32_t j = 0; j < down.n; ++j) compare(last, out, j, of_bf16(got.out[row * down.n + j]));
  });
  first.crest = crest_of(gate_up_drawn.a, gate_up.k);
  first.weights_crest = crest_of(gate_up_drawn.b, gate_up.k);
  between.crest = crest.value();
  last.weights_crest = crest_of(down_drawn.b, down.k);
  return {first, between, last};
}

}  // namespace cm384::reference
