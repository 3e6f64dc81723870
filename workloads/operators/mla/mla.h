// A layer's decode attention on one die, as operators: what stands before it, attention over the compressed
// KV cache, output projection. The first and the last work on the memory of the attention.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "firmware/abi/mla.h"
#include "workloads/operators/gemm/tiling.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/mla_reference.h"

namespace cm384::operators {

struct MlaSetting {
  std::vector<std::uint32_t> kv_lens;  // a sequence: tokens that query 0 sees, the newest inside
  std::uint32_t queries = 1;           // 2 with one token of multi-token prediction
  std::uint32_t heads = 128;
  std::uint32_t hidden = 7168, q_lora = 1536;  // multiples of 64
  bool int8 = false;  // projections from and to hidden and q_lora; those of each head are BF16
  // Elements of a head without rope, and of its value; others than these with a cache of rows.
  std::uint32_t nope = 128, value = 128;
  bool one_prompt =
      false;  // with a cache of rows: sequences are the first tokens of one, and share its pages

  std::uint32_t tokens() const { return static_cast<std::uint32_t>(kv_lens.size()) * queries; }
};

// Attention of absorbed queries over cached latents, which a prolog and an output projection work beside.
class LatentAttention : public KernelOperator {
 public:
  LatentAttention(const MlaSetting& setting, std::uint64_t seed);

  // Before place(): its queries and the newest tokens of its cache are another operator's to write; it reads
  // them back when it is enqueued, which must have run by then. Or nothing of it is to run, and what it would
  // put out is made up.
  void follows_prolog() { prolog_ = true; }
  // Before place(), in payload mode full: the pages of its cache, by page_table(), and what scores are
  // multiplied by, in place of drawn ones.
  void read(std::vector<std::uint16_t> pages, float scale);
  void skip_run() { skipped_ = true; }
  void enqueue(host::Stream stream) override;

  virtual const cm384_mla& arguments() const = 0;
  virtual double cache_bytes() const = 0;  // that it has to read
  // A token of the cache is a row (firmware/abi/sparse_mla.h), not a part of a page.
  virtual bool caches_rows() const { return false; }
  const std::vector<std::uint32_t>& page_table() const { return table_; }

 protected:
  std::size_t rows() const { return std::size_t{setting_.tokens()} * setting_.heads; }
  // Into how many parts the tokens of each query go; `kv_blocks` as choose_splits() has them.
  std::uint32_t splits_of(const Site& site, std::span<const std::uint32_t> kv_blocks,
                          std::uint32_t block_tokens) const;
  // Queries, cache, results, and what cores hand each other; heads, block_tokens and splits are there.
  void lay_out_tensors(const Site& site, cm384_mla& a);

  MlaSetting setting_;
  reference::MlaCase case_;
  std::vector<std::uint32_t> table_;
  std::optional<reference::MlaInputs> inputs_;
  bool prolog_ = false, skipped_ = false;
};

class MlaAttention final : public KernelWith<cm384_mla, LatentAttention> {
 public:
  using KernelWith::KernelWith;

  const char* kernel() const override { return "mla"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

  const cm384_mla& arguments() const override { return arguments_; }
  double cache_bytes() const override;  // each token once

 private:
  void lay_out(const Site& site) override;
};

// How a KV block passes through L1.
struct KvBlocking {
  std::uint32_t block_tokens = 0, chunks = 0, slots = 0;  // firmware/abi/mla.h
};
// Three KV blocks in L1, so that MTE2 never waits for the vector cores, where such a block is large enough
// for the fixpipe, which writes a row of products a head and block; else the largest block of which two and a
// third fit.
KvBlocking choose_blocking(std::uint32_t heads, const CubeRates& rates = {});
// Cycles of a core, at least: of a block of the launch for a KV block (scores and products out of the
// fixpipe, or the block in from HBM) and for a part of a sequence that its two vector cores write; of all
// vector cores for one part of each of `pairs` sequences and queries, which they combine eight heads at a
// time.
struct KvCycles {
  double block = 0, part = 0, combined = 0;
};
KvCycles kv_cycles(std::uint32_t pairs, std::uint32_t heads, std::uint32_t block_tokens, std::uint32_t blocks,
                   const CubeRates& rates = {});
// Into how many parts the tokens of each sequence go, so that it takes least. `kv_blocks`: of each task
// before it is cut; one with fewer KV blocks than parts has one part each.
std::uint32_t choose_splits(std::span<const std::uint32_t> kv_blocks, std::uint32_t blocks,
                            const KvCycles& cycles);
// The same of `pairs` sequences and queries of one length, by turns alone: the rule of all published figures
// and ensembles. With few heads it cuts finer than cycles would have it.
std::uint32_t even_splits(std::uint32_t pairs, std::uint32_t blocks, std::uint32_t kv_blocks);

}  // namespace cm384::operators
