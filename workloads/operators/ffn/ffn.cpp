#include "workloads/operators/ffn/ffn.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/operators/reference/ffn_reference.h"

namespace cm384::operators {

Ffn::Ffn(const FfnSetting& setting, std::uint64_t seed)
    : setting_(setting),
      gate_up_{seed, setting.expert_rows, 2 * setting.width, setting.hidden, CM384_GEMM_INT8},
      down_{seed + 1, setting.expert_rows, setting.hidden, setting.width, CM384_GEMM_INT8} {}

void Ffn::lay_out(const Site& site) {
  const auto place = [&](const reference::GemmCase& gemm) {
    const GemmShape shape{
        gemm.group_rows,          gemm.n, gemm.k, gemm.type, static_cast<std::uint32_t>(site.cores.size()),
        rates_of(site, gemm.type)};
    return place_whole_gemm(site.memory, gemm, shape, checked_tiling(shape), true, site.full);
  };
  arguments_.gate_up = place(gate_up_);
  arguments_.down = place(down_);
  arguments_.width = setting_.width;
  if (!site.full) return;
  gate_up_inputs_ = make_gemm_inputs(gate_up_);
  down_inputs_ = make_gemm_inputs(down_);
  put_inputs(runtime(), arguments_.gate_up, *gate_up_inputs_);
  put_inputs(runtime(), arguments_.down, *down_inputs_);
}

Work Ffn::work() const {
  const double rows = static_cast<double>(gate_up_.rows()), hidden = setting_.hidden, width = setting_.width;
  const double weights = 3.0 * static_cast<double>(setting_.expert_rows.size()) * hidden * width;
  return {6.0 * rows * hidden * width, true, weights + rows * hidden * 3, 3, weights};
}

std::string Ffn::size() const {
  return fmt::format("ffn {} x {} x {}", fmt::join(setting_.expert_rows, ","), setting_.hidden,
                     setting_.width);
}

std::string Ffn::check() const {
  return compare_ffn(gate_up_, *gate_up_inputs_, down_, *down_inputs_,
                     runtime().get<std::uint16_t>(arguments_.down.c, down_.rows() * down_.n));
}

}  // namespace cm384::operators
