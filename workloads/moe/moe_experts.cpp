#include "workloads/moe/moe_experts.h"

#include <algorithm>

namespace cm384::studies {

ExpertNetworks::ExpertNetworks(MoeRun& run, std::uint32_t width, int blocks) : run_(run) {
  const auto load = [&run](std::string_view kernel) { return run.session().built_in(kernel); };
  for (std::size_t rank = 0; rank < run.dispatched().tasks().size(); ++rank) {
    const int number = static_cast<int>(rank);
    const cm384_dispatch& d = run.dispatched().arguments(number);
    if (d.own_experts == 0) {
      networks_.emplace_back();
      continue;
    }
    const std::uint64_t tokens = run.layer().tokens() * (d.top_k + d.shared);
    operators::ExpertFfnSetting setting;
    setting.tile_rows = static_cast<std::uint32_t>((tokens + d.slots - 1) / d.slots);
    setting.expert_rows.assign(d.own_experts, setting.tile_rows);
    setting.hidden = d.hidden;
    setting.width = width;
    networks_.push_back(std::make_unique<operators::ExpertFfn>(std::move(setting)));
    networks_.back()->stand_between(d, std::as_const(run).combined().arguments(number));
    networks_.back()->place({run.memory(number), load, operators::cores_from(0, blocks), run.full()});
    if (run.full()) write_weights(number, networks_.back()->arguments());
  }
  if (!run.full()) return;
  expected_ = std::make_shared<reference::ExpertNetworkOutputs>(run.layer(), width);
  run.combined().set_experts(
      [expected = expected_](const reference::ArrivedRow& row, std::span<std::uint16_t> out) {
        const auto made = expected->row(row);
        std::copy(made.begin(), made.end(), out.begin());
      });
}

void ExpertNetworks::write_weights(int rank, const cm384_ffn& ffn) const {
  const reference::DispatchCase& layer = run_.layer();
  for (const cm384_expert_slot& slot : layer.placement.slots) {
    if (slot.rank == static_cast<std::uint32_t>(rank))
      operators::copy_expert_weights(run_.session().runtime(), ffn, slot.local,
                                     reference::network_of(layer, static_cast<int>(slot.expert), ffn.width));
  }
}

std::vector<host::LaunchHandle> ExpertNetworks::launch() {
  host::Runtime& runtime = run_.session().runtime();
  std::vector<host::LaunchHandle> launches;
  for (std::size_t rank = 0; rank < networks_.size(); ++rank) {
    if (!networks_[rank]) continue;
    operators::ExpertFfn& network = *networks_[rank];
    const npu::LaunchRequest request = network.request();
    launches.push_back(runtime.launch(run_.dies()[rank], run_.session().built_in(network.kernel()),
                                      request.arguments, request.cores, runtime.earliest_start(),
                                      npu::KernelType::mix));
  }
  return launches;
}

void ExpertNetworks::spoil() const {
  if (run_.full()) run_.combined().spoil_experts();
}

}  // namespace cm384::studies
