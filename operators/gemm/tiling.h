// How a grouped matrix multiplication is cut for a die's cube cores: the host's side of kernel `gemm`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "firmware/abi/gemm.h"

namespace cm384::operators {

struct GemmShape {
  std::span<const std::uint32_t> group_rows;
  std::uint32_t n = 0, k = 0;
  cm384_gemm_type type = CM384_GEMM_INT8;
  std::uint32_t blocks = 24;

  std::uint32_t element_bytes() const { return type == CM384_GEMM_INT8 ? 1 : 2; }
};

// Up to 128 rows, and as many columns as give the busiest block the least to do by an estimate from the rates
// of the core's pipes. Wide tiles load less for a product, narrow ones divide better over the blocks.
cm384_gemm_tiling choose_tiling(const GemmShape& shape);
// The same with a tile given: "128x152".
cm384_gemm_tiling tiling_of(const GemmShape& shape, std::uint32_t tile_m, std::uint32_t tile_n);
// Throws InputError, naming the buffer, where a tiling does not fit a cube core or its vector cores.
void check_tiling(const cm384_gemm_tiling& tiling, const GemmShape& shape);

// choose_tiling(), checked.
cm384_gemm_tiling checked_tiling(const GemmShape& shape);

}  // namespace cm384::operators
