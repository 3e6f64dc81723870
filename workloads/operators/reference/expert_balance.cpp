#include "workloads/operators/reference/expert_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text/error.h"

namespace cm384::reference {
namespace {

struct Copy {
  double load = 0;
  std::uint32_t expert = 0;
  bool fixed = false;  // has its rank by another rule
};

// Ranks that fill up.
class Packing {
 public:
  Packing(int ranks, int slots) : on_(static_cast<std::size_t>(ranks)), load_(on_.size()), free_(on_.size()) {
    for (std::size_t rank = 0; rank < on_.size(); ++rank)
      free_[rank] = slots / ranks + (static_cast<int>(rank) < slots % ranks ? 1 : 0);
  }

  void put(const Copy& copy, std::size_t rank) {
    on_[rank].push_back(copy);
    load_[rank] += copy.load;
    --free_[rank];
  }
  // On the least loaded rank that may have it. Where all with a slot left have the expert already, a copy of
  // another makes room.
  void place(const Copy& copy) {
    std::size_t best = on_.size();
    for (std::size_t rank = 0; rank < on_.size(); ++rank) {
      if (free_[rank] > 0 && !has(rank, copy.expert) && (best == on_.size() || load_[rank] < load_[best]))
        best = rank;
    }
    if (best < on_.size()) return put(copy, best);
    const auto open = static_cast<std::size_t>(
        std::ranges::find_if(free_, [](int slots) { return slots > 0; }) - free_.begin());
    for (std::size_t rank = 0; rank < on_.size(); ++rank) {
      if (has(rank, copy.expert)) continue;
      for (Copy& other : on_[rank]) {
        if (other.fixed || has(open, other.expert)) continue;
        put(other, open);
        load_[rank] += copy.load - other.load;
        other = copy;
        return;
      }
    }
    throw InputError(fmt::format("placement by load: no rank is left for a copy of expert {}", copy.expert));
  }
  const std::vector<Copy>& on(std::size_t rank) const { return on_[rank]; }

 private:
  bool has(std::size_t rank, std::uint32_t expert) const {
    return std::ranges::find(on_[rank], expert, &Copy::expert) != on_[rank].end();
  }

  std::vector<std::vector<Copy>> on_;
  std::vector<double> load_;
  std::vector<int> free_;
};

}  // namespace

std::vector<int> replicate(std::span<const double> loads, int redundant, int most) {
  std::vector<int> copies(loads.size(), 1);
  for (int n = 0; n < redundant; ++n) {
    std::size_t best = loads.size();
    for (std::size_t e = 0; e < loads.size(); ++e) {
      if (copies[e] < most && (best == loads.size() || loads[e] / copies[e] > loads[best] / copies[best]))
        best = e;
    }
    if (best == loads.size())
      throw InputError(
          fmt::format("{} redundant copies of {} experts; allowed: at most {}, a copy on every rank",
                      redundant, loads.size(), static_cast<int>(loads.size()) * (most - 1)));
    ++copies[best];
  }
  return copies;
}

int free_slots(int ranks, int experts, int shared_copies) {
  const int used = experts + shared_copies;
  return (used + ranks - 1) / ranks * ranks - used;
}

ExpertPlacement place_by_load(int ranks, std::span<const double> loads, int redundant, int shared_copies,
                              double shared_load) {
  const auto experts = static_cast<std::uint32_t>(loads.size());
  ExpertPlacement made = empty_placement(ranks, static_cast<int>(experts), shared_copies);
  const std::vector<int> copies = replicate(loads, redundant, ranks);
  std::vector<Copy> all;
  for (std::uint32_t e = 0; e < experts; ++e) {
    for (int c = 0; c < copies[e]; ++c) all.push_back({loads[e] / copies[e], e});
  }
  std::ranges::stable_sort(all, std::greater(), &Copy::load);
  Packing packing(ranks, static_cast<int>(all.size()) + shared_copies);
  for (int rank = 0; rank < shared_copies; ++rank)
    packing.put({shared_load / shared_copies, experts, true}, static_cast<std::size_t>(rank));
  for (const Copy& copy : all) packing.place(copy);

  std::vector<std::vector<cm384_expert_slot>> of(experts + (shared_copies > 0 ? 1 : 0));
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    std::uint32_t local = 0;
    for (const Copy& copy : packing.on(rank)) of[copy.expert].push_back({rank, local++, copy.expert, 0});
    made.own_experts[rank] = static_cast<int>(local);
  }
  for (std::vector<cm384_expert_slot>& slots : of) {
    made.copies.push_back(
        {static_cast<std::uint32_t>(made.slots.size()), static_cast<std::uint32_t>(slots.size())});
    for (std::uint32_t c = 0; c < slots.size(); ++c) {
      slots[c].copy = c;
      made.slots.push_back(slots[c]);
    }
  }
  count_slots(made);
  return made;
}

std::vector<double> rank_loads(const ExpertPlacement& placement, std::span<const double> loads,
                               double shared_load) {
  std::vector<double> made(static_cast<std::size_t>(placement.ranks));
  for (std::size_t e = 0; e < placement.copies.size(); ++e) {
    const cm384_expert_copies& own = placement.copies[e];
    const double load = e < loads.size() ? loads[e] : shared_load;
    for (std::uint32_t c = 0; c < own.copies; ++c)
      made[placement.slots[own.first + c].rank] += load / own.copies;
  }
  return made;
}

namespace {

// Which experts stand on each rank, the shared one left out.
std::vector<std::vector<std::uint32_t>> experts_on(const ExpertPlacement& placement) {
  std::vector<std::vector<std::uint32_t>> on(static_cast<std::size_t>(placement.ranks));
  for (std::uint32_t e = 0; e < static_cast<std::uint32_t>(placement.experts); ++e) {
    const cm384_expert_copies& own = placement.copies[e];
    for (std::uint32_t c = 0; c < own.copies; ++c) on[placement.slots[own.first + c].rank].push_back(e);
  }
  return on;
}

}  // namespace

std::size_t new_copies(const ExpertPlacement& before, const ExpertPlacement& after) {
  const auto had = experts_on(before), has = experts_on(after);
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < has.size(); ++rank) {
    const auto fresh = std::ranges::count_if(has[rank], [&](std::uint32_t expert) {
      return std::ranges::find(had[rank], expert) == had[rank].end();
    });
    most = std::max(most, static_cast<std::size_t>(fresh));
  }
  return most;
}

double imbalance(std::span<const double> rank_loads) {
  const double sum = std::accumulate(rank_loads.begin(), rank_loads.end(), 0.0);
  return sum > 0 ? *std::ranges::max_element(rank_loads) * static_cast<double>(rank_loads.size()) / sum : 1;
}

}  // namespace cm384::reference
