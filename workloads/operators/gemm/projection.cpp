#include "workloads/operators/gemm/projection.h"

#include <vector>

namespace cm384::operators {

cm384_gemm place_projection(const Site& site, std::uint32_t tokens, std::uint32_t groups, std::uint32_t n,
                            std::uint32_t k, bool int8) {
  const std::vector<std::uint32_t> rows(groups, tokens);
  const cm384_gemm_type type = int8 ? CM384_GEMM_INT8 : CM384_GEMM_BF16;
  const GemmShape shape{
      rows, n, k, type, static_cast<std::uint32_t>(site.cores.size()), rates_of(site, type)};
  cm384_gemm gemm = place_gemm(site.memory, shape, checked_tiling(shape), true, site.full);
  gemm.group_rows = site.memory.allocate_lines(4);
  gemm.group_row_words = 0;  // all groups have all tokens
  site.memory.runtime().put(gemm.group_rows, tokens);
  if (int8) gemm.token_scales = site.memory.allocate_lines(tokens * 4ull);
  return gemm;
}

void write_weights(host::Runtime& runtime, const cm384_gemm& gemm, const reference::ProjectionWeights& b) {
  write_b(runtime, gemm, b.bytes());
  runtime.put(gemm.channel_scales, std::span<const float>(b.scales));
}

Work work_of(std::initializer_list<const cm384_gemm*> gemms, std::uint32_t tokens, double others) {
  Work work{0, false, others, static_cast<int>(gemms.size())};
  for (const cm384_gemm* gemm : gemms) {
    const double weights = static_cast<double>(gemm->groups) * gemm->n * gemm->k;
    work.operations += 2.0 * tokens * weights;
    work.weights += (gemm->type == CM384_GEMM_INT8 ? 1.0 : 2.0) * weights;
  }
  work.bytes += work.weights;
  return work;
}

}  // namespace cm384::operators
