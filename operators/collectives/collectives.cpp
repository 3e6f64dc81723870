#include "operators/collectives/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"

namespace cm384::operators {

void RankCollective::place(RankMemory& memory) {
  const int most = std::min(cores_, int{CM384_COLLECTIVE_RANKS});
  if (case_.ranks < 2 || case_.ranks > most)
    throw InputError(
        fmt::format("{} ranks; allowed: 2 to {}, one or more of a die's AIVs for each", case_.ranks, most));
  if (case_.bytes == 0 || case_.bytes % 32 != 0)
    throw InputError(fmt::format("{} B; allowed: multiples of 32 B", case_.bytes));
  runtime_ = &memory.front().runtime();
  std::vector<cm384_collective_peer> peers;
  const std::uint64_t part = case_.bytes * static_cast<std::uint64_t>(case_.ranks);
  for (int rank = 0; rank < case_.ranks; ++rank) {
    host::DeviceMemory& own = memory[static_cast<std::size_t>(rank)];
    cm384_collective_peer peer{};
    peer.in = own.allocate_lines(case_.in() * 2);
    peer.flags = own.allocate(CM384_COLLECTIVE_FLAGS);
    outputs_.push_back(own.allocate_lines(case_.out() * 2));
    const bool gather = case_.kind == reference::CollectiveKind::all_gather;
    peer.window = gather ? outputs_.back() : own.allocate_lines(part);
    if (full_) {
      const std::vector<std::uint16_t> values = reference::make_collective_input(case_, rank);
      runtime_->put(peer.in, std::span<const std::uint16_t>(values));
    } else {
      runtime_->mark_payload(peer.in, case_.in() * 2);
    }
    peers.push_back(peer);
  }
  for (int rank = 0; rank < case_.ranks; ++rank) {
    host::DeviceMemory& own = memory[static_cast<std::size_t>(rank)];
    cm384_collective a{};
    std::ranges::copy(peers, std::begin(a.peers));
    a.out = outputs_[static_cast<std::size_t>(rank)];
    a.bytes = case_.bytes;
    a.ranks = static_cast<std::uint32_t>(case_.ranks);
    a.rank = static_cast<std::uint32_t>(rank);
    a.kind = static_cast<std::uint32_t>(case_.kind);
    a.launch = 1;
    tasks_.push_back({own.die(), own.put(a)});
  }
}

std::string RankCollective::check() const {
  for (int rank = 0; rank < case_.ranks; ++rank) {
    std::string difference = reference::compare_collective(
        case_, rank, runtime_->get<std::uint16_t>(outputs_[static_cast<std::size_t>(rank)], case_.out()));
    if (!difference.empty()) return difference;
  }
  return {};
}

}  // namespace cm384::operators
