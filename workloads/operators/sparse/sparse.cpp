#include "workloads/operators/sparse/sparse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text/error.h"
#include "workloads/operators/gemm/projection.h"
#include "workloads/operators/reference/layouts.h"

namespace cm384::operators {
namespace {

constexpr std::uint32_t kMostL1 = 512 * 1024;
// Of what it takes to sort a block of tokens and merge it: to merge a core's list.
constexpr double kListShare = 0.3;

// Largest KV block of which the slots fit beside queries and probabilities.
std::uint32_t block_tokens_of(std::uint32_t heads) {
  cm384_mla a{};
  a.heads = heads;
  a.block_tokens = CM384_MLA_PAGE_TOKENS;
  while (a.block_tokens > 16 && CM384_SPARSE_L1(a) > kMostL1) a.block_tokens -= 16;
  return a.block_tokens;
}

}  // namespace

void check_index(const IndexSetting& setting) {
  if (setting.heads % 16 != 0 || setting.heads == 0 || setting.heads > 64)
    throw InputError(
        fmt::format("--index-heads {}: allowed: 16, 32, 48 or 64 with an indexer's kernel", setting.heads));
  if (setting.chosen % 64 != 0 || setting.chosen == 0 || setting.chosen > CM384_TOP_K_MOST)
    throw InputError(
        fmt::format("--sparse {}: allowed: multiples of 64 up to {}", setting.chosen, CM384_TOP_K_MOST));
}

Indexer::Indexer(const IndexSetting& setting, std::uint64_t seed)
    : case_{seed, setting.kv_lens, setting.queries, setting.heads, setting.chosen, setting.one_prompt},
      table_(reference::make_page_table(case_.cached())) {
  check_index(setting);
}

bool Indexer::scores_tokens(std::uint32_t row) const {
  return case_.tokens(row / case_.queries * case_.queries + case_.queries - 1) > case_.chosen;
}

void Indexer::lay_out(const Site& site) {
  const auto allocate = [&site](std::uint64_t bytes) { return site.memory.allocate(bytes, 4096); };
  cm384_indexer& a = arguments_;
  a.batch = static_cast<std::uint32_t>(case_.kv_lens.size());
  a.queries = case_.queries;
  a.heads = case_.heads;
  a.table_width = case_.cached().table_width();
  a.chosen = case_.chosen;
  const std::uint64_t heads = std::uint64_t{case_.rows()} * a.heads;
  const std::uint64_t scores = std::uint64_t{case_.rows()} * CM384_INDEX_PITCH(a.table_width);
  a.q = allocate(heads * CM384_INDEX_WIDTH);
  a.weights = allocate(heads * 2);
  const std::uint64_t cached = reference::pages_of(table_) * CM384_INDEX_PAGE_BYTES;
  a.keys = allocate(cached);
  a.page_table = allocate(table_.size() * 4);
  a.kv_lens = allocate(case_.kv_lens.size() * 4);
  a.scores = allocate(scores * 4);
  runtime().put(a.page_table, std::span<const std::uint32_t>(table_));
  runtime().put(a.kv_lens, std::span<const std::uint32_t>(case_.kv_lens));
  if (!site.full) {
    runtime().mark_payload(a.q, heads * CM384_INDEX_WIDTH);
    runtime().mark_payload(a.weights, heads * 2);
    runtime().mark_payload(a.keys, cached);
    runtime().mark_payload(a.scores, scores * 4);
    return;
  }
  inputs_ = make_index_inputs(case_);
  runtime().put(a.keys, std::span<const std::byte>(inputs_->pages));
  if (skipped_) {
    // Few values: many scores are equal.
    std::vector<float> drawn(scores);
    for (std::size_t n = 0; n < drawn.size(); ++n)
      drawn[n] = static_cast<float>(static_cast<std::int8_t>(inputs_->pages[n % 16384])) * 0x1p-4f;
    runtime().put(a.scores, std::span<const float>(drawn));
  }
  if (prolog_) return;
  runtime().put(a.q, std::span<const std::int8_t>(inputs_->q));
  runtime().put(a.weights, std::span<const std::uint16_t>(inputs_->weights));
}

void Indexer::enqueue(host::Stream stream) {
  if (inputs_ && prolog_) {
    inputs_->q = runtime().get<std::int8_t>(arguments_.q, inputs_->q.size());
    inputs_->weights = runtime().get<std::uint16_t>(arguments_.weights, inputs_->weights.size());
    inputs_->pages = runtime().get<std::byte>(arguments_.keys, inputs_->pages.size());
  }
  KernelOperator::enqueue(stream);
}

Work Indexer::work() const {
  double products = 0, keys = 0;
  for (std::uint32_t row = 0; row < case_.rows(); ++row) {
    if (!scores_tokens(row)) continue;
    products += case_.tokens(row);
    if (row % case_.queries == case_.queries - 1) keys += case_.tokens(row);
  }
  const double heads = static_cast<double>(case_.rows()) * case_.heads;
  const double cache = keys * CM384_INDEX_WIDTH;
  return {2.0 * products * case_.heads * CM384_INDEX_WIDTH,
          true,
          cache + heads * (CM384_INDEX_WIDTH + 2) + products * 4,
          1,
          0,
          cache};
}

std::string Indexer::size() const {
  return fmt::format("indexer {}, {} queries, {} heads, {} chosen{}", fmt::join(case_.kv_lens, ","),
                     case_.queries, case_.heads, case_.chosen, case_.one_prompt ? ", one prompt" : "");
}

std::vector<float> Indexer::scores(std::uint32_t row) const {
  return runtime().get<float>(
      arguments_.scores + std::uint64_t{row} * CM384_INDEX_PITCH(arguments_.table_width) * 4,
      case_.tokens(row));
}

std::string Indexer::check() const {
  for (std::uint32_t row = 0; row < case_.rows(); ++row) {
    if (!scores_tokens(row)) continue;
    const std::string difference = compare_scores(case_, *inputs_, row, scores(row));
    if (!difference.empty()) return difference;
  }
  return {};
}

std::uint32_t choose_parts(std::span<const std::uint32_t> blocks, std::uint32_t cores) {
  constexpr std::uint32_t kMostParts = 32;
  std::uint32_t best = 1;
  double least = 0;
  std::vector<double> loads(cores);
  for (std::uint32_t parts = 1; parts <= kMostParts; ++parts) {
    std::ranges::fill(loads, 0.0);
    std::size_t task = 0;
    for (const std::uint32_t all : blocks) {
      const std::uint32_t own = std::min(all, parts);
      for (std::uint32_t part = 0; part < own; ++part) {
        const std::uint32_t of_part = (all + own - 1 - part) / own;
        loads[task++ % cores] += of_part;
      }
    }
    const double longest = *std::ranges::max_element(loads);
    std::ranges::fill(loads, 0.0);
    for (std::size_t row = 0; parts > 1 && row < blocks.size(); ++row)
      loads[row % cores] += std::min(blocks[row], parts) * kListShare;
    const double cost = longest + *std::ranges::max_element(loads);
    if (parts == 1 || cost < least) best = parts, least = cost;
  }
  return best;
}

void TopK::lay_out(const Site& site) {
  const cm384_indexer& of = indexer_.arguments();
  const reference::IndexCase& index = indexer_.index();
  cm384_top_k& a = arguments_;
  a.scores = of.scores;
  a.keys = of.keys;
  a.page_table = of.page_table;
  a.kv_lens = of.kv_lens;
  a.batch = of.batch;
  a.queries = of.queries;
  a.table_width = of.table_width;
  a.k = of.chosen;
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t row = 0; row < index.rows(); ++row)
    blocks.push_back(index.tokens(row) > a.k ? (index.tokens(row) + CM384_TOP_K_BLOCK - 1) / CM384_TOP_K_BLOCK
                                             : 0);
  a.parts = choose_parts(blocks, static_cast<std::uint32_t>(site.cores.size()));
  const std::uint64_t rows = index.rows();
  a.chosen = site.memory.allocate(rows * a.k * 4, 4096);
  a.lists = site.memory.allocate(rows * a.parts * a.k * 8, 4096);
}

