#include "workloads/operators/reference/expert_placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "workloads/operators/reference/layouts.h"

namespace cm384::reference {

ExpertPlacement empty_placement(int ranks, int experts, int shared_copies) {
  if (ranks < 1) throw InputError(fmt::format("ranks: {}; allowed: 1 or more", ranks));
  if (experts < 1) throw InputError(fmt::format("experts: {}; allowed: 1 or more", experts));
  if (shared_copies < 0 || shared_copies >= ranks) {
    throw InputError(fmt::format("shared-expert copies: {} on {} ranks; allowed: 0 to {}", shared_copies,
                                 ranks, ranks - 1));
  }
  ExpertPlacement p;
  p.ranks = ranks;
  p.experts = experts;
  p.shared = shared_copies > 0 ? 1 : 0;
  p.own_experts.assign(static_cast<std::size_t>(ranks), 0);
  return p;
}

void count_slots(ExpertPlacement& placement) {
  placement.local_experts = *std::ranges::max_element(placement.own_experts);
  const auto entries =
      static_cast<unsigned>(placement.local_experts) * static_cast<unsigned>(placement.ranks);
  if (entries > StatusWindow::kDispatchEntries) {
    throw InputError(
        fmt::format("{} experts on {} ranks need {} status entries per rank; the status window has {}",
                    placement.experts, placement.ranks, entries, StatusWindow::kDispatchEntries));
  }
}

ExpertPlacement place_after(int others, ExpertPlacement placement) {
  placement.ranks += others;
  placement.own_experts.insert(placement.own_experts.begin(), index(others), 0);
  for (cm384_expert_slot& slot : placement.slots) slot.rank += static_cast<std::uint32_t>(others);
  count_slots(placement);
  return placement;
}

ExpertPlacement place_experts(int ranks, int experts, int shared_copies) {
  ExpertPlacement p = empty_placement(ranks, experts, shared_copies);
  const int routed_ranks = ranks - shared_copies;
  const auto add = [&p](int rank, int expert, int copy) {
    int& own = p.own_experts[static_cast<std::size_t>(rank)];
    p.slots.push_back({static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(own++),
                       static_cast<std::uint32_t>(expert), static_cast<std::uint32_t>(copy)});
  };
  const auto open = [&p](int copies) {
    p.copies.push_back({static_cast<std::uint32_t>(p.slots.size()), static_cast<std::uint32_t>(copies)});
  };
  if (routed_ranks <= experts) {
    const int size = experts / routed_ranks, more = experts % routed_ranks;
    for (int rank = 0, expert = 0; rank < routed_ranks; ++rank) {
      for (int end = expert + size + (rank < more ? 1 : 0); expert < end; ++expert) {
        open(1);
        add(shared_copies + rank, expert, 0);
      }
    }
  } else {
    const int size = routed_ranks / experts, more = routed_ranks % experts;
    for (int expert = 0; expert < experts; ++expert) {
      const int copies = size + (expert < more ? 1 : 0);
      open(copies);
      for (int copy = 0; copy < copies; ++copy) add(shared_copies + copy * experts + expert, expert, copy);
    }
  }
  if (p.shared != 0) {
    open(shared_copies);
    for (int copy = 0; copy < shared_copies; ++copy) add(copy, experts, copy);
  }
  count_slots(p);
  return p;
}

}  // namespace cm384::reference
