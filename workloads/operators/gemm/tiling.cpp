#include "workloads/operators/gemm/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"

namespace cm384::operators {
namespace {

// firmware/abi/isa.h.
constexpr std::uint32_t kL1 = 512 * 1024, kL0 = 64 * 1024, kL0c = 128 * 1024;
// Bytes of k: L0A and L0B hold two steps of up to 256 rows; a row of A and B comes in whole requests of
// memory.
constexpr std::uint32_t kL0K = 256, kL1K = 512;
constexpr std::uint32_t kMostL1K = 4096, kMostL1Buffers = 4, kMostPlaces = 4;
constexpr std::uint32_t kMostTileM = 128, kMostTileN = 512;  // that choose_tiling() looks at
constexpr std::uint32_t kBasicM = 128, kBasicN = 256;

std::uint32_t up(std::uint32_t value, std::uint32_t to) {
  return (value + to - 1) / to * to;
}

std::uint64_t tiles_of(const GemmShape& shape, std::uint32_t tile_m, std::uint32_t tile_n) {
  std::uint64_t tiles = 0;
  for (const std::uint32_t rows : shape.group_rows) tiles += (rows + tile_m - 1) / tile_m;
  return tiles * ((shape.n + tile_n - 1) / tile_n);
}

// Core cycles of the busiest block, roughly, with every tile as long as a whole one. The matrix unit, the way
// from L2 to L1 and the fixpipe work at one time; what HBM brings once comes at its own rate (all of
// ascend-facts A5, A6); a tile that leaves no place free in L0C makes the matrix unit wait until a part of it
// is out.
double cycles(const GemmShape& shape, const cm384_gemm_tiling& t) {
  constexpr double kRequest = 512, kFixpipeLatency = 500;
  const CubeRates& rates = shape.rates;
  const std::uint32_t largest = *std::max_element(shape.group_rows.begin(), shape.group_rows.end());
  const double m = up(t.tile_m, 16), n = up(t.tile_n, 16), row = up(shape.k * shape.element_bytes(), 32);
  const double matrix = m * n * (row / shape.element_bytes()) / rates.macs;
  // Columns of B are 32 B wide and begin anywhere in a request where tiles are not whole fractals.
  const double requests = m * row / kRequest + row / 32 * (n * 32 / kRequest + (t.tile_n % 16 == 0 ? 0 : 1));
  const std::uint32_t shared_b = (largest + t.tile_m - 1) / t.tile_m;
  const std::uint32_t shared_a = (shape.n + t.tile_n - 1) / t.tile_n;
  const double from_hbm = m * row / shared_a + n * row / shared_b;
  const double load = requests * kRequest / rates.l2 + from_hbm * (1 / rates.hbm - 1 / rates.l2);
  const double fixpipe = m * n * (shape.type == CM384_GEMM_INT8 ? 4 : 2) / rates.fixpipe;
  const double exposed = t.places >= 2 * t.parts ? 0
                         : t.places > t.parts    ? fixpipe / (2 * t.parts)
                                                 : fixpipe / t.parts + kFixpipeLatency;
  // The scalar unit's instructions: of a tile, of a piece of k in L1, of a step in L0.
  constexpr double kTileIssue = 600, kPieceIssue = 120, kStepIssue = 70;
  const double pieces = std::ceil(row / t.l1_k), steps = std::ceil(row / t.l0_k) * t.parts;
  const double issue = pieces * kPieceIssue + steps * kStepIssue;
  const std::uint64_t rounds = (tiles_of(shape, t.tile_m, t.tile_n) + shape.blocks - 1) / shape.blocks;
  // The first piece of k has nothing to hide behind.
  return static_cast<double>(rounds) * (std::max({matrix + exposed, load, fixpipe, issue}) + kTileIssue) +
         load * std::min(1.0, t.l1_k / row);
}

// What does not fit, by name; empty: nothing.
std::string misfit(const cm384_gemm_tiling& t, const GemmShape& shape) {
  const std::uint64_t m = up(t.tile_m, 16), n = up(t.tile_n, 16), part = t.part_n;
  const bool int8 = shape.type == CM384_GEMM_INT8;
  const struct {
    const char* what;
    std::uint64_t bytes, limit;
  } buffers[] = {{"half of L0A", m * t.l0_k, kL0 / 2},
                 {"half of L0B", part * t.l0_k, kL0 / 2},
                 {"L0C", m * part * 4 * t.places, kL0c},
                 {"L1", (m + n) * t.l1_k * t.l1_buffers, kL1},
                 {"the UBuffer", int8 ? CM384_GEMM_UBUFFER(t) : 0, CM384_UBUFFER_BYTES}};
  for (const auto& b : buffers) {
    if (b.bytes > b.limit)
      return fmt::format("tile {}x{}: {} would hold {} B; allowed: {} B", t.tile_m, t.tile_n, b.what, b.bytes,
                         b.limit);
  }
  return {};
}

}  // namespace

CubeRates cube_rates(const hw::Machine& machine, cm384_gemm_type type) {
  // What is left of a port's rate when the slices of L2 serve all cores, as measured on the 910C: 100 of 110
  // B.
  constexpr double kShare = 100, kOf = 110;
  const hw::MacsPerCycle& macs = machine.cube_core.macs_per_cycle;
  const hw::OnDieNetwork& network = machine.memory.on_die_network;
  const double cycles = static_cast<double>(machine.die.clock.hertz),
               port_cycles = static_cast<double>(network.clock.hertz) / cycles;
  const double share_of_hbm =
      static_cast<double>(hw::peaks_of(machine).hbm.bytes_per_second) / cycles / std::max(1, machine.die.aic);
  return {.macs = static_cast<double>(type == CM384_GEMM_INT8 ? macs.int8 : macs.bf16),
          .l2 = network.l2_read_bytes_per_cycle * port_cycles * kShare / kOf,
          .hbm = std::min(network.hbm_read_bytes_per_cycle * port_cycles, share_of_hbm),
          .fixpipe = static_cast<double>(machine.cube_core.fixpipe_bytes_per_cycle)};
}

CubeRates rates_of(const Site& site, cm384_gemm_type type) {
  return cube_rates(site.memory.runtime().machine().parameters(), type);
}

cm384_gemm_tiling tiling_of(const GemmShape& shape, std::uint32_t tile_m, std::uint32_t tile_n) {
  cm384_gemm_tiling t{};
  t.tile_m = tile_m;
  t.tile_n = tile_n;
  t.l1_k = kL1K;
  // Where two tiles do not fit L0C, halves take turns there.
  t.parts = 2 * up(tile_m, 16) * up(tile_n, 16) * 4 <= kL0c ? 1 : 2;
  t.part_n = up((tile_n + t.parts - 1) / t.parts, 16);
  t.places = std::clamp(kL0c / (up(tile_m, 16) * t.part_n * 4), t.parts, kMostPlaces);
  t.l0_k = kL0K;
  // Small tiles take more of k at a time: fewer instructions for the scalar unit.
  const std::uint32_t row = up(shape.k * shape.element_bytes(), 32), lines = up(tile_m, 16) + up(tile_n, 16);
  while (t.l1_k < std::min(row, kMostL1K) && 2 * t.l1_k * lines * kMostL1Buffers <= kL1) t.l1_k *= 2;
  while (2 * t.l0_k <= t.l1_k && std::max(up(tile_m, 16), t.part_n) * 2 * t.l0_k <= kL0 / 2) t.l0_k *= 2;
  while (t.l0_k > 32 && std::max(up(tile_m, 16), t.part_n) * t.l0_k > kL0 / 2) t.l0_k /= 2;
  t.l1_buffers = std::clamp(kL1 / (lines * t.l1_k), 1u, kMostL1Buffers);
  // Blocks that work at one time form about a square of tiles: A and B are each shared by as many.
  t.band = std::max(1u, static_cast<std::uint32_t>(std::lround(std::sqrt(shape.blocks))));
  t.vector_rows = std::min(up((tile_m + 1) / 2, 8), 248u);
  while (t.vector_rows > 8 && CM384_GEMM_UBUFFER(t) > CM384_UBUFFER_BYTES) t.vector_rows -= 8;
  return t;
}

cm384_gemm_tiling choose_tiling(const GemmShape& shape) {
  const std::uint32_t largest =
      shape.group_rows.empty() ? 0 : *std::max_element(shape.group_rows.begin(), shape.group_rows.end());
  const std::uint32_t m = std::clamp(up(largest, 16), 16u, kMostTileM);
  cm384_gemm_tiling best = tiling_of(shape, m, 16);
  if (largest == 0) return best;
  for (std::uint32_t n = 32; n <= std::min(kMostTileN, up(shape.n, 16)); n += 16) {
    const cm384_gemm_tiling tiling = tiling_of(shape, m, n);
    if (misfit(tiling, shape).empty() && cycles(shape, tiling) <= cycles(shape, best)) best = tiling;
  }
  return best;
}

cm384_gemm_tiling basic_tiling(const GemmShape& shape) {
  const bool tall = std::ranges::all_of(shape.group_rows, [](std::uint32_t rows) { return rows >= kBasicM; });
  return tall && 2 * tiles_of(shape, kBasicM, kBasicN) >= shape.blocks ? tiling_of(shape, kBasicM, kBasicN)
                                                                       : choose_tiling(shape);
}

void check_tiling(const cm384_gemm_tiling& t, const GemmShape& shape) {
  if (t.tile_m == 0 || t.tile_n == 0 || t.tile_n % 8 != 0)
    throw InputError(
        fmt::format("tile {}x{}: allowed: rows from 1, columns in multiples of 8", t.tile_m, t.tile_n));
  if (t.l0_k == 0 || t.l0_k % 32 != 0 || t.l1_k % t.l0_k != 0 || t.l1_k == 0 || t.l1_buffers == 0 ||
      t.l1_buffers > 6 || t.part_n == 0 || t.part_n % 16 != 0 || t.part_n * t.parts < t.tile_n ||
      t.places < t.parts || t.places > 8 || t.band == 0)
    throw InputError(
        fmt::format("tile {}x{}: pieces of k are multiples of 32 B, of L1 multiples of those of L0; 1 to "
                    "6 buffers in L1; a place in L0C for each part of the tile, up to 8",
                    t.tile_m, t.tile_n));
  if (shape.type == CM384_GEMM_INT8 && (t.vector_rows == 0 || t.vector_rows % 8 != 0 || t.vector_rows > 248))
    throw InputError(
        fmt::format("tile {}x{}: rows of a vector core in multiples of 8 up to 248", t.tile_m, t.tile_n));
  const std::string text = misfit(t, shape);
  if (!text.empty()) throw InputError(text);
}

cm384_gemm_tiling checked_tiling(const GemmShape& shape) {
  const cm384_gemm_tiling tiling = choose_tiling(shape);
  check_tiling(tiling, shape);
  return tiling;
}

}  // namespace cm384::operators