Work TopK::work() const {
  const reference::IndexCase& index = indexer_.index();
  double bytes = 0;
  for (std::uint32_t row = 0; row < index.rows(); ++row) {
    const std::uint32_t tokens = index.tokens(row);
    bytes += (tokens > index.chosen ? tokens * 8.0 : 0) + std::min(tokens, index.chosen) * 4.0;
  }
  return {0, false, bytes};
}

std::string TopK::check() const {
  const reference::IndexCase& index = indexer_.index();
  for (std::uint32_t row = 0; row < index.rows(); ++row) {
    const auto wanted = chosen_places(index, indexer_.inputs(), row, indexer_.scores(row));
    const auto got = runtime().get<std::uint32_t>(arguments_.chosen + std::uint64_t{row} * index.chosen * 4,
                                                  wanted.size());
    const auto differs = std::ranges::mismatch(wanted, got);
    if (differs.in1 != wanted.end())
      return fmt::format("row {} choice {}: place {} instead of {}", row, differs.in1 - wanted.begin(),
                         *differs.in2, *differs.in1);
  }
  return {};
}

SparseAttention::SparseAttention(const MlaSetting& setting, const IndexSetting& index, std::uint64_t seed)
    : KernelWith(setting, seed), index_{seed,        index.kv_lens, index.queries,
                                        index.heads, index.chosen,  index.one_prompt} {
  check_index(index);
}

