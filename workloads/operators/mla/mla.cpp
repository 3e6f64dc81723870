#include "workloads/operators/mla/mla.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cm384::operators {
namespace {

constexpr std::uint32_t kL1Bytes = 512 * 1024;
constexpr std::uint32_t kMostSplits = 32;
// Of a small read of memory by a vector core, about (ascend-facts A6).
constexpr double kReadLatencyCycles = 700;

}  // namespace

LatentAttention::LatentAttention(const MlaSetting& setting, std::uint64_t seed)
    : setting_(setting),
      // Scores of inputs of magnitude 1 stay within a few units.
      case_{seed,
            setting.kv_lens,
            setting.queries,
            setting.heads,
            static_cast<float>(1.0 / std::sqrt(192.0) / 4),
            setting.one_prompt},
      table_(reference::make_page_table(case_)) {}

std::uint32_t LatentAttention::splits_of(const Site& site, std::span<const std::uint32_t> kv_blocks,
                                         std::uint32_t block_tokens) const {
  const auto blocks = static_cast<std::uint32_t>(site.cores.size());
  const auto pairs = static_cast<std::uint32_t>(kv_blocks.size());
  const auto [shortest, longest] = std::ranges::minmax(kv_blocks);
  return longest <= shortest + 1 ? even_splits(pairs, blocks, shortest)
                                 : choose_splits(kv_blocks, blocks,
                                                 kv_cycles(pairs, case_.heads, block_tokens, blocks,
                                                           rates_of(site, CM384_GEMM_BF16)));
}

void LatentAttention::lay_out_tensors(const Site& site, cm384_mla& a) {
  const auto allocate = [&site](std::uint64_t bytes) { return site.memory.allocate(bytes, 4096); };
  a.q = allocate(rows() * CM384_MLA_WIDTH * 2);
  const std::uint64_t cached = reference::pages_of(table_) * CM384_MLA_PAGE_BYTES;
  a.kv = allocate(cached);
  a.page_table = allocate(table_.size() * 4);
  a.kv_lens = allocate(std::uint64_t{a.batch} * 4);
  a.out = allocate(rows() * CM384_MLA_LATENT * 2);
  a.workspace = allocate(CM384_MLA_WORKSPACE(a) * static_cast<std::uint64_t>(site.cores.size()));
  a.partial_o = allocate(rows() * a.splits * CM384_MLA_LATENT * 4);
  a.partial_m = allocate(rows() * a.splits * 4);
  a.partial_l = allocate(rows() * a.splits * 4);
  runtime().put(a.page_table, std::span<const std::uint32_t>(table_));
  if (!site.full) {
    runtime().mark_payload(a.q, rows() * CM384_MLA_WIDTH * 2);
    runtime().mark_payload(a.kv, cached);
    // Not written where the attention does not run.
    runtime().mark_payload(a.out, rows() * CM384_MLA_LATENT * 2);
    return;
  }
  if (!inputs_) inputs_ = reference::make_mla_inputs(case_);
  const auto q = std::span<const std::uint16_t>(inputs_->q);
  runtime().put(a.kv, std::span<const std::uint16_t>(inputs_->pages));
  if (!prolog_) runtime().put(a.q, q);
  // Something to work on: queries are as large as latents.
  if (skipped_) runtime().put(a.out, q.first(rows() * CM384_MLA_LATENT));
}

void LatentAttention::read(std::vector<std::uint16_t> pages, float scale) {
  case_.scale = scale;
  inputs_ = reference::make_mla_inputs(case_);
  inputs_->pages = std::move(pages);
}

void LatentAttention::enqueue(host::Stream stream) {
  if (inputs_ && prolog_) {
    inputs_->q = runtime().get<std::uint16_t>(arguments().q, inputs_->q.size());
    inputs_->pages = runtime().get<std::uint16_t>(arguments().kv, inputs_->pages.size());
  }
  KernelOperator::enqueue(stream);
}

void MlaAttention::lay_out(const Site& site) {
  cm384_mla& a = arguments_;
  a.batch = case_.batch();
  a.queries = case_.queries;
  a.heads = case_.heads;
  a.table_width = case_.table_width();
  a.scale = case_.scale;
  const KvBlocking blocking = choose_blocking(case_.heads, rates_of(site, CM384_GEMM_BF16));
  a.block_tokens = blocking.block_tokens;
  a.chunks = blocking.chunks;
  a.slots = blocking.slots;
  std::vector<std::uint32_t> kv_blocks;
  for (const std::uint32_t length : case_.kv_lens) {
    for (std::uint32_t query = 0; query < a.queries; ++query)
      kv_blocks.push_back((length + query + a.block_tokens - 1) / a.block_tokens);
  }
  a.splits = splits_of(site, kv_blocks, a.block_tokens);
  lay_out_tensors(site, a);
  runtime().put(a.kv_lens, std::span<const std::uint32_t>(case_.kv_lens));
}

