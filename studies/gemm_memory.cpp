#include "studies/gemm_memory.h"

#include <algorithm>

namespace cm384::studies {
namespace {

std::uint32_t element_bytes(const cm384_gemm& gemm) {
  return gemm.type == CM384_GEMM_INT8 ? 1 : 2;
}

std::uint64_t allocate(host::Runtime& runtime, int die, std::uint64_t bytes) {
  return runtime.allocate(die, std::max<std::uint64_t>(bytes, 512), 512);
}

}  // namespace

cm384_gemm place_gemm(host::Runtime& runtime, int die, const GemmShape& shape,
                      const cm384_gemm_tiling& tiling, bool b_nz, bool full) {
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
  a.b = allocate(runtime, die, b_bytes);
  a.channel_scales = allocate(runtime, die, scale_bytes);
  a.workspace = allocate(runtime, die, CM384_GEMM_WORKSPACE(tiling) * shape.blocks);
  if (full) return a;
  runtime.mark_payload(a.b, b_bytes);
  runtime.mark_payload(a.channel_scales, scale_bytes);
  return a;
}

void put_b(host::Runtime& runtime, const cm384_gemm& a, std::span<const std::byte> b) {
  if (a.b_nz == 0) return runtime.copy_in(a.b, b);
  const std::uint64_t row_bytes = std::uint64_t{a.k} * element_bytes(a), group_bytes = a.n * row_bytes;
  for (std::uint64_t g = 0; g < a.groups; ++g) {
    const auto nz = reference::to_nz(b.subspan(g * group_bytes, group_bytes), a.n, row_bytes);
    runtime.copy_in(a.b + g * nz.size(), nz);
  }
}

GemmMemory::GemmMemory(host::Runtime& runtime, const reference::GemmCase& gemm,
                       const cm384_gemm_tiling& tiling, int blocks, bool b_nz, bool full) {
  const GemmShape shape{gemm.group_rows, gemm.n, gemm.k, gemm.type, static_cast<std::uint32_t>(blocks)};
  const std::uint64_t a_bytes = gemm.rows() * gemm.k * gemm.element_bytes();
  const std::uint64_t a_address = allocate(runtime, 0, a_bytes);
  cm384_gemm& a = arguments;
  a = place_gemm(runtime, 0, shape, tiling, b_nz, full);
  a.a = a_address;
  a.c = allocate(runtime, 0, gemm.rows() * a.c_pitch);
  a.group_rows = allocate(runtime, 0, a.groups * 4ull);
  a.token_scales = allocate(runtime, 0, gemm.rows() * 4);
  runtime.put(a.group_rows, std::span<const std::uint32_t>(gemm.group_rows));
  if (full) return;
  runtime.mark_payload(a.a, a_bytes);
  runtime.mark_payload(a.token_scales, gemm.rows() * 4);
}

void GemmMemory::put(host::Runtime& runtime, const reference::GemmInputs& inputs) const {
  const cm384_gemm& a = arguments;
  runtime.copy_in(a.a, inputs.a);
  runtime.put(a.token_scales, std::span<const float>(inputs.token_scales));
  runtime.put(a.channel_scales, std::span<const float>(inputs.channel_scales));
  put_b(runtime, a, inputs.b);
}

}  // namespace cm384::studies
