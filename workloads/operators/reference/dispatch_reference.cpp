#include "workloads/operators/reference/dispatch_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "firmware/abi/dispatch_full_mesh.h"
#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/tokens.h"

namespace cm384::reference {

namespace {
std::uint32_t word(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}
}  // namespace

std::uint64_t DispatchCase::tokens() const {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < placement.ranks; ++rank) sum += static_cast<std::uint64_t>(tokens_of(rank));
  return sum;
}

std::vector<float> DispatchCase::drawn_row(int rank, int token) const {
  const std::uint64_t stream = std::uint64_t{index(rank)} << 32 | index(token);
  return draw_rows(*drawn, seed, stream, 1, word(index(hidden)));
}

void DispatchCase::make_row(int rank, int token, std::span<std::uint16_t> row) const {
  if (!drawn) return make_token(seed, rank, token, row);
  std::ranges::transform(drawn_row(rank, token), row.begin(), to_bf16);
}

cm384_dispatch dispatch_arguments(const DispatchCase& dispatch, int rank) {
  const ExpertPlacement& p = dispatch.placement;
  cm384_dispatch a{};
  a.rank = word(index(rank));
  a.ranks = word(index(p.ranks));
  a.batch = word(index(dispatch.tokens_of(rank)));
  a.top_k = word(index(dispatch.top_k));
  a.hidden = word(index(dispatch.hidden));
  a.experts = word(index(p.experts));
  a.shared = word(index(p.shared));
  a.slots = word(p.slots.size());
  a.local_experts = word(index(p.local_experts));
  a.own_experts = word(index(p.own_experts[index(rank)]));
  a.max_tokens = word(index(dispatch.batch));
  const DataWindow window = data_window(dispatch);
  a.window_dispatch_offset = window.dispatch(0, 0, 0);
  a.window_half_bytes = window.bytes();
  return a;
}

DataWindow data_window(const DispatchCase& dispatch) {
  const ExpertPlacement& p = dispatch.placement;
  const std::uint64_t hidden = index(dispatch.hidden);
  return {.hidden = hidden,
          .tokens = index(dispatch.batch),
          .places = index(dispatch.top_k + p.shared),
          .ranks = index(p.ranks),
          .local_experts = index(p.local_experts),
          .slot_bytes = dispatch.full_mesh ? FullMeshPacket{hidden}.bytes() : DispatchSlot{hidden}.bytes()};
}

DispatchSizes dispatch_sizes(const DispatchCase& dispatch, int rank, int blocks) {
  const cm384_dispatch a = dispatch_arguments(dispatch, rank);
  const std::uint64_t batch = a.batch, own = a.own_experts;
  const std::uint64_t rows = dispatch.tokens() * std::min<std::uint64_t>(own, a.top_k + a.shared);
  DispatchSizes s{};
  s.x = batch * a.hidden * 2;
  s.expert_ids = batch * a.top_k * 4;
  s.expert_copies = dispatch.placement.copies.size() * sizeof(cm384_expert_copies);
  s.expert_slots = dispatch.placement.slots.size() * sizeof(cm384_expert_slot);
  s.peers = a.ranks * sizeof(cm384_peer);
  const auto cores = static_cast<std::uint64_t>(blocks);
  s.workspace = dispatch.full_mesh ? cm384_full_mesh_workspace_bytes(cores, own, a.ranks)
                                   : cm384_dispatch_workspace_bytes(cores, own, a.ranks);
  s.window = 2 * a.window_half_bytes;
  s.expand_x = rows * a.hidden;
  s.expand_scales = rows * 4;
  s.expand_triples = rows * 12;
  s.send_counts = own * a.ranks * 4;
  s.expert_token_nums = own * 8;
  return s;
}

DispatchReference::DispatchReference(const DispatchCase& dispatch) : case_(dispatch) {
  const ExpertPlacement& p = dispatch.placement;
  ranks_.resize(index(p.ranks));
  // Rows of entry [local expert][source] of each rank, in the order of positions.
  std::vector<std::vector<std::vector<ArrivedRow>>> entries(index(p.ranks));
  for (int r = 0; r < p.ranks; ++r) entries[index(r)].resize(index(p.own_experts[index(r)] * p.ranks));
  for (int source = 0; source < p.ranks; ++source) {
    const auto& ids = dispatch.expert_ids.at(index(source));
    const auto send = [&](int expert, int token, int k) {
      const cm384_expert_slot& slot = p.slot_of(expert, source);
      entries[slot.rank][slot.local * index(p.ranks) + index(source)].push_back({source, token, k});
    };
    for (int token = 0; token < dispatch.tokens_of(source); ++token) {
      for (int k = 0; k < dispatch.top_k; ++k) send(ids.at(index(token * dispatch.top_k + k)), token, k);
      if (p.shared != 0) send(p.experts, token, dispatch.top_k);
    }
  }
  for (int r = 0; r < p.ranks; ++r) {
    ExpectedRank& expected = ranks_[index(r)];
    expected.expert_token_nums.assign(index(p.own_experts[index(r)]), 0);
    for (std::size_t entry = 0; entry < entries[index(r)].size(); ++entry) {
      const auto& rows = entries[index(r)][entry];
      expected.rows.insert(expected.rows.end(), rows.begin(), rows.end());
      expected.send_counts.push_back(static_cast<std::int32_t>(expected.rows.size()));
      expected.expert_token_nums[entry / index(p.ranks)] += static_cast<std::int64_t>(rows.size());
    }
  }
}

