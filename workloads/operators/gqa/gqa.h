// Decode attention over a paged cache of keys and values that groups of query heads share, on one die, as
// operators: what stands before it, attention, output projection. The first and the last work on the memory
// of the attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/gqa_projections.h"
#include "workloads/operators/gemm/tiling.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/gqa_reference.h"

namespace cm384::operators {

struct GqaSetting {
  std::vector<std::uint32_t> kv_lens;                   // a sequence: tokens up to query 0, the newest inside
  std::uint32_t queries = 1;                            // 2 with one token of multi-token prediction
  std::uint32_t heads = 64, kv_heads = 8, width = 128;  // width of a head: 64 or 128
  std::uint32_t window = 0;                             // last tokens that a query sees; 0: all
  std::uint32_t hidden = 4096;                          // a multiple of 64
  bool int8 = false;                                    // the projections
  bool norms = false;  // each head's query and key is normed before it is rotated
  bool sinks = false;  // each head's softmax counts a score of its own besides

  std::uint32_t tokens() const { return static_cast<std::uint32_t>(kv_lens.size()) * queries; }
};
// Throws InputError: what does not suit the kernels, in the words of the options `heads`, `kv-heads` and
// `head-width`.
void check_gqa(const GqaSetting& setting);

class GqaAttention final : public KernelOperator {
 public:
  GqaAttention(const GqaSetting& setting, std::uint64_t seed);

  // Before place(): its queries and the newest tokens of its cache are another operator's to write, which
  // must have run when it is enqueued.
  void follows_prolog() { prolog_ = true; }

  const char* kernel() const override { return setting_.sinks ? "gqa_sinks" : "gqa"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;
  void enqueue(host::Stream stream) override;

  const cm384_gqa& arguments() const { return arguments_; }
  const std::vector<std::uint32_t>& page_table() const { return table_; }

 private:
  void lay_out(const Site& site) override;
  std::uint64_t write_arguments(host::DeviceMemory& memory) const override;
  // A float for each row of the tiles of a query.
  std::vector<float> sinks_of_rows(const std::vector<float>& of_heads) const;
  std::size_t elements() const { return std::size_t{setting_.tokens()} * setting_.heads * setting_.width; }

  GqaSetting setting_;
  reference::GqaCase case_;
  std::vector<std::uint32_t> table_;
  cm384_gqa arguments_{};
  std::uint64_t sinks_ = 0;
  std::optional<reference::GqaInputs> inputs_;
  bool prolog_ = false;
};

// KV heads of a tile: as many as L1 and the vector cores hold.
std::uint32_t heads_together(const GqaSetting& setting);

// Norm, projection, rotation: writes the queries and the newest tokens of the cache of an attention, which is
// placed before it.
class GqaProlog final : public KernelOperator {
 public:
  GqaProlog(const GqaSetting& setting, std::uint64_t seed, const GqaAttention& attention);

  const char* kernel() const override { return setting_.norms ? "gqa_prolog_normed" : "gqa_prolog"; }
  Work work() const override;
  std::string size() const override {
    return attention_.size() + (setting_.norms ? ", normed" : "") +
           (setting_.int8 ? ", prolog int8" : ", prolog");
  }
  // The first and last token and some between.
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  std::uint64_t write_arguments(host::DeviceMemory& memory) const override;

  GqaSetting setting_;
  const GqaAttention& attention_;
  reference::GqaProjectionCase case_;
  std::vector<std::uint32_t> slots_;  // of each token
  std::optional<reference::GqaPrologInputs> inputs_;
  cm384_gqa_prolog arguments_{};
  std::uint64_t gamma_q_ = 0, gamma_k_ = 0;  // with norms of heads
};

// Output projection: reads what an attention put out, which is placed before it.
class GqaOutput final : public KernelWith<cm384_gqa_output> {
 public:
  GqaOutput(const GqaSetting& setting, std::uint64_t seed, const GqaAttention& attention);

  const char* kernel() const override { return "gqa_output"; }
  Work work() const override;
  std::string size() const override {
    return attention_.size() + (setting_.int8 ? ", output int8" : ", output");
  }
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;

  GqaSetting setting_;
  const GqaAttention& attention_;
  reference::GqaProjectionCase case_;
  std::optional<reference::ProjectionWeights> weights_;
};

}  // namespace cm384::operators
