// How a grouped matrix multiplication is cut for a die's cube cores: the host's side of kernel `gemm`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "firmware/abi/gemm.h"
#include "hw/machine.h"
#include "workloads/operators/operator.h"

namespace cm384::operators {

// What the estimates that cut operators need of a machine, per core cycle and cube core.
struct CubeRates {
  double macs = 4096;   // multiply-adds, of the type in hand
  double l2 = 100;      // bytes that it gets of L2 when its slices serve all cores
  double hbm = 32;      // bytes of what misses there
  double fixpipe = 64;  // bytes of results
};
CubeRates cube_rates(const hw::Machine& machine, cm384_gemm_type type);
// Rates of the machine that an operator is placed on.
CubeRates rates_of(const Site& site, cm384_gemm_type type);

struct GemmShape {
  std::span<const std::uint32_t> group_rows;
  std::uint32_t n = 0, k = 0;
  cm384_gemm_type type = CM384_GEMM_INT8;
  std::uint32_t blocks = 24;
  CubeRates rates{.macs = type == CM384_GEMM_INT8 ? 8192. : 4096.};

  std::uint32_t element_bytes() const { return type == CM384_GEMM_INT8 ? 1 : 2; }
};

// Up to 128 rows, and as many columns as give the busiest block the least to do by an estimate from the rates
// of the core's pipes. Wide tiles load less for a product, narrow ones divide better over the blocks.
cm384_gemm_tiling choose_tiling(const GemmShape& shape);
// Rows of 128 or more: tiles of 128x256, the basic block of public libraries, whatever they leave over,
// unless more than half of the blocks would have none. Otherwise as choose_tiling().
cm384_gemm_tiling basic_tiling(const GemmShape& shape);
// The tiling with a given tile: "128x152".
cm384_gemm_tiling tiling_of(const GemmShape& shape, std::uint32_t tile_m, std::uint32_t tile_n);
// Throws InputError, naming the buffer, where a tiling does not fit a cube core or its vector cores.
void check_tiling(const cm384_gemm_tiling& tiling, const GemmShape& shape);

// choose_tiling(), checked.
cm384_gemm_tiling checked_tiling(const GemmShape& shape);

}  // namespace cm384::operators
