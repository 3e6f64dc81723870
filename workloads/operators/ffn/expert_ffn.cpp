#include "workloads/operators/ffn/expert_ffn.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "workloads/operators/gemm/memory.h"

namespace cm384::operators {

std::uint64_t ExpertFfn::rows() const {
  if (!link_)
    return std::accumulate(setting_.expert_rows.begin(), setting_.expert_rows.end(), std::uint64_t{0});
  const cm384_dispatch& d = link_->dispatch;
  return cm384_dispatch_max_rows(d.ranks, d.own_experts, d.max_tokens, d.top_k + d.shared);
}

cm384_gemm ExpertFfn::multiplication(const Site& site, std::uint32_t n, std::uint32_t k) const {
  const std::vector<std::uint32_t> share(setting_.expert_rows.size(), setting_.tile_rows);
  const cm384_gemm_type type = setting_.bf16 ? CM384_GEMM_BF16 : CM384_GEMM_INT8;
  const GemmShape shape{
      share, n, k, type, static_cast<std::uint32_t>(site.cores.size()), rates_of(site, type)};
  cm384_gemm a = place_gemm(site.memory, shape, checked_tiling(shape), true, site.full);
  a.group_row_words = 2;  // counts have 64 bits, as dispatch leaves them
  return a;
}

void ExpertFfn::lay_out(const Site& site) {
  host::DeviceMemory& memory = site.memory;
  const std::uint64_t all = rows(), experts = setting_.expert_rows.size();
  const auto region = [&](std::uint64_t linked, std::uint64_t bytes) {
    return link_ ? memory.use(linked, bytes) : memory.allocate_lines(bytes);
  };
  const Link link = link_.value_or(Link{});
  cm384_ffn& a = arguments_.network;
  a.width = setting_.width;
  a.gate_up = multiplication(site, 2 * setting_.width, setting_.hidden);
  const std::uint64_t x = region(link.dispatch.expand_x, all * setting_.hidden),
                      scales = region(link.dispatch.expand_scales, all * 4);
  if (setting_.bf16) {
    arguments_.x = x;
    arguments_.scales = scales;
    a.gate_up.a = memory.allocate_lines(all * a.gate_up.a_pitch);
  } else {
    a.gate_up.a = x;
    a.gate_up.token_scales = scales;
  }
  a.gate_up.group_rows = region(link.dispatch.expert_token_nums, experts * 8);
  a.gate_up.c = memory.allocate_lines(all * a.gate_up.c_pitch);
  a.down = multiplication(site, setting_.hidden, setting_.width);
  a.down.a = memory.allocate_lines(all * a.down.a_pitch);
  a.down.token_scales = setting_.bf16 ? 0 : memory.allocate_lines(all * 4);
  a.down.group_rows = a.gate_up.group_rows;
  a.down.c = region(link.combine.expert_x, all * a.down.c_pitch);
  if (link_) return;
  const std::vector<std::int64_t> counts(setting_.expert_rows.begin(), setting_.expert_rows.end());
  runtime().put(a.gate_up.group_rows, std::span<const std::int64_t>(counts));
  runtime().mark_payload(x, all * setting_.hidden);
  runtime().mark_payload(scales, all * 4);
}

Work ExpertFfn::work() const {
  double rows = 0;
  for (const std::uint32_t expert : setting_.expert_rows) rows += expert;
  const double hidden = setting_.hidden, width = setting_.width;
  const double element = setting_.bf16 ? 2 : 1;
  const double weights = element * 3 * static_cast<double>(setting_.expert_rows.size()) * hidden * width;
  return {6.0 * rows * hidden * width, !setting_.bf16, weights + rows * hidden * 3, 3, weights};
}

std::string ExpertFfn::size() const {
  return fmt::format("experts {} for {}, {} x {}{}", fmt::join(setting_.expert_rows, ","), setting_.tile_rows,
                     setting_.hidden, setting_.width, setting_.bf16 ? " bf16" : "");
}

}  // namespace cm384::operators
