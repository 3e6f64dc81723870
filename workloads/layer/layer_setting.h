// What layers of a decode step are asked for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/layer/attention_stages.h"
#include "workloads/moe/dispatch.h"
#include "workloads/moe/moe_case.h"

namespace cm384::studies {

// Groups of an AIC and two AIVs that a stream has: `first` .. `first` + `count` - 1.
struct CoreShare {
  int first = 0, count = 24;

  std::vector<std::uint16_t> groups() const { return operators::cores_from(first, count); }
  std::vector<std::uint16_t> aivs() const { return operators::cores_from(2 * first, 2 * count); }
};

// Lengths of the cached sequences of a rank, by microbatch.
using RankLengths = std::vector<std::vector<std::uint32_t>>;

struct LayerSetting {
  DispatchCase moe;            // batch: tokens of a microbatch and rank; cores: AIVs of the second stream
  AttentionSetting attention;  // of a microbatch and rank; lengths come from `lengths`
  Renewal renewal;             // with moe.by_load
  bool shared_output = true;   // the model has shared experts
  bool softmax_gate = false;   // else of sigmoids
  std::uint32_t expert_group = 32, token_groups = 4;  // of the gate: reference::GateCase
  std::uint32_t width = 2048;                         // of an expert
  bool bf16_networks = false;                         // weights of experts and of dense networks; else INT8
  bool int4_networks = false;                         // these weights, beside activations of INT8
  std::uint32_t dense_width = 0;  // of a rank's part of the network; 0: the layer has experts
  int tensor = 1;  // ranks that share the heads of a sequence, and the network of a dense layer: they follow
                   // one another
  int microbatches = 2, layers = 3;
  int relays = 0;  // with moe.relay: supernodes whose ranks reach each other by relays
  // Of the stream with attention and of that with the experts. With one microbatch there is one stream.
  std::array<CoreShare, 2> cores{};
  std::vector<RankLengths> lengths;  // some sets of them
  std::vector<int> lengths_of;       // by rank: which one it has
  // Ranks whose attention and experts run as firmware, of each kind; on the others they are replayed.
  int detail = 1;
  // Ranks that replay, of each kind; the others follow them (npu_core/replay/pace.h). 0: all.
  int replay = 0;

  // With moe.expert_ranks the ranks in front have tokens and attention, those behind them experts.
  bool two_kinds() const { return moe.expert_ranks > 0; }
  int token_ranks() const { return moe.ranks - moe.expert_ranks; }
  // Ranks with experts give their second stream what the others give their first one.
  CoreShare cores_of(int half, int rank) const {
    const auto own = static_cast<std::size_t>(half);
    if (microbatches == 1 || rank < token_ranks()) return cores[own];
    return half == 0 ? CoreShare{0, cores[1].count} : CoreShare{cores[1].count, cores[0].count};
  }
};

}  // namespace cm384::studies