void SparseAttention::lay_out(const Site& site) {
  cm384_mla& a = arguments_.attention;
  a.batch = index_.rows();
  a.queries = 1;
  a.heads = case_.heads;
  a.table_width = case_.table_width();
  a.scale = case_.scale;
  a.block_tokens = block_tokens_of(a.heads);
  std::vector<std::uint32_t> lengths, kv_blocks;
  for (std::uint32_t row = 0; row < a.batch; ++row) {
    lengths.push_back(seen(row));
    kv_blocks.push_back((seen(row) + a.block_tokens - 1) / a.block_tokens);
  }
  a.splits = splits_of(site, kv_blocks, a.block_tokens);
  lay_out_tensors(site, a);
  runtime().put(a.kv_lens, std::span<const std::uint32_t>(lengths));
  arguments_.chosen_pitch = index_.chosen;
  if (choice_ != nullptr) {
    arguments_.chosen = choice_->arguments().chosen;
    return;
  }
  const std::vector<std::uint32_t> places = draw_places(index_);
  arguments_.chosen = site.memory.allocate(places.size() * 4, 4096);
  runtime().put(arguments_.chosen, std::span<const std::uint32_t>(places));
}

double SparseAttention::tokens() const {
  double sum = 0;
  for (std::uint32_t row = 0; row < index_.rows(); ++row) sum += seen(row);
  return sum;
}

double SparseAttention::cache_bytes() const {
  return tokens() * CM384_SPARSE_ROW_BYTES;
}

Work SparseAttention::work() const {
  const double q_and_out = static_cast<double>(rows()) * (CM384_MLA_WIDTH + CM384_MLA_LATENT) * 2;
  return {2.0 * tokens() * setting_.heads * (CM384_MLA_WIDTH + CM384_MLA_LATENT),
          false,
          cache_bytes() + tokens() * 4 + q_and_out,
          1,
          0,
          cache_bytes()};
}

std::string SparseAttention::size() const {
  return fmt::format("sparse mla {}, {} queries, {} heads, {} chosen, hidden {}, latent {}, head {} {}{}",
                     fmt::join(setting_.kv_lens, ","), setting_.queries, setting_.heads, index_.chosen,
                     setting_.hidden, setting_.q_lora, setting_.nope, setting_.value,
                     setting_.one_prompt ? ", one prompt" : "");
}

std::string SparseAttention::check() const {
  const auto places =
      runtime().get<std::uint32_t>(arguments_.chosen, std::size_t{index_.rows()} * index_.chosen);
  return compare_sparse_mla(
      index_, case_, *inputs_, places,
      runtime().get<std::uint16_t>(arguments_.attention.out, rows() * CM384_MLA_LATENT));
}

