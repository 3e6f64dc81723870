// Products and networks on tensors drawn as real ones are, quantised as firmware quantises, and how far what
// comes out is from double precision and from BF16 arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/operators/reference/accuracy.h"
#include "workloads/operators/reference/gemm_reference.h"

namespace cm384::reference {

// Operands before any rounding, row-major as GemmInputs has them.
struct DrawnOperands {
  std::vector<float> a, b;
};
// Rows of A as `draw` says; B normal, of variance 1 / k.
DrawnOperands draw_operands(const GemmCase& gemm, const Draw& draw);

// What is multiplied: BF16, or for INT8 rows of A rounded to BF16 and then quantised with a scale each, as
// kernels do (quantise.h), and rows of B, columns of the product, with a scale each.
GemmInputs round_operands(const GemmCase& gemm, const DrawnOperands& drawn);

// Of C, BF16 bits. Of a large case it looks at rows evenly between.
StageAccuracy product_accuracy(const GemmCase& gemm, const DrawnOperands& drawn,
                               std::span<const std::uint16_t> c);

// What kernel `ffn` left: BF16 bits of both products, and the INT8 rows between them with their scales.
struct FfnValues {
  std::span<const std::uint16_t> gate_up;
  std::span<const std::int8_t> activations;
  std::span<const float> scales;
  std::span<const std::uint16_t> out;
};
// Its first product, silu(gate) x up in INT8, and its output, each with all the noise before it. `gate_up`
// and `down` are drawn; A of `down` is not used. Looks at rows evenly between.
std::vector<StageAccuracy> ffn_accuracy(const GemmCase& gate_up, const DrawnOperands& gate_up_drawn,
                                        const GemmCase& down, const DrawnOperands& down_drawn,
                                        const FfnValues& got);

}  // namespace cm384::reference
