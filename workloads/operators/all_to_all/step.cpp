#include "workloads/operators/all_to_all/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/text/error.h"

namespace cm384::operators {
namespace {

constexpr std::array kNames{"pack", "quantise", "unsort", "sum"};

std::size_t index(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

Work AllToAllStep::work() const {
  return {0, false, static_cast<double>(pairs()) * layer_.hidden * (step_ == CM384_STEP_SUM ? 2 : 4)};
}

std::string AllToAllStep::size() const {
  return fmt::format("all_to_all {}, {} tokens of {}", kNames[index(step_)], layer_.batch, layer_.hidden);
}

void AllToAllStep::lay_out(const Site& site) {
  cm384_all_to_all& a = arguments_;
  const reference::ExpertPlacement& placement = layer_.placement;
  a.step = static_cast<std::uint32_t>(step_);
  a.rank = static_cast<std::uint32_t>(rank_);
  a.ranks = static_cast<std::uint32_t>(placement.ranks);
  a.batch = static_cast<std::uint32_t>(layer_.batch);
  a.top_k = static_cast<std::uint32_t>(layer_.top_k);
  a.hidden = static_cast<std::uint32_t>(layer_.hidden);
  a.experts = static_cast<std::uint32_t>(placement.experts);
  a.local_experts = static_cast<std::uint32_t>(placement.local_experts);
  a.region_rows = a.batch * std::min(a.top_k, a.local_experts);
  a.message_bytes = static_cast<std::uint32_t>(cm384_all_to_all_message_bytes(a.local_experts));
  if (!cm384_all_to_all_fits(&a, site.cores.size()))
    throw InputError(fmt::format("batch {}, {} ranks and {} B per row do not fit a UBuffer of 192 KiB",
                                 a.batch, a.ranks, 2 * a.hidden));
  const std::uint64_t row = std::uint64_t{a.hidden} * 2, regions = row * a.ranks * a.region_rows;
  const auto payload = [&](std::uint64_t bytes) {
    const std::uint64_t address = site.memory.allocate_lines(bytes);
    runtime().mark_payload(address, bytes);
    return address;
  };
  write_tables(site);
  const bool sums = step_ == CM384_STEP_SUM;
  a.x = payload(a.batch * row);
  a.send = a.results = site.memory.allocate_lines(regions);
  a.returned = payload(regions);
  const auto counts = received_counts();
  std::uint64_t rows = 0;
  for (const std::int32_t count : counts) rows += static_cast<std::uint64_t>(count);
  a.expert_x = payload(std::max<std::uint64_t>(rows, 1) * row);
  a.shared_x = sums ? payload(a.batch * row) : 0;
  a.out = site.memory.allocate_lines(a.batch * row);
}

void AllToAllStep::write_tables(const Site& site) {
  cm384_all_to_all& a = arguments_;
  const auto put = [&]<class T>(const std::vector<T>& values) {
    const std::uint64_t address = site.memory.allocate_lines(values.size() * sizeof(T));
    runtime().put(address, std::span<const T>(values));
    return address;
  };
  std::vector<std::int32_t> cells, experts(std::size_t{a.ranks} * a.local_experts, -1);
  for (std::uint32_t expert = 0; expert < a.experts; ++expert) {
    const cm384_expert_slot& slot = layer_.placement.slot_of(static_cast<int>(expert), rank_);
    cells.push_back(static_cast<std::int32_t>(slot.rank * a.local_experts + slot.local));
    experts[index(cells.back())] = static_cast<std::int32_t>(expert);
  }
  a.expert_ids = put(layer_.expert_ids[index(rank_)]);
  a.expert_cells = put(cells);
  a.cell_experts = put(experts);
  a.sent_counts = site.memory.allocate_lines(std::uint64_t{a.ranks} * a.message_bytes);
  a.received_counts = put(received_counts());
  a.order = put(step_ == CM384_STEP_SUM ? order() : std::vector<std::uint32_t>(pairs()));
  a.scales = put(std::vector<float>(pairs(), 0.125F));
}

// A message from each rank: how many rows it has for each of this one's experts.
std::vector<std::int32_t> AllToAllStep::received_counts() const {
  const std::size_t words = arguments_.message_bytes / 4;
  std::vector<std::int32_t> counts(arguments_.ranks * words);
  for (std::uint32_t source = 0; source < arguments_.ranks; ++source)
    count(counts, static_cast<int>(source), arguments_.rank, source * words);
  return counts;
}

// And to each rank.
std::vector<std::int32_t> AllToAllStep::sent_counts() const {
  const std::size_t words = arguments_.message_bytes / 4;
  std::vector<std::int32_t> counts(arguments_.ranks * words);
  for (std::uint32_t target = 0; target < arguments_.ranks; ++target)
    count(counts, rank_, target, target * words);
  return counts;
}

// Adds the rows of `source` for `target` to the message from entry `first` on.
void AllToAllStep::count(std::vector<std::int32_t>& message, int source, std::uint32_t target,
                         std::size_t first) const {
  for (const std::int32_t expert : layer_.expert_ids[index(source)]) {
    const cm384_expert_slot& slot = layer_.placement.slot_of(expert, source);
    if (slot.rank == target) ++message[first + slot.local];
  }
}

std::string AllToAllStep::check() const {
  if (step_ != CM384_STEP_PACK) return {};
  const auto rows = runtime().get<std::uint32_t>(arguments_.order, pairs());
  const std::vector<std::uint32_t> expected = order();
  for (std::size_t pair = 0; pair < rows.size(); ++pair) {
    if (rows[pair] != expected[pair])
      return fmt::format("pair {} goes to row {} instead of {}", pair, rows[pair], expected[pair]);
  }
  const std::vector<std::int32_t> sent = sent_counts();
  return runtime().get<std::int32_t>(arguments_.sent_counts, sent.size()) == sent ? ""
                                                                                  : "counts to send differ";
}

// Row of `send` of each pair: by rank, local expert, pair.
std::vector<std::uint32_t> AllToAllStep::order() const {
  const std::vector<std::int32_t>& ids = layer_.expert_ids[index(rank_)];
  const auto cell = [&](std::int32_t expert) {
    const cm384_expert_slot& slot = layer_.placement.slot_of(expert, rank_);
    return std::size_t{slot.rank} * arguments_.local_experts + slot.local;
  };
  std::vector<std::uint32_t> next(std::size_t{arguments_.ranks} * arguments_.local_experts);
  for (const std::int32_t expert : ids) ++next[cell(expert)];
  for (std::uint32_t rank = 0; rank < arguments_.ranks; ++rank) {
    std::uint32_t at = rank * arguments_.region_rows;
    for (std::uint32_t local = 0; local < arguments_.local_experts; ++local)
      at += std::exchange(next[std::size_t{rank} * arguments_.local_experts + local], at);
  }
  std::vector<std::uint32_t> order;
  for (const std::int32_t expert : ids) order.push_back(next[cell(expert)]++);
  return order;
}

}  // namespace cm384::operators
