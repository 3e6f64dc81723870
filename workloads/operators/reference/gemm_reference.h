// Inputs of a grouped matrix multiplication and what must come out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "firmware/abi/gemm.h"

namespace cm384::reference {

struct GemmCase {
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> group_rows;
  std::uint32_t n = 0, k = 0;
  cm384_gemm_type type = CM384_GEMM_INT8;
  bool four_bits = false;  // of INT8: B is -8..7

  std::uint64_t rows() const;
  std::uint32_t element_bytes() const { return type == CM384_GEMM_INT8 ? 1 : 2; }
};

struct GemmInputs {
  std::vector<std::byte> a, b;  // row-major; b: n rows of k per group
  std::vector<float> token_scales, channel_scales;
};
GemmInputs make_gemm_inputs(const GemmCase& gemm);

// Compares C (BF16 bits, row-major) with the reference; empty when equal. INT8 is compared bit for bit. BF16
// is compared with sums in double precision: an element may be off by 2^-8 of its value and k * 2^-23 of the
// sum of its products' magnitudes. Of a large case it looks at the first and last row of each group and at
// rows evenly between.
std::string compare_gemm(const GemmCase& gemm, const GemmInputs& inputs, std::span<const std::uint16_t> c);

}  // namespace cm384::reference
