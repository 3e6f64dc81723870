// Decode attention over the cached tokens that an indexer chooses, on one die, as operators: scores of all
// cached tokens, the choice of the largest, attention over the chosen ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/index_prolog.h"
#include "firmware/abi/sparse_mla.h"
#include "workloads/operators/mla/projections.h"
#include "workloads/operators/reference/index_projections.h"
#include "workloads/operators/reference/sparse_reference.h"

namespace cm384::operators {

struct IndexSetting {
  std::vector<std::uint32_t> kv_lens;  // a sequence: tokens that query 0 sees, the newest inside
  std::uint32_t queries = 1;
  std::uint32_t heads = 64;     // of the indexer: a multiple of 16, at most 64
  std::uint32_t chosen = 2048;  // tokens: a multiple of 64, at most 2048
  bool one_prompt = false;      // sequences are the first tokens of one, and share its pages
};
// Throws InputError: what does not suit the kernels, in the words of the options `index-heads` and `sparse`.
void check_index(const IndexSetting& setting);

// Scores of the cached tokens of each query that sees more than it chooses.
class Indexer final : public KernelWith<cm384_indexer> {
 public:
  Indexer(const IndexSetting& setting, std::uint64_t seed);

  // Before place(): its queries, weights and the newest keys are another operator's to write, and are read
  // back when it is enqueued. Or it does not run, and its scores are made up.
  void follows_prolog() { prolog_ = true; }
  void skip_run() { skipped_ = true; }

  const char* kernel() const override { return "indexer"; }
  npu::KernelType type() const override { return npu::KernelType::aic; }
  // Products of queries with keys; the sums over heads are as many as their results.
  Work work() const override;
  std::string size() const override;
  std::string check() const override;
  void enqueue(host::Stream stream) override;

  const cm384_indexer& arguments() const { return arguments_; }
  const std::vector<std::uint32_t>& page_table() const { return table_; }
  const reference::IndexCase& index() const { return case_; }
  // The inputs, in payload mode full.
  const reference::IndexInputs& inputs() const { return *inputs_; }
  std::vector<float> scores(std::uint32_t row) const;

 private:
  void lay_out(const Site& site) override;
  bool scores_tokens(std::uint32_t row) const;

  reference::IndexCase case_;
  std::vector<std::uint32_t> table_;
  std::optional<reference::IndexInputs> inputs_;
  bool prolog_ = false, skipped_ = false;
};

// Into how many parts the tokens of each query go, which `cores` vector cores sort. `blocks`: of each query,
// CM384_TOP_K_BLOCK tokens; none where it chooses all.
std::uint32_t choose_parts(std::span<const std::uint32_t> blocks, std::uint32_t cores);

// The choice by the scores of an indexer, which is placed before it.
class TopK final : public KernelWith<cm384_top_k> {
 public:
  explicit TopK(const Indexer& indexer) : indexer_(indexer) {}

  const char* kernel() const override { return "top_k"; }
  npu::KernelType type() const override { return npu::KernelType::aiv; }
  Work work() const override;
  std::string size() const override { return "top-k of " + indexer_.size(); }
  std::string check() const override;

  const cm384_top_k& arguments() const { return arguments_; }

 private:
  void lay_out(const Site& site) override;

  const Indexer& indexer_;
};

// Attention over chosen tokens. As the gate's choice is not what dispatch sends, they are drawn, the same in
// both payload modes, unless it follows a choice.
class SparseAttention final : public KernelWith<cm384_sparse_mla, LatentAttention> {
 public:
  SparseAttention(const MlaSetting& setting, const IndexSetting& index, std::uint64_t seed);

  // Before place(), in payload mode full; the choice is placed before it.
  void follows_choice(const TopK& choice) { choice_ = &choice; }

  const char* kernel() const override { return "sparse_mla"; }
  // A chosen token once for each query.
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

  const cm384_mla& arguments() const override { return arguments_.attention; }
  bool caches_rows() const override { return true; }
  double cache_bytes() const override;

 private:
  void lay_out(const Site& site) override;
  std::uint32_t seen(std::uint32_t row) const { return std::min(index_.chosen, index_.tokens(row)); }
  double tokens() const;  // chosen, of all queries

  reference::IndexCase index_;
  const TopK* choice_ = nullptr;
};

// What stands before an indexer: its queries, weights and newest keys, from the rows that a prolog has
// normed. Both are placed before it.
class IndexProlog final : public KernelWith<cm384_index_prolog> {
 public:
  IndexProlog(std::uint64_t seed, const MlaProlog& prolog, const Indexer& indexer)
      : seed_(seed), prolog_(prolog), indexer_(indexer) {}

  const char* kernel() const override { return "index_prolog"; }
  Work work() const override;
  std::string size() const override { return prolog_.size() + ", " + indexer_.size(); }
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  reference::IndexPrologOutput output(std::uint32_t token) const;

  std::uint64_t seed_;
  const MlaProlog& prolog_;
  const Indexer& indexer_;
  std::optional<reference::IndexPrologInputs> inputs_;
};

}  // namespace cm384::operators