std::uint64_t DispatchReference::rows() const {
  std::uint64_t sum = 0;
  for (const ExpectedRank& r : ranks_) sum += r.rows.size();
  return sum;
}

float DispatchReference::expected_row(int rank, std::size_t row, std::span<std::int8_t> out) const {
  const ArrivedRow& arrived = ranks_[index(rank)].rows[row];
  std::vector<std::uint16_t> token(index(case_.hidden));
  case_.make_row(arrived.source, arrived.token, token);
  return quantise_row(token, out);
}

std::string DispatchReference::compare_plain(int rank, std::span<const std::int32_t> triples,
                                             std::span<const std::int32_t> send_counts,
                                             std::span<const std::int64_t> expert_token_nums) const {
  const ExpectedRank& expected = ranks_[index(rank)];
  const auto differs = [&](const char* what, std::size_t at, auto found, auto wanted) {
    return fmt::format("rank {}: {}[{}] is {}, expected {}", rank, what, at, found, wanted);
  };
  if (triples.size() < 3 * expected.rows.size() || send_counts.size() < expected.send_counts.size() ||
      expert_token_nums.size() < expected.expert_token_nums.size()) {
    return fmt::format("rank {}: an output is too small", rank);
  }
  for (std::size_t i = 0; i < expected.send_counts.size(); ++i) {
    if (send_counts[i] != expected.send_counts[i]) {
      return differs("send_counts", i, send_counts[i], expected.send_counts[i]);
    }
  }
  for (std::size_t i = 0; i < expected.expert_token_nums.size(); ++i) {
    if (expert_token_nums[i] != expected.expert_token_nums[i]) {
      return differs("expert_token_nums", i, expert_token_nums[i], expected.expert_token_nums[i]);
    }
  }
  for (std::size_t i = 0; i < expected.rows.size(); ++i) {
    const ArrivedRow& row = expected.rows[i];
    const std::int32_t wanted[3] = {row.source, row.token, row.k};
    for (std::size_t j = 0; j < 3; ++j) {
      if (triples[3 * i + j] != wanted[j])
        return differs("triples", 3 * i + j, triples[3 * i + j], wanted[j]);
    }
  }
  return {};
}

std::string DispatchReference::compare(int rank, std::span<const std::int8_t> expand_x,
                                       std::span<const float> scales, std::span<const std::int32_t> triples,
                                       std::span<const std::int32_t> send_counts,
                                       std::span<const std::int64_t> expert_token_nums) const {
  if (std::string plain = compare_plain(rank, triples, send_counts, expert_token_nums); !plain.empty())
    return plain;
  return compare_rows(rank, expand_x, scales);
}

std::string DispatchReference::compare_rows(int rank, std::span<const std::int8_t> expand_x,
                                            std::span<const float> scales) const {
  const ExpectedRank& expected = ranks_[index(rank)];
  const std::size_t hidden = index(case_.hidden);
  if (expand_x.size() < expected.rows.size() * hidden || scales.size() < expected.rows.size()) {
    return fmt::format("rank {}: an output is too small", rank);
  }
  std::vector<std::int8_t> row(hidden);
  for (std::size_t i = 0; i < expected.rows.size(); ++i) {
    const float scale = expected_row(rank, i, row);
    const ArrivedRow& from = expected.rows[i];
    const auto where = [&] {
      return fmt::format("rank {}: row {} (token {} of rank {})", rank, i, from.token, from.source);
    };
    if (std::bit_cast<std::uint32_t>(scale) != std::bit_cast<std::uint32_t>(scales[i])) {
      return fmt::format("{}: scale is {}, expected {}", where(), scales[i], scale);
    }
    for (std::size_t j = 0; j < hidden; ++j) {
      if (expand_x[i * hidden + j] != row[j]) {
        return fmt::format("{}: element {} is {}, expected {}", where(), j, expand_x[i * hidden + j], row[j]);
      }
    }
  }
  return {};
}

}  // namespace cm384::reference
