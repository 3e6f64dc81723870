#include "workloads/operators/gemm/gemm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cm384::operators {

void Gemm::lay_out(const Site& site) {
  const GemmShape shape{setting_.group_rows,
                        setting_.n,
                        setting_.k,
                        setting_.type,
                        static_cast<std::uint32_t>(site.cores.size()),
                        rates_of(site, setting_.type)};
  const cm384_gemm_tiling tiling = setting_.tile_m != 0  ? tiling_of(shape, setting_.tile_m, setting_.tile_n)
                                   : setting_.basic_tile ? basic_tiling(shape)
                                                         : choose_tiling(shape);
  check_tiling(tiling, shape);
  arguments_ = place_whole_gemm(site.memory, case_, shape, tiling, setting_.b_nz, site.full);
  if (!site.full) return;
  if (setting_.drawn) drawn_ = draw_operands(case_, *setting_.drawn);
  inputs_ = drawn_ ? round_operands(case_, *drawn_) : reference::make_gemm_inputs(case_);
  write_inputs(runtime(), arguments_, *inputs_);
}

// The groups' rows stand right behind, in the last line of the arguments as far as there is room.
std::uint64_t Gemm::write_arguments(host::DeviceMemory& memory) const {
  cm384_gemm a = arguments_;
  const std::uint64_t at = memory.allocate(sizeof a + case_.group_rows.size() * 4);
  a.group_rows = at + sizeof a;
  memory.runtime().put(at, a);
  memory.runtime().put(a.group_rows, std::span<const std::uint32_t>(case_.group_rows));
  return at;
}

Work Gemm::work() const {
  const double rows = static_cast<double>(case_.rows()), element = case_.element_bytes();
  const double groups = static_cast<double>(setting_.group_rows.size());
  const double weights = groups * case_.n * case_.k * element;
  return {2.0 * rows * case_.n * case_.k, case_.type == CM384_GEMM_INT8,
          rows * case_.k * element + weights + rows * case_.n * 2, 1, weights};
}

std::string Gemm::size() const {
  return fmt::format("gemm {} x {} x {} {} {}, tile {}{}x{}", fmt::join(setting_.group_rows, ","), setting_.n,
                     setting_.k, case_.type == CM384_GEMM_INT8 ? "int8" : "bf16", setting_.b_nz ? "nz" : "nd",
                     setting_.basic_tile ? "basic " : "", setting_.tile_m, setting_.tile_n);
}

std::vector<reference::StageAccuracy> Gemm::accuracy() const {
  if (!drawn_) return {};
  return {
      product_accuracy(case_, *drawn_, runtime().get<std::uint16_t>(arguments_.c, case_.rows() * case_.n))};
}

std::string Gemm::check() const {
  return compare_gemm(case_, *inputs_, runtime().get<std::uint16_t>(arguments_.c, case_.rows() * case_.n));
}

}  // namespace cm384::operators
