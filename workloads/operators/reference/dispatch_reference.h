// What FusedDispatch must deliver, rank by rank, computed without the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/operators/reference/accuracy.h"
#include "workloads/operators/reference/expert_placement.h"
#include "workloads/operators/reference/layouts.h"

namespace cm384::reference {

// One dispatch of all ranks.
struct DispatchCase {
  ExpertPlacement placement{};
  int batch = 0;  // tokens a rank; where ranks have unlike ones, the most
  int top_k = 0;
  int hidden = 0;
  std::uint64_t seed = 1;                               // of the tokens (tokens.h)
  std::vector<std::vector<std::int32_t>> expert_ids{};  // [ranks][batch * top_k]
  bool full_mesh = false;  // kernel dispatch_full_mesh instead of dispatch: other windows, the same outputs
  std::int64_t trace_rows = 0;  // of the recorded routing that expert_ids were taken from; 0: generated
  std::vector<int> batches{};   // tokens of each rank, where they are unlike; empty: batch
  int relays = 0;  // supernodes that reach each other by relays (firmware/abi/relay.h); 0: by themselves
  std::optional<Draw> drawn{};  // tokens and weights of networks are real numbers, rounded; none: even bits

  int tokens_of(int rank) const { return batches.empty() ? batch : batches[static_cast<std::size_t>(rank)]; }
  std::uint64_t tokens() const;  // of all ranks
  // Of a token, [hidden]: what is sent, and where it is drawn, what was rounded to it.
  void make_row(int rank, int token, std::span<std::uint16_t> row) const;
  std::vector<float> drawn_row(int rank, int token) const;
};

// The kernel's argument block of a rank with everything but the addresses of tables, tensors and workspace,
// which stay 0. max_tokens is the largest batch; window_half_bytes is a half of the data window, combine area
// inside.
cm384_dispatch dispatch_arguments(const DispatchCase& dispatch, int rank);

// A half of each rank's data window.
DataWindow data_window(const DispatchCase& dispatch);

// Bytes to allocate a rank for a launch of `blocks`.
struct DispatchSizes {
  std::uint64_t x, expert_ids, expert_copies, expert_slots, peers, workspace, window;
  std::uint64_t expand_x, expand_scales, expand_triples, send_counts, expert_token_nums;
};
DispatchSizes dispatch_sizes(const DispatchCase& dispatch, int rank, int blocks);

// A row that arrived.
struct ArrivedRow {
  std::int32_t source = 0, token = 0, k = 0;  // the triple
  bool operator==(const ArrivedRow&) const = default;
};

// What one rank receives, in output order: local expert, source rank, position.
struct ExpectedRank {
  std::vector<ArrivedRow> rows;
  std::vector<std::int32_t> send_counts;        // [own_experts][ranks], cumulative
  std::vector<std::int64_t> expert_token_nums;  // [own_experts]
};

class DispatchReference {
 public:
  // Routes every pair. `dispatch` must outlive the reference.
  explicit DispatchReference(const DispatchCase& dispatch);

  const ExpectedRank& rank(int number) const { return ranks_[static_cast<std::size_t>(number)]; }
  // Pairs that leave a rank (shared ones inside) and rows that arrive at all ranks: equal.
  std::uint64_t rows() const;

  // Row `row` of a rank's output: int8 values to `out` (hidden elements); returns the scale.
  float expected_row(int rank, std::size_t row, std::span<std::int8_t> out) const;

  // Compares a rank's outputs, bit for bit. Empty when equal, else what differs first. Output spans may be
  // longer than what arrived.
  std::string compare(int rank, std::span<const std::int8_t> expand_x, std::span<const float> scales,
                      std::span<const std::int32_t> triples, std::span<const std::int32_t> send_counts,
                      std::span<const std::int64_t> expert_token_nums) const;
  // Rows and their scales alone.
  std::string compare_rows(int rank, std::span<const std::int8_t> expand_x,
                           std::span<const float> scales) const;
  // The plain outputs alone, as payload mode `control` has them.
  std::string compare_plain(int rank, std::span<const std::int32_t> triples,
                            std::span<const std::int32_t> send_counts,
                            std::span<const std::int64_t> expert_token_nums) const;

 private:
  const DispatchCase& case_;
  std::vector<ExpectedRank> ranks_;
};

}  // namespace cm384::reference
