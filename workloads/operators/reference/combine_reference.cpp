#include "workloads/operators/reference/combine_reference.h"

#include <fmt/format.h>

#include <bit>

#include "traces/random.h"
#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/tokens.h"

namespace cm384::reference {

namespace {

// Streams of random numbers beside those of the tokens.
constexpr std::uint64_t kScaleSeed = 0x5ca1e5, kSharedSeed = 0x54a3ed;

// A power of two and six bits: exact.
float gain_of(int expert) {
  return 1.0f + static_cast<float>(expert % 64) / 64.0f;
}

}  // namespace

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

cm384_combine combine_arguments(const DispatchCase& dispatch, int rank) {
  const cm384_dispatch d = dispatch_arguments(dispatch, rank);
  cm384_combine a{};
  a.rank = d.rank;
  a.ranks = d.ranks;
  a.batch = d.batch;
  a.top_k = d.top_k;
  a.hidden = d.hidden;
  a.experts = d.experts;
  a.shared = d.shared;
  a.own_experts = d.own_experts;
  a.window_half_bytes = d.window_half_bytes;
  return a;
}

std::vector<float> CombineReference::scales(int rank) const {
  std::vector<float> scales(index(case_.tokens_of(rank) * case_.top_k));
  traces::Random random(case_.seed ^ kScaleSeed, static_cast<std::uint64_t>(rank));
  for (std::size_t token = 0; token < index(case_.tokens_of(rank)); ++token) {
    const std::span<float> row = std::span(scales).subspan(token * index(case_.top_k), index(case_.top_k));
    float sum = 0;
    for (float& scale : row) {
      scale = static_cast<float>(random.below(1 << 16) + 1);
      sum += scale;
    }
    for (float& scale : row) scale /= sum;
  }
  return scales;
}

int expert_of(const DispatchCase& dispatch, const ArrivedRow& row) {
  return row.k >= dispatch.top_k
             ? dispatch.placement.experts + row.k - dispatch.top_k
             : dispatch.expert_ids[index(row.source)][index(row.token * dispatch.top_k + row.k)];
}

void CombineReference::expert_row(const ArrivedRow& row, std::span<std::uint16_t> out) const {
  if (experts_) return experts_(row, out);
  std::vector<std::uint16_t> token(index(case_.hidden));
  std::vector<std::int8_t> quantised(index(case_.hidden));
  case_.make_row(row.source, row.token, token);
  const float factor = quantise_row(token, quantised) * gain_of(expert_of(case_, row));
  for (std::size_t i = 0; i < quantised.size(); ++i)
    out[i] = to_bf16(static_cast<float>(quantised[i]) * factor);
}

void CombineReference::shared_row(int rank, int token, std::span<std::uint16_t> out) const {
  DispatchCase shared{.hidden = case_.hidden, .seed = case_.seed ^ kSharedSeed};
  if (case_.drawn) shared.drawn.emplace();
  shared.make_row(rank, token, out);
}

void CombineReference::add_product(const ArrivedRow& arrived, float weight, std::span<float> sum) const {
  std::vector<std::uint16_t> row(sum.size());
  expert_row(arrived, row);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += from_bf16(row[i]) * weight;
}

void CombineReference::combined_row(int rank, int token, std::span<std::uint16_t> out) const {
  const std::vector<float> weights = scales(rank);
  std::vector<float> sum(index(case_.hidden), 0.0f);
  std::vector<std::uint16_t> row(index(case_.hidden));
  const int each = case_.relays == 0 ? case_.placement.ranks : case_.placement.ranks / case_.relays;
  const auto supernode_of = [&](int k) {
    const std::int32_t expert = case_.expert_ids[index(rank)][index(token * case_.top_k + k)];
    return static_cast<int>(case_.placement.slot_of(expert, rank).rank) / each;
  };
  std::vector<bool> brought(index(case_.top_k));  // by a relay's sum
  for (int k = 0; k < case_.top_k; ++k) {
    if (brought[index(k)]) continue;
    const int supernode = supernode_of(k);
    if (supernode == rank / each) {
      add_product({rank, token, k}, weights[index(token * case_.top_k + k)], sum);
      continue;
    }
    std::vector<float> relayed(sum.size(), 0.0f);
    for (int other = k; other < case_.top_k; ++other) {
      if (supernode_of(other) != supernode) continue;
      add_product({rank, token, other}, weights[index(token * case_.top_k + other)], relayed);
      brought[index(other)] = true;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += from_bf16(to_bf16(relayed[i]));
  }
  const auto add = [&] {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += from_bf16(row[i]);
  };
  for (int k = 0; k < case_.placement.shared; ++k) {
    expert_row({rank, token, case_.top_k + k}, row);
    add();
  }
  if (shared_output_) {
    shared_row(rank, token, row);
    add();
  }
  for (std::size_t i = 0; i < sum.size(); ++i) out[i] = to_bf16(sum[i]);
}

std::string CombineReference::compare(int rank, std::span<const std::uint16_t> x) const {
  const std::size_t hidden = index(case_.hidden);
  if (x.size() < index(case_.tokens_of(rank)) * hidden)
    return fmt::format("rank {}: the output is too small", rank);
  std::vector<std::uint16_t> row(hidden);
  for (int token = 0; token < case_.tokens_of(rank); ++token) {
    combined_row(rank, token, row);
    for (std::size_t i = 0; i < hidden; ++i) {
      const std::uint16_t found = x[index(token) * hidden + i];
      if (found != row[i])
        return fmt::format("rank {}: combined token {}, element {} is {:#06x}, expected {:#06x}", rank, token,
                           i, found, row[i]);
    }
  }
  return {};
}

}  // namespace cm384::reference
