#include "workloads/operators/ffn/expert_ffn.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <span>

#include "workloads/operators/gemm/four_bits.h"
#include "workloads/operators/gemm/memory.h"

namespace cm384::operators {

std::uint64_t ExpertFfn::rows() const {
  if (!link_)
    return std::accumulate(setting_.expert_rows.begin(), setting_.expert_rows.end(), std::uint64_t{0});
  const cm384_dispatch& d = link_->dispatch;
  return cm384_dispatch_max_rows(d.ranks, d.own_experts, d.max_tokens, d.top_k + d.shared);
}

cm384_gemm ExpertFfn::multiplication(const Site& site, std::uint32_t n, std::uint32_t k) const {
  const std::uint32_t rows = setting_.int4 ? 2 : 1;  // of A, for each
  const std::vector<std::uint32_t> share(setting_.expert_rows.size(), rows * setting_.tile_rows);
  const cm384_gemm_type type = setting_.bf16 ? CM384_GEMM_BF16 : CM384_GEMM_INT8;
  const GemmShape shape{share,
                        n,
                        k / rows,
                        type,
                        static_cast<std::uint32_t>(site.cores.size()),
                        setting_.int4 ? four_bit_rates(site) : rates_of(site, type)};
  cm384_gemm a = place_gemm(site.memory, shape, checked_tiling(shape), true, site.full);
  a.group_row_words = 2;  // counts have 64 bits, as dispatch leaves them
  if (setting_.int4) become_four_bits(a);
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
    a.gate_up.a = setting_.int4 ? memory.allocate_lines(all * setting_.hidden) : x;
    a.gate_up.token_scales = scales;
    if (setting_.int4) place_four_bits(site, x, all);
  }
  a.gate_up.group_rows = region(link.dispatch.expert_token_nums, experts * 8);
  a.gate_up.c = memory.allocate_lines(all * a.gate_up.c_pitch);
  a.down = multiplication(site, setting_.hidden, setting_.width);
  a.down.a = memory.allocate_lines((setting_.int4 ? 2 : 1) * all * a.down.a_pitch);
  a.down.token_scales = setting_.bf16 ? 0 : memory.allocate_lines(all * 4);
  a.down.group_rows = a.gate_up.group_rows;
  a.down.c = region(link.combine.expert_x, all * a.down.c_pitch);
  if (link_) return;
  const std::vector<std::int64_t> counts(setting_.expert_rows.begin(), setting_.expert_rows.end());
  runtime().put(a.gate_up.group_rows, std::span<const std::int64_t>(counts));
  runtime().mark_payload(x, all * setting_.hidden);
  runtime().mark_payload(scales, all * 4);
}

void ExpertFfn::place_four_bits(const Site& site, std::uint64_t x, std::uint64_t rows) {
  const std::uint64_t experts = setting_.expert_rows.size(), gate_up = experts * 2 * setting_.width * 4,
                      down = experts * setting_.hidden * 4;
  four_bits_.x = x;
  four_bits_.hidden_rows = site.memory.allocate_lines(rows * setting_.width);
  four_bits_.gate_up_sums = site.memory.allocate_weights(gate_up);
  four_bits_.down_sums = site.memory.allocate_weights(down);
  if (site.full) return;
  runtime().mark_payload(four_bits_.gate_up_sums, gate_up);
  runtime().mark_payload(four_bits_.down_sums, down);
}

Work ExpertFfn::work() const {
  double rows = 0;
  for (const std::uint32_t expert : setting_.expert_rows) rows += expert;
  const double hidden = setting_.hidden, width = setting_.width;
  const double element = setting_.int4 ? 0.5 : setting_.bf16 ? 2 : 1;
  const double weights = element * 3 * static_cast<double>(setting_.expert_rows.size()) * hidden * width;
  return {6.0 * rows * hidden * width, !setting_.bf16, weights + rows * hidden * 3, 3, weights};
}

std::string ExpertFfn::size() const {
  return fmt::format("experts {} for {}, {} x {}{}", fmt::join(setting_.expert_rows, ","), setting_.tile_rows,
                     setting_.hidden, setting_.width,
                     setting_.int4   ? " w4a8"
                     : setting_.bf16 ? " bf16"
                                     : "");
}

void copy_expert_weights(host::Runtime& runtime, const cm384_ffn& ffn, std::uint32_t local,
                         const reference::NetworkWeights& weights) {
  // As if the rank had no other experts: one group at its place.
  const auto put = [&](cm384_gemm gemm, std::span<const std::byte> b, const std::vector<float>& scales) {
    const std::uint64_t bytes = std::uint64_t{(gemm.n + 15) / 16 * 16} * ((gemm.k + 31) / 32 * 32);
    gemm.groups = 1;
    gemm.b += local * bytes;
    write_b(runtime, gemm, b);
    runtime.put(gemm.channel_scales + local * std::uint64_t{gemm.n} * 4, std::span<const float>(scales));
  };
  put(ffn.gate_up, weights.gate_up, weights.gate_up_scales);
  put(ffn.down, weights.down, weights.down_scales);
}

}  // namespace cm384::operators
