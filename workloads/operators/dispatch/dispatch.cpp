#include "workloads/operators/dispatch/dispatch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/dispatch_full_mesh.h"
#include "workloads/operators/dispatch/relays.h"

namespace cm384::operators {

void does_not_fit(const char* what, const reference::DispatchCase& dispatch) {
  throw InputError(
      fmt::format("run {}: batch {}, {} ranks and hidden size {} do not fit a UBuffer of 192 KiB", what,
                  dispatch.batch, dispatch.placement.ranks, dispatch.hidden));
}

void Dispatch::place(RankMemory& memory) {
  runtime_ = &memory.front().runtime();
  for (std::size_t rank = 0; rank < memory.size(); ++rank) allocate(static_cast<int>(rank), memory[rank]);
  if (case_.relays != 0) relays_ = place_relays(case_, memory);
  for (int rank = 0; rank < case_.placement.ranks; ++rank) {
    if (!fits(rank)) does_not_fit("dispatch", case_);
  }
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    const int die = memory[rank].die();
    std::vector<cm384_peer> peers = windows_;
    for (cm384_peer& peer : peers)
      peer = {runtime_->reached_from(die, peer.window), runtime_->reached_from(die, peer.status)};
    runtime_->put(arguments_[rank].peers, std::span<const cm384_peer>(peers));
    fill(static_cast<int>(rank));
  }
  if (full_) expected_.emplace(case_);
}

bool Dispatch::fits(int rank) const {
  const cm384_dispatch& a = arguments(rank);
  const auto cores = static_cast<std::uint64_t>(cores_);
  if (case_.full_mesh) return cm384_full_mesh_fits(&a, cores) != 0;
  if (relays_.empty()) return cm384_dispatch_fits(&a, cores) != 0;
  const cm384_dispatch_relay with_relays{a, relay(rank)};
  return cm384_dispatch_relay_fits(&with_relays, cores) != 0;
}

std::string Dispatch::check() const {
  for (int number = 0; number < case_.placement.ranks; ++number) {
    const cm384_dispatch& a = arguments(number);
    const std::size_t rows = expected_->rank(number).rows.size();
    const std::string difference = expected_->compare(
        number, runtime_->get<std::int8_t>(a.expand_x, rows * a.hidden),
        runtime_->get<float>(a.expand_scales, rows), runtime_->get<std::int32_t>(a.expand_triples, rows * 3),
        runtime_->get<std::int32_t>(a.send_counts, std::size_t{a.own_experts} * a.ranks),
        runtime_->get<std::int64_t>(a.expert_token_nums, a.own_experts));
    if (!difference.empty()) return difference;
  }
  return {};
}

std::string Dispatch::check_rows() const {
  for (int number = 0; number < case_.placement.ranks; ++number) {
    const cm384_dispatch& a = arguments(number);
    const std::size_t rows = expected_->rank(number).rows.size();
    const std::string difference =
        expected_->compare_rows(number, runtime_->get<std::int8_t>(a.expand_x, rows * a.hidden),
                                runtime_->get<float>(a.expand_scales, rows));
    if (!difference.empty()) return difference;
  }
  return {};
}

std::uint64_t Dispatch::digest() const {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](std::uint64_t address, std::size_t bytes) {
    for (const std::uint8_t byte : runtime_->get<std::uint8_t>(address, bytes))
      hash = (hash ^ byte) * 0x100000001b3;
  };
  for (int number = 0; number < case_.placement.ranks; ++number) {
    const cm384_dispatch& a = arguments(number);
    const std::size_t rows = expected_->rank(number).rows.size();
    take(a.expand_x, rows * a.hidden);
    take(a.expand_scales, rows * sizeof(float));
    take(a.expand_triples, rows * 3 * sizeof(std::int32_t));
  }
  return hash;
}

// The tokens stand right behind the block of arguments.
void Dispatch::allocate(int rank, host::DeviceMemory& memory) {
  const reference::DispatchSizes sizes = reference::dispatch_sizes(case_, rank, cores_);
  cm384_dispatch a = reference::dispatch_arguments(case_, rank);
  const auto table = [&](std::uint64_t bytes) { return memory.allocate(std::max<std::uint64_t>(bytes, 32)); };
  tasks_.push_back({memory.die(), table(case_.relays != 0 ? sizeof(cm384_dispatch_relay) : sizeof a)});
  a.x = table(sizes.x);
  a.expert_ids = table(sizes.expert_ids);
  a.expert_copies = table(sizes.expert_copies);
  a.expert_slots = table(sizes.expert_slots);
  a.peers = table(sizes.peers);
  a.workspace = table(sizes.workspace);
  a.send_counts = table(sizes.send_counts);
  a.expert_token_nums = table(sizes.expert_token_nums);
  a.expand_triples = table(sizes.expand_triples);
  a.expand_scales = table(sizes.expand_scales);
  a.expand_x = table(sizes.expand_x);
  arguments_.push_back(a);
  if (windows_.size() > static_cast<std::size_t>(rank)) return;
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  const std::uint64_t status = memory.allocate(CM384_STATUS_BYTES, kPage);
  windows_.push_back({memory.allocate(sizes.window, kPage), status});
}

void Dispatch::fill(int rank) const {
  const cm384_dispatch& a = arguments(rank);
  const std::uint64_t arguments_at = tasks_[static_cast<std::size_t>(rank)].arguments;
  if (relays_.empty()) {
    runtime_->put(arguments_at, a);
  } else {
    runtime_->put(arguments_at, cm384_dispatch_relay{a, relay(rank)});
  }
  if (full_) {
    const std::size_t hidden = a.hidden;
    std::vector<std::uint16_t> x(a.batch * hidden);
    for (std::size_t token = 0; token < a.batch; ++token)
      case_.make_row(rank, static_cast<int>(token), std::span(x).subspan(token * hidden, hidden));
    runtime_->put(a.x, std::span<const std::uint16_t>(x));
  } else {
    runtime_->mark_payload(a.x, std::uint64_t{a.batch} * a.hidden * 2);
  }
  runtime_->put(a.expert_ids,
                std::span<const std::int32_t>(case_.expert_ids[static_cast<std::size_t>(rank)]));
  runtime_->put(a.expert_copies, std::span<const cm384_expert_copies>(case_.placement.copies));
  runtime_->put(a.expert_slots, std::span<const cm384_expert_slot>(case_.placement.slots));
}

}  // namespace cm384::operators
