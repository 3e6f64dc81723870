#include "testbenches/studies/gemm_memory.h"

#include <algorithm>

namespace cm384::studies {

GemmMemory::GemmMemory(supernode::Runtime& runtime, const reference::GemmCase& gemm,
                       const cm384_gemm_tiling& tiling, int blocks, bool b_nz, bool full) {
  const auto allocate = [&runtime](std::uint64_t bytes) {
    return runtime.allocate(0, std::max<std::uint64_t>(bytes, 512), 512);
  };
  const std::uint64_t groups = gemm.group_rows.size(),
                      row_bytes = std::uint64_t{gemm.k} * gemm.element_bytes();
  a_bytes = gemm.rows() * row_bytes;
  b_bytes = groups * (b_nz ? (gemm.n + 15ull) / 16 * 16 * ((row_bytes + 31) / 32 * 32) : gemm.n * row_bytes);
  cm384_gemm& a = arguments;
  a.a = allocate(a_bytes);
  a.b = allocate(b_bytes);
  a.c = allocate(gemm.rows() * gemm.n * 2);
  a.group_rows = allocate(groups * 4);
  a.token_scales = allocate(gemm.rows() * 4);
  a.channel_scales = allocate(groups * gemm.n * 4);
  a.workspace = allocate(CM384_GEMM_WORKSPACE(tiling) * static_cast<std::uint64_t>(blocks));
  a.groups = static_cast<std::uint32_t>(groups);
  a.n = gemm.n;
  a.k = gemm.k;
  a.type = gemm.type;
  a.b_nz = b_nz ? 1 : 0;
  a.group_row_words = 1;
  a.tiling = tiling;
  runtime.put(a.group_rows, std::span<const std::uint32_t>(gemm.group_rows));
  if (full) return;
  runtime.mark_payload(a.a, a_bytes);
  runtime.mark_payload(a.b, b_bytes);
  runtime.mark_payload(a.token_scales, gemm.rows() * 4);
  runtime.mark_payload(a.channel_scales, groups * gemm.n * 4);
}

std::uint64_t GemmMemory::put_arguments(supernode::Runtime& runtime) const {
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);
  return block;
}

void GemmMemory::put(supernode::Runtime& runtime, const reference::GemmCase& gemm,
                     const reference::GemmInputs& inputs) const {
  const cm384_gemm& a = arguments;
  runtime.copy_in(a.a, inputs.a);
  runtime.put(a.token_scales, std::span<const float>(inputs.token_scales));
  runtime.put(a.channel_scales, std::span<const float>(inputs.channel_scales));
  if (a.b_nz == 0) return runtime.copy_in(a.b, inputs.b);
  const std::uint64_t row_bytes = std::uint64_t{gemm.k} * gemm.element_bytes(),
                      group_bytes = gemm.n * row_bytes;
  for (std::uint64_t g = 0; g < a.groups; ++g) {
    const auto nz =
        reference::to_nz(std::span(inputs.b).subspan(g * group_bytes, group_bytes), gemm.n, row_bytes);
    runtime.copy_in(a.b + g * nz.size(), nz);
  }
}

}  // namespace cm384::studies