void IndexProlog::lay_out(const Site& site) {
  const cm384_mla_prolog& from = prolog_.arguments();
  const cm384_indexer& to = indexer_.arguments();
  const reference::ProjectionCase& layer = prolog_.projections();
  const auto lines = [&](std::uint64_t bytes) { return site.memory.allocate_lines(bytes); };
  cm384_index_prolog& a = arguments_;
  a.tokens = from.tokens;
  a.heads = to.heads;
  a.epsilon = reference::kNormEpsilon;
  a.weight_scale = static_cast<float>(32 / std::sqrt(double{CM384_INDEX_WIDTH} * a.heads));
  a.query = place_projection(site, a.tokens, 1, a.heads * CM384_INDEX_WIDTH, layer.q_lora, layer.int8);
  a.key = place_projection(site, a.tokens, 1, CM384_INDEX_WIDTH + a.heads, layer.hidden, layer.int8);
  a.query.a = from.up.a;
  a.query.token_scales = from.up.token_scales;
  a.key.a = from.down.a;
  a.key.token_scales = from.down.token_scales;
  a.query.c = lines(a.tokens * a.query.c_pitch);
  a.key.c = lines(a.tokens * a.key.c_pitch);
  a.gamma = lines(CM384_INDEX_WIDTH * 2);
  a.beta = lines(CM384_INDEX_WIDTH * 2);
  a.rope = from.rope;
  a.slots = from.slots;
  a.q = to.q;
  a.weights = to.weights;
  a.keys = to.keys;
  if (!site.full) {
    runtime().mark_payload(a.gamma, CM384_INDEX_WIDTH * 2);
    runtime().mark_payload(a.beta, CM384_INDEX_WIDTH * 2);
    return;
  }
  inputs_ = make_index_prolog_inputs(layer, a.heads);
  write_weights(runtime(), a.query, inputs_->query);
  write_weights(runtime(), a.key, inputs_->key);
  runtime().put(a.gamma, std::span<const std::uint16_t>(inputs_->gamma));
  runtime().put(a.beta, std::span<const std::uint16_t>(inputs_->beta));
}

Work IndexProlog::work() const {
  const cm384_index_prolog& a = arguments_;
  const reference::ProjectionCase& layer = prolog_.projections();
  const double rows = (layer.hidden + layer.q_lora) * (layer.int8 ? 1.0 : 2.0);
  return work_of({&a.query, &a.key}, a.tokens, a.tokens * (rows + a.heads * (CM384_INDEX_WIDTH + 2.0)));
}

reference::IndexPrologOutput IndexProlog::output(std::uint32_t token) const {
  const cm384_index_prolog& a = arguments_;
  const std::uint32_t slot = prolog_.slots()[token], within = slot % CM384_INDEX_PAGE_TOKENS;
  const std::uint64_t page =
      a.keys + std::uint64_t{slot / CM384_INDEX_PAGE_TOKENS} * reference::IndexLayout::kPageBytes;
  reference::IndexPrologOutput made;
  const std::uint64_t first = std::uint64_t{token} * a.heads;
  made.q =
      runtime().get<std::int8_t>(a.q + first * CM384_INDEX_WIDTH, std::size_t{a.heads} * CM384_INDEX_WIDTH);
  made.weights = runtime().get<std::uint16_t>(a.weights + first * 2, a.heads);
  for (std::uint32_t n = 0; n < CM384_INDEX_WIDTH; ++n)
    made.key.push_back(runtime().get<std::int8_t>(page + reference::IndexLayout::key(within, n), 1).front());
  made.scale = runtime().get<float>(page + reference::IndexLayout::scale(within), 1).front();
  return made;
}

std::string IndexProlog::check() const {
  return compare_tokens(arguments_.tokens, [&](std::uint32_t token) {
    return compare_index_prolog(prolog_.projections(), prolog_.inputs(), *inputs_, token, output(token));
  });
}

}  // namespace cm384::operators
