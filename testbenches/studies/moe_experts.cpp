#include "testbenches/studies/moe_experts.h"

#include <algorithm>
#include <numeric>

#include "firmware/abi/ffn.h"
#include "testbenches/studies/gemm_memory.h"

namespace cm384::studies {

ExpertNetworks::ExpertNetworks(MoeRun& run, std::uint32_t width, int blocks)
    : run_(run), program_(run.session().built_in("ffn")), groups_(static_cast<std::size_t>(blocks)) {
  std::iota(groups_.begin(), groups_.end(), std::uint16_t{0});
  const auto& ranks = run.dispatched().tasks();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    tasks_.push_back({ranks[rank].die, place(static_cast<int>(rank), width)});
}

std::uint64_t ExpertNetworks::place(int rank, std::uint32_t width) {
  supernode::Runtime& runtime = run_.session().runtime();
  const cm384_dispatch& d = run_.dispatched().arguments(rank);
  const int die = run_.dispatched().tasks()[static_cast<std::size_t>(rank)].die;
  const auto allocate = [&](std::uint64_t bytes) {
    return runtime.allocate(die, std::max<std::uint64_t>(bytes, 512), 512);
  };
  const std::uint64_t rows =
      cm384_dispatch_max_rows(d.ranks, d.own_experts, d.max_tokens, d.top_k + d.shared);
  const std::uint64_t tokens = std::uint64_t{d.ranks} * d.batch * (d.top_k + d.shared);
  const std::vector<std::uint32_t> share(d.own_experts,
                                         static_cast<std::uint32_t>((tokens + d.slots - 1) / d.slots));
  const auto multiplication = [&](std::uint32_t n, std::uint32_t k) {
    const GemmShape shape{share, n, k, CM384_GEMM_INT8, static_cast<std::uint32_t>(groups_.size())};
    cm384_gemm a = place_gemm(runtime, die, shape, checked_tiling(shape), true, false);
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
  ffn.gate_up.c = allocate(rows * width * 4);
  ffn.down = multiplication(d.hidden, width);
  ffn.down.a = allocate(rows * width);
  ffn.down.token_scales = allocate(rows * 4);
  ffn.down.c = run_.combined().arguments(rank).expert_x;
  const std::uint64_t block = allocate(sizeof ffn);
  runtime.put(block, ffn);
  return block;
}

std::vector<supernode::LaunchHandle> ExpertNetworks::launch() {
  supernode::Runtime& runtime = run_.session().runtime();
  std::vector<supernode::LaunchHandle> launches;
  for (const RankTask& task : tasks_) {
    launches.push_back(runtime.launch(task.die, program_, task.arguments, groups_, runtime.earliest_start(),
                                      npu::KernelType::mix));
  }
  return launches;
}

}  // namespace cm384::studies
