// What an expert's feed-forward network must give.
#pragma once

#include "workloads/operators/reference/gemm_reference.h"

namespace cm384::reference {

// Compares the output (BF16 bits, rows x hidden) with double precision from the INT8 inputs on. `gate_up` and
// `down` hold the weights; the rows of `down.a` and its token scales are not used. Bounds of an element: 2^-7
// of it for the roundings to BF16, and for each of the hidden activations half a step of its row's
// quantisation and 2^-6 of its value (rounding of gate and up to BF16), times its weight. Looks at the first
// and last row of each group and at some between.
std::string compare_ffn(const GemmCase& gate_up, const GemmInputs& gate_up_inputs, const GemmCase& down,
                        const GemmInputs& down_inputs, std::span<const std::uint16_t> out);

// The same of BF16 weights and rows. Bounds: of gate and up 2^-8 of them and k * 2^-23 of the sum of their
// products' magnitudes, for roundings to BF16 and sums in FP32, which the slope of silu, at most 1.1, passes
// on; 2^-8 of each activation for its rounding; 2^-7 of the output and its own sum in FP32.
std::string compare_ffn_bf16(const GemmCase& gate_up, const GemmInputs& gate_up_inputs, const GemmCase& down,
                             const GemmInputs& down_inputs, std::span<const std::uint16_t> out);

}  // namespace cm384::reference
