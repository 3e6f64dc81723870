#include "studies/moe_experts.h"

#include <algorithm>
#include <numeric>

#include "operators/gemm/memory.h"

namespace cm384::studies {

ExpertNetworks::ExpertNetworks(MoeRun& run, std::uint32_t width, int blocks)
    : run_(run), program_(run.session().built_in("ffn")), groups_(static_cast<std::size_t>(blocks)) {
  std::iota(groups_.begin(), groups_.end(), std::uint16_t{0});
  const auto& ranks = run.dispatched().tasks();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    host::DeviceMemory& memory = run.memory(static_cast<int>(rank));
    const cm384_ffn ffn = place(static_cast<int>(rank), memory, width);
    tasks_.push_back({ranks[rank].die, memory.put(ffn)});
    if (run.full()) put_weights(static_cast<int>(rank), ffn);
  }
  if (!run.full()) return;
  expected_ = std::make_shared<reference::ExpertNetworkOutputs>(run.layer(), width);
  run.combined().set_experts(
      [expected = expected_](const reference::ArrivedRow& row, std::span<std::uint16_t> out) {
        const auto made = expected->row(row);
        std::copy(made.begin(), made.end(), out.begin());
      });
}

cm384_ffn ExpertNetworks::place(int rank, host::DeviceMemory& memory, std::uint32_t width) const {
  using operators::GemmShape;
  const cm384_dispatch& d = run_.dispatched().arguments(rank);
  const std::uint64_t rows =
      cm384_dispatch_max_rows(d.ranks, d.own_experts, d.max_tokens, d.top_k + d.shared);
  const std::uint64_t tokens = std::uint64_t{d.ranks} * d.batch * (d.top_k + d.shared);
  const std::vector<std::uint32_t> share(d.own_experts,
                                         static_cast<std::uint32_t>((tokens + d.slots - 1) / d.slots));
  const auto multiplication = [&](std::uint32_t n, std::uint32_t k) {
    const GemmShape shape{share, n, k, CM384_GEMM_INT8, static_cast<std::uint32_t>(groups_.size())};
    cm384_gemm a = place_gemm(memory, shape, checked_tiling(shape), true, run_.full());
    // dispatch leaves 64-bit counts.
    a.group_rows = d.expert_token_nums;
    a.group_row_words = 2;
    return a;
  };
  cm384_ffn ffn{};
  ffn.width = width;
  ffn.gate_up = multiplication(2 * width, d.hidden);
  ffn.gate_up.a = d.expand_x;
  ffn.gate_up.token_scales = d.expand_scales;
  ffn.gate_up.c = memory.allocate_lines(rows * width * 4);
  ffn.down = multiplication(d.hidden, width);
  ffn.down.a = memory.allocate_lines(rows * width);
  ffn.down.token_scales = memory.allocate_lines(rows * 4);
  ffn.down.c = std::as_const(run_).combined().arguments(rank).expert_x;
  return ffn;
}

void ExpertNetworks::put_weights(int rank, const cm384_ffn& ffn) const {
  host::Runtime& runtime = run_.session().runtime();
  const reference::DispatchCase& layer = run_.layer();
  // As if the rank had no other experts: one group at its place.
  const auto put = [&](cm384_gemm gemm, std::uint32_t local, std::span<const std::byte> b,
                       const std::vector<float>& scales) {
    const std::uint64_t bytes = std::uint64_t{(gemm.n + 15) / 16 * 16} * ((gemm.k + 31) / 32 * 32);
    gemm.groups = 1;
    gemm.b += local * bytes;
    operators::put_b(runtime, gemm, b);
    runtime.put(gemm.channel_scales + local * std::uint64_t{gemm.n} * 4, std::span<const float>(scales));
  };
  for (const cm384_expert_slot& slot : layer.placement.slots) {
    if (slot.rank != static_cast<std::uint32_t>(rank)) continue;
    const auto weights = reference::make_network_weights(layer.seed, static_cast<int>(slot.expert),
                                                         static_cast<std::uint32_t>(layer.hidden), ffn.width);
    put(ffn.gate_up, slot.local, weights.gate_up, weights.gate_up_scales);
    put(ffn.down, slot.local, weights.down, weights.down_scales);
  }
}

std::vector<host::LaunchHandle> ExpertNetworks::launch() {
  host::Runtime& runtime = run_.session().runtime();
  std::vector<host::LaunchHandle> launches;
  for (const RankTask& task : tasks_) {
    launches.push_back(runtime.launch(task.die, program_, task.arguments, groups_, runtime.earliest_start(),
                                      npu::KernelType::mix));
  }
  return launches;
}

void ExpertNetworks::spoil() const {
  if (run_.full()) run_.combined().spoil_experts();
}

}  // namespace cm384::studies