Work MlaAttention::work() const {
  double tokens = 0;
  for (const std::uint32_t length : setting_.kv_lens) {
    for (std::uint32_t query = 0; query < setting_.queries; ++query) tokens += length + query;
  }
  const double q_and_out = static_cast<double>(rows()) * (CM384_MLA_WIDTH + CM384_MLA_LATENT) * 2;
  return {2.0 * tokens * setting_.heads * (CM384_MLA_WIDTH + CM384_MLA_LATENT),
          false,
          cache_bytes() + q_and_out,
          1,
          0,
          cache_bytes()};
}

double MlaAttention::cache_bytes() const {
  double tokens = 0;
  for (const std::uint32_t length : setting_.kv_lens) tokens += length + setting_.queries - 1;
  return tokens * CM384_MLA_WIDTH * 2;
}

std::string MlaAttention::size() const {
  return fmt::format("mla {}, {} queries, {} heads, hidden {}, latent {}", fmt::join(setting_.kv_lens, ","),
                     setting_.queries, setting_.heads, setting_.hidden, setting_.q_lora);
}

std::string MlaAttention::check() const {
  return compare_mla(case_, *inputs_,
                     runtime().get<std::uint16_t>(arguments_.out, rows() * CM384_MLA_LATENT));
}

KvBlocking choose_blocking(std::uint32_t heads, const CubeRates& rates) {
  const auto largest = [heads](std::uint32_t chunks, std::uint32_t slots) {
    cm384_mla a{};
    a.heads = heads;
    a.chunks = chunks;
    a.slots = slots;
    a.block_tokens = CM384_MLA_PAGE_TOKENS;
    while (a.block_tokens > 16 && CM384_MLA_L1(a) > kL1Bytes) a.block_tokens -= 16;
    return KvBlocking{a.block_tokens, chunks, slots};
  };
  const KvBlocking three = largest(2, 6), two = largest(3, 7);
  // Cycles of a token: out of the fixpipe, scores and products, FP32; in from HBM.
  const double fixpipe = heads * (1.0 + double{CM384_MLA_LATENT} / three.block_tokens) * 4 / rates.fixpipe;
  return fixpipe < CM384_MLA_WIDTH * 2 / rates.hbm ? three : two;
}

std::uint32_t even_splits(std::uint32_t pairs, std::uint32_t blocks, std::uint32_t kv_blocks) {
  // In whole sequences of the busiest block; to combine costs a thousandth of one a split.
  const auto cost = [&](std::uint32_t splits) {
    const std::uint32_t turns = (pairs * splits + blocks - 1) / blocks;
    return static_cast<double>(turns) / splits + splits / 1000.0;
  };
  std::uint32_t best = 1;
  for (std::uint32_t splits = 2; splits <= std::min(kMostSplits, kv_blocks); ++splits) {
    if (cost(splits) < cost(best)) best = splits;
  }
  return best;
}

std::uint32_t choose_splits(std::span<const std::uint32_t> kv_blocks, std::uint32_t blocks,
                            const KvCycles& cycles) {
  std::vector<double> loads(blocks);
  const std::uint32_t longest = std::ranges::max(kv_blocks);
  // Cycles of the busiest block, tasks dealt out in turn, and of combining the parts of the longest sequence.
  const auto cost = [&](std::uint32_t splits) {
    std::ranges::fill(loads, 0.0);
    std::size_t task = 0;
    for (const std::uint32_t all : kv_blocks) {
      const std::uint32_t parts = std::min(all, splits);
      for (std::uint32_t part = 0; part < parts; ++part) {
        const std::uint32_t own = (part + 1) * all / parts - part * all / parts;
        loads[task++ % blocks] += own * cycles.block + (splits > 1 ? cycles.part : 0);
      }
    }
    const double combined = splits > 1 ? std::min(splits, longest) * cycles.combined : 0;
    return std::ranges::max(loads) + combined;
  };
  std::uint32_t best = 1;
  double least = cost(1);
  for (std::uint32_t splits = 2; splits <= std::min(kMostSplits, longest); ++splits) {
    const double one = cost(splits);
    if (one < least) best = splits, least = one;
  }
  return best;
}

KvCycles kv_cycles(std::uint32_t pairs, std::uint32_t heads, std::uint32_t block_tokens, std::uint32_t blocks,
                   const CubeRates& rates) {
  const double fixpipe = heads * (block_tokens + double{CM384_MLA_LATENT}) * 4 / rates.fixpipe;
  const double read = block_tokens * CM384_MLA_WIDTH * 2 / rates.hbm;
  constexpr std::uint32_t kVectorCores = 2, kHeads = 8;  // at a time, as kernel mla combines them
  const std::uint32_t units = pairs * (heads / kHeads), cores = kVectorCores * blocks;
  const std::uint32_t turns = (units + cores - 1) / cores;
  const double head = CM384_MLA_LATENT * 4 / rates.hbm;
  return {std::max(fixpipe, read), heads * head / kVectorCores, turns * (kReadLatencyCycles + kHeads * head)};
}

}  // namespace cm384::operators
