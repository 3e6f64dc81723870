// Inputs of the backward pass of attention and what must come out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/operators/reference/attention_reference.h"

namespace cm384::reference {

// As firmware/abi/flash_backward.h has them.
struct BackwardInputs {
  AttentionInputs forward;
  std::vector<std::uint16_t> out;       // of the forward pass, in double precision, then BF16
  std::vector<std::uint16_t> gradient;  // of it
  std::vector<float> sums;
};
BackwardInputs make_backward_inputs(const AttentionCase& attention);

// Gradients of queries, keys and values one behind the other against sums in double precision. An element may
// be off by 2^-8 of its value, for its own rounding, and of the sum of its terms' magnitudes, for the
// rounding of probabilities and of gradients of scores; these by 2^-20 of what they are the difference of,
// besides. Empty when all are within.
std::string compare_backward(const AttentionCase& attention, const BackwardInputs& inputs,
                             std::span<const std::uint16_t> gradients);

}  // namespace cm384::reference
