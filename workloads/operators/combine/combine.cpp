#include "workloads/operators/combine/combine.h"

#include <algorithm>

namespace cm384::operators {
namespace {

// Of the experts' outputs: twice the int8 rows that dispatch has room for.
std::uint64_t expert_bytes(const reference::DispatchCase& dispatch, int rank) {
  return 2 * reference::dispatch_sizes(dispatch, rank, 1).expand_x;
}

}  // namespace

void Combine::place(RankMemory& memory) {
  runtime_ = &memory.front().runtime();
  for (int rank = 0; rank < case_.placement.ranks; ++rank) {
    host::DeviceMemory& own_memory = memory[static_cast<std::size_t>(rank)];
    const cm384_dispatch& from = dispatch_.arguments(rank);
    cm384_combine a = reference::combine_arguments(case_, rank);
    a.completion = setting_.atomic ? CM384_COMBINE_ATOMIC : CM384_COMBINE_FLAG;
    if (!fits(rank, a)) does_not_fit("combine", case_);
    a.triples = from.expand_triples;
    a.send_counts = from.send_counts;
    a.expert_ids = from.expert_ids;
    a.peers = from.peers;
    const auto allocate = [&](std::uint64_t bytes) {
      return own_memory.allocate(std::max<std::uint64_t>(bytes, 32));
    };
    const std::uint64_t own = std::uint64_t{a.batch} * a.hidden * 2;
    tasks_.push_back(
        {own_memory.die(), allocate(case_.relays != 0 ? sizeof(cm384_combine_relay) : sizeof a)});
    a.scales = allocate(std::uint64_t{a.batch} * a.top_k * 4);
    a.expert_x = allocate(expert_bytes(case_, rank));
    a.x = allocate(own);
    if (setting_.shared_output) a.shared_x = allocate(own);
    arguments_.push_back(a);
    fill(rank);
  }
}

cm384_combine_relay Combine::with_relays(int rank, const cm384_combine& a) const {
  const cm384_dispatch& from = dispatch_.arguments(rank);
  return {a, dispatch_.relay(rank), from.slots, 0, from.expert_copies, from.expert_slots};
}

bool Combine::fits(int rank, const cm384_combine& a) const {
  const auto cores = static_cast<std::uint64_t>(dispatch_.cores());
  if (case_.relays == 0) return cm384_combine_fits(&a, cores) != 0;
  const cm384_combine_relay with = with_relays(rank, a);
  return cm384_combine_relay_fits(&with, cores) != 0;
}

void Combine::fill(int rank) const {
  const cm384_combine& a = arguments(rank);
  const std::uint64_t row_bytes = std::uint64_t{a.hidden} * 2;
  const std::uint64_t arguments_at = tasks_[static_cast<std::size_t>(rank)].arguments;
  if (case_.relays == 0) {
    runtime_->put(arguments_at, a);
  } else {
    runtime_->put(arguments_at, with_relays(rank, a));
  }
  runtime_->put(a.scales, std::span<const float>(reference_.scales(rank)));
  if (!dispatch_.full()) {
    runtime_->mark_payload(a.expert_x, expert_bytes(case_, rank));
    if (a.shared_x != 0) runtime_->mark_payload(a.shared_x, a.batch * row_bytes);
    return;
  }
  std::vector<std::uint16_t> row(a.hidden);
  const auto& rows = dispatch_.expected().rank(rank).rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    reference_.expert_row(rows[i], row);
    runtime_->put(a.expert_x + i * row_bytes, std::span<const std::uint16_t>(row));
  }
  for (std::uint32_t token = 0; a.shared_x != 0 && token < a.batch; ++token) {
    reference_.shared_row(rank, static_cast<int>(token), row);
    runtime_->put(a.shared_x + token * row_bytes, std::span<const std::uint16_t>(row));
  }
}

std::string Combine::check() const {
  for (int rank = 0; rank < case_.placement.ranks; ++rank) {
    const cm384_combine& a = arguments(rank);
    const std::string difference =
        reference_.compare(rank, runtime_->get<std::uint16_t>(a.x, std::size_t{a.batch} * a.hidden));
    if (!difference.empty()) return difference;
  }
  return {};
}

void Combine::spoil() const {
  for (const cm384_combine& a : arguments_) {
    const std::vector<std::uint16_t> wrong(std::size_t{a.batch} * a.hidden, 0xffff);
    runtime_->put(a.x, std::span<const std::uint16_t>(wrong));
  }
}

void Combine::spoil_experts() const {
  if (!dispatch_.full()) return;
  for (int rank = 0; rank < case_.placement.ranks; ++rank) {
    const std::size_t rows = dispatch_.expected().rank(rank).rows.size();
    const std::vector<std::uint16_t> wrong(rows * arguments(rank).hidden, 0xffff);
    runtime_->put(arguments(rank).expert_x, std::span<const std::uint16_t>(wrong));
  }
}

}  // namespace cm384::operators
