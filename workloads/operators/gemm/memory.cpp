#include "workloads/operators/gemm/memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace cm384::operators {
namespace {

// Of k elements of A or B.
std::uint64_t row_bytes_of(const cm384_gemm& gemm) {
  if (gemm.type == CM384_GEMM_INT4) return gemm.k / 2;
  return std::uint64_t{gemm.k} * (gemm.type == CM384_GEMM_INT8 ? 1 : 2);
}

// A matrix of `rows` rows of `row_bytes` as NZ: columns of 32 B blocks, each rows rounded up to 16 high;
// zeros where there is no element.
std::vector<std::byte> to_nz(std::span<const std::byte> matrix, std::uint64_t rows, std::uint64_t row_bytes) {
  const std::uint64_t height = (rows + 15) / 16 * 16, columns = (row_bytes + 31) / 32;
  std::vector<std::byte> nz(columns * height * 32);
  for (std::uint64_t r = 0; r < rows; ++r) {
    for (std::uint64_t c = 0; c < columns; ++c) {
      std::memcpy(&nz[(c * height + r) * 32], &matrix[r * row_bytes + c * 32],
                  std::min<std::uint64_t>(32, row_bytes - c * 32));
    }
  }
  return nz;
}

}  // namespace

cm384_gemm place_gemm(host::DeviceMemory& memory, const GemmShape& shape, const cm384_gemm_tiling& tiling,
                      bool b_nz, bool full) {
  cm384_gemm a{};
  a.groups = static_cast<std::uint32_t>(shape.group_rows.size());
  a.n = shape.n;
  a.k = shape.k;
  a.type = shape.type;
  a.b_nz = b_nz ? 1 : 0;
  a.group_row_words = 1;
  a.tiling = tiling;
  a.a_pitch = std::uint64_t{shape.k} * shape.element_bytes();
  a.c_pitch = shape.n * 2ull;
  const std::uint64_t b_bytes =
      a.groups * (b_nz ? (shape.n + 15ull) / 16 * 16 * ((a.a_pitch + 31) / 32 * 32) : shape.n * a.a_pitch);
  const std::uint64_t scale_bytes = shape.type == CM384_GEMM_INT8 ? std::uint64_t{a.groups} * shape.n * 4 : 0;
  a.b = memory.allocate_weights(b_bytes);
  a.channel_scales = memory.allocate_weights(scale_bytes);
  a.workspace = memory.allocate_lines(CM384_GEMM_WORKSPACE(tiling) * shape.blocks);
  if (full) return a;
  memory.runtime().mark_payload(a.b, b_bytes);
  memory.runtime().mark_payload(a.channel_scales, scale_bytes);
  return a;
}

void write_b(host::Runtime& runtime, const cm384_gemm& a, std::span<const std::byte> b) {
  if (a.b_nz == 0) return runtime.copy_in(a.b, b);
  const std::uint64_t row_bytes = row_bytes_of(a), group_bytes = a.n * row_bytes;
  for (std::uint64_t g = 0; g < a.groups; ++g) {
    const auto nz = to_nz(b.subspan(g * group_bytes, group_bytes), a.n, row_bytes);
    runtime.copy_in(a.b + g * nz.size(), nz);
  }
}

cm384_gemm place_whole_gemm(host::DeviceMemory& memory, const reference::GemmCase& gemm,
                            const GemmShape& shape, const cm384_gemm_tiling& tiling, bool b_nz, bool full) {
  const std::uint64_t a_bytes = gemm.rows() * gemm.k * gemm.element_bytes();
  const std::uint64_t a_address = memory.allocate_lines(a_bytes);
  cm384_gemm a = place_gemm(memory, shape, tiling, b_nz, full);
  a.a = a_address;
  a.c = memory.allocate_lines(gemm.rows() * a.c_pitch);
  a.group_rows = memory.allocate_lines(a.groups * 4ull);
  a.token_scales = memory.allocate_lines(gemm.rows() * 4);
  memory.runtime().put(a.group_rows, std::span<const std::uint32_t>(gemm.group_rows));
  if (full) return a;
  memory.runtime().mark_payload(a.a, a_bytes);
  memory.runtime().mark_payload(a.token_scales, gemm.rows() * 4);
  return a;
}

void write_inputs(host::Runtime& runtime, const cm384_gemm& a, const reference::GemmInputs& inputs) {
  runtime.copy_in(a.a, inputs.a);
  runtime.put(a.token_scales, std::span<const float>(inputs.token_scales));
  runtime.put(a.channel_scales, std::span<const float>(inputs.channel_scales));
  write_b(runtime, a, inputs.b);
}

}  // namespace cm384::operators
