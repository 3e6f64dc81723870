// Weights of 4 bits in a grouped matrix multiplication (CM384_GEMM_INT4): to tiles and copies it is one of
// INT8 with twice the rows and half of k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "firmware/abi/gemm.h"
#include "workloads/operators/gemm/tiling.h"

namespace cm384::operators {

// Rows of A as the cube cores have them.
std::vector<std::uint32_t> in_two_rows(std::span<const std::uint32_t> group_rows);
// Multiply-adds of bytes, of which each has two of 4 bits.
CubeRates four_bit_rates(const Site& site);
// Memory that was placed with half of k.
void become_four_bits(cm384_gemm& gemm);
// -8..7 in a byte each, to two in a byte.
std::vector<std::byte> packed(std::span<const std::byte> weights);
// For each row of k.
std::vector<float> eight_times_sums(std::span<const std::byte> weights, std::uint32_t k);

}  // namespace cm384::operators
