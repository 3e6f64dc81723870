#include "workloads/operators/gemm/split.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text/error.h"

namespace cm384::operators {

void SplitGemm::lay_out(const Site& site) {
  if (case_.k % (16 * parts_) != 0)
    throw InputError(
        fmt::format("{} parts of k {}; allowed: equal ones of multiples of 16", parts_, case_.k));
  const std::uint32_t part = case_.k / parts_, rows = case_.group_rows[0];
  const std::vector<std::uint32_t> group_rows(parts_, rows);
  const GemmShape shape{group_rows,
                        case_.n,
                        part,
                        CM384_GEMM_BF16,
                        static_cast<std::uint32_t>(site.cores.size()),
                        rates_of(site, CM384_GEMM_BF16)};
  const std::uint64_t a_bytes = std::uint64_t{rows} * case_.k * 2;
  const std::uint64_t a = site.memory.allocate_lines(a_bytes);
  if (!site.full) runtime().mark_payload(a, a_bytes);
  cm384_gemm& gemm = arguments_.gemm;
  gemm = place_gemm(site.memory, shape, checked_tiling(shape), true, site.full);
  gemm.type = CM384_GEMM_BF16_PARTS;
  gemm.a = a;
  gemm.a_pitch = case_.k * 2ull;
  gemm.a_group = part * 2ull;
  gemm.c_pitch = case_.n * 4ull;
  gemm.c_group = rows * gemm.c_pitch;
  gemm.c = site.memory.allocate_lines(parts_ * gemm.c_group);
  gemm.group_rows = site.memory.put(rows);
  gemm.group_row_words = 0;
  arguments_.elements = std::uint64_t{rows} * case_.n;
  arguments_.c = site.memory.allocate_lines(arguments_.elements * 2);
  if (site.full) write_inputs();
}

// B part after part: n rows of each.
void SplitGemm::write_inputs() {
  inputs_ = reference::make_gemm_inputs(case_);
  runtime().copy_in(arguments_.gemm.a, inputs_->a);
  const std::uint64_t row = case_.k * 2ull, part = row / parts_;
  std::vector<std::byte> b(inputs_->b.size());
  for (std::uint64_t p = 0; p < parts_; ++p) {
    for (std::uint64_t n = 0; n < case_.n; ++n)
      std::memcpy(&b[(p * case_.n + n) * part], &inputs_->b[n * row + p * part], part);
  }
  write_b(runtime(), arguments_.gemm, b);
}

Work SplitGemm::work() const {
  const double rows = case_.group_rows[0], n = case_.n, k = case_.k;
  return {2 * rows * n * k, false, (rows * k + n * k + rows * n) * 2, 2};
}

std::string SplitGemm::size() const {
  return fmt::format("split gemm {} x {} x {} in {}", case_.group_rows[0], case_.n, case_.k, parts_);
}

std::string SplitGemm::check() const {
  return reference::compare_gemm(case_, *inputs_,
                                 runtime().get<std::uint16_t>(arguments_.c, arguments_.elements));
}

}  // namespace cm384::operators
