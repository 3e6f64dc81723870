#include "workloads/operators/gqa/gqa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text/error.h"
#include "workloads/operators/gemm/projection.h"
#include "workloads/operators/mla/mla.h"

namespace cm384::operators {
namespace {

constexpr std::uint32_t kCubeL1Bytes = 512 * 1024;
constexpr std::uint32_t kMostTileRows = 128;   // half of them for a vector core, with scores and sums of each
constexpr std::uint32_t kMostKeys = 32 * 128;  // elements of a token's keys that a vector core rotates
constexpr std::uint32_t kMostHeadsAtOnce = 32;  // that a vector core rotates

reference::GqaProjectionCase case_of(std::uint64_t seed, const GqaSetting& s) {
  return {seed, s.tokens(), s.hidden, s.heads, s.kv_heads, s.width, s.int8, s.norms};
}

// Cycles of a core, at least, as kv_cycles() has them: for a KV block its keys and values in from HBM, or
// what a vector core does for it one step after another; for a part of a sequence that is written and read
// again.
KvCycles cycles_of(const cm384_gqa& a, std::uint32_t blocks, const CubeRates& rates) {
  constexpr double kSteps = 2500;  // of the softmax and the sum of a KV block, about
  constexpr double kRead = 700;    // of a small read of memory by a vector core (ascend-facts A6)
  const std::uint32_t rows = CM384_GQA_TILE_ROWS(a), units = CM384_GQA_TASKS(a) * (rows / 8),
                      cores = 2 * blocks;
  const std::uint32_t turns = (units + cores - 1) / cores;
  const double row = a.width * 4 / rates.hbm;
  const double read = 2.0 * CM384_GQA_BLOCK_BYTES(a) / rates.hbm;
  return {std::max(read, kSteps), rows * row / 2, turns * (kRead + 8 * row)};
}

}  // namespace

void check_gqa(const GqaSetting& s) {
  if (s.width != 64 && s.width != 128)
    throw InputError(fmt::format("head-width {}: allowed: 64 or 128, which the kernels are for", s.width));
  if (s.kv_heads == 0 || s.heads % s.kv_heads != 0)
    throw InputError(fmt::format("kv-heads {}: allowed: a divisor of {} heads", s.kv_heads, s.heads));
  if (s.kv_heads * s.width > kMostKeys)
    throw InputError(fmt::format("kv-heads {}: of {} elements each; allowed on a rank: up to {}", s.kv_heads,
                                 s.width, kMostKeys / s.width));
  if (s.heads / s.kv_heads > kMostTileRows)
    throw InputError(fmt::format("kv-heads {}: {} heads share one; allowed: up to {}", s.kv_heads,
                                 s.heads / s.kv_heads, kMostTileRows));
}

std::uint32_t heads_together(const GqaSetting& s) {
  cm384_gqa a{};
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.width = s.width;
  a.block_tokens = CM384_GQA_PAGE_TOKENS;
  for (a.together = s.kv_heads; a.together > 1; --a.together) {
    if (s.kv_heads % a.together == 0 && CM384_GQA_L1(a) <= kCubeL1Bytes &&
        CM384_GQA_TILE_ROWS(a) <= kMostTileRows)
      break;
  }
  return a.together;
}

GqaAttention::GqaAttention(const GqaSetting& setting, std::uint64_t seed)
    : setting_(setting),
      // Scores of inputs of magnitude 1 stay within a few units.
      case_{seed,
            setting.kv_lens,
            setting.queries,
            setting.heads,
            setting.kv_heads,
            setting.width,
            setting.window,
            static_cast<float>(1.0 / std::sqrt(static_cast<double>(setting.width)) / 4),
            setting.sinks},
      table_(reference::make_gqa_page_table(case_)) {
  check_gqa(setting);
}

void GqaAttention::lay_out(const Site& site) {
  const auto allocate = [&site](std::uint64_t bytes) { return site.memory.allocate(bytes, 4096); };
  const auto blocks = static_cast<std::uint32_t>(site.cores.size());
  cm384_gqa& a = arguments_;
  a.batch = case_.batch();
  a.queries = case_.queries;
  a.heads = case_.heads;
  a.kv_heads = case_.kv_heads;
  a.width = case_.width;
  a.together = heads_together(setting_);
  a.table_width = case_.table_width();
  a.block_tokens = CM384_GQA_PAGE_TOKENS;
  a.window = case_.window;
  a.scale = case_.scale;
  std::vector<std::uint32_t> kv_blocks;
  for (const std::uint32_t length : case_.kv_lens) {
    for (std::uint32_t query = 0; query < a.queries; ++query) {
      const std::uint32_t tokens = a.window == 0 ? length + query : std::min(length + query, a.window);
      kv_blocks.insert(kv_blocks.end(), a.kv_heads / a.together,
                       (tokens + a.block_tokens - 1) / a.block_tokens);
    }
  }
  a.splits = choose_splits(kv_blocks, blocks, cycles_of(a, blocks, rates_of(site, CM384_GEMM_BF16)));
  const std::uint64_t cached = table_.size() * CM384_GQA_PAGE_BYTES(a.kv_heads, a.width);
  const std::uint64_t rows = std::uint64_t{CM384_GQA_TASKS(a)} * a.splits * CM384_GQA_TILE_ROWS(a);
  a.q = allocate(elements() * 2);
  a.k = allocate(cached);
  a.v = allocate(cached);
  a.page_table = allocate(table_.size() * 4);
  a.kv_lens = allocate(case_.kv_lens.size() * 4);
  a.out = allocate(elements() * 2);
  a.workspace = allocate(CM384_GQA_WORKSPACE(a) * std::uint64_t{blocks});
  a.partial_o = allocate(rows * a.width * 4);
  a.partial_m = allocate(rows * 4);
  a.partial_l = allocate(rows * 4);
  const std::uint32_t of_query = CM384_GQA_TILE_ROWS(a) * (a.kv_heads / a.together);
  if (setting_.sinks) sinks_ = site.memory.allocate_lines(of_query * 4ull);
  runtime().put(a.page_table, std::span<const std::uint32_t>(table_));
  runtime().put(a.kv_lens, std::span<const std::uint32_t>(case_.kv_lens));
  if (!site.full) {
    runtime().mark_payload(a.q, elements() * 2);
    runtime().mark_payload(a.k, cached);
    runtime().mark_payload(a.v, cached);
    runtime().mark_payload(a.out, elements() * 2);
    if (setting_.sinks) runtime().mark_payload(sinks_, of_query * 4ull);
    return;
  }
  inputs_ = reference::make_gqa_inputs(case_);
  runtime().put(a.k, std::span<const std::uint16_t>(inputs_->k));
  runtime().put(a.v, std::span<const std::uint16_t>(inputs_->v));
  if (!prolog_) runtime().put(a.q, std::span<const std::uint16_t>(inputs_->q));
  if (setting_.sinks) {
    const std::vector<float> sinks = sinks_of_rows(inputs_->sinks);
    runtime().put(sinks_, std::span<const float>(sinks));
  }
}

std::vector<float> GqaAttention::sinks_of_rows(const std::vector<float>& of_heads) const {
  const cm384_gqa& a = arguments_;
  const std::size_t rows = CM384_GQA_ROWS(a), group = a.heads / a.kv_heads;
  std::vector<float> made(rows * a.kv_heads);
  for (std::size_t head = 0; head < of_heads.size(); ++head)
    made[head / group * rows + head % group] = of_heads[head];
  return made;
}

std::uint64_t GqaAttention::write_arguments(host::DeviceMemory& memory) const {
  if (setting_.sinks) return memory.put(cm384_gqa_sinks{arguments_, sinks_});
  return memory.put(arguments_);
}

void GqaAttention::enqueue(host::Stream stream) {
  if (inputs_ && prolog_) {
    const auto read = [&](std::uint64_t from, std::vector<std::uint16_t>& into) {
      into = runtime().get<std::uint16_t>(from, into.size());
    };
    read(arguments_.q, inputs_->q);
    read(arguments_.k, inputs_->k);
    read(arguments_.v, inputs_->v);
  }
  KernelOperator::enqueue(stream);
}

Work GqaAttention::work() const {
  double pairs = 0, tokens = 0;
  const double window = setting_.window == 0 ? 1e18 : setting_.window;
  for (const std::uint32_t length : setting_.kv_lens) {
    for (std::uint32_t query = 0; query < setting_.queries; ++query)
      pairs += std::min<double>(length + query, window);
    tokens += std::min<double>(length + setting_.queries - 1, window + setting_.queries - 1);
  }
  Work work;
  work.operations = 4.0 * pairs * setting_.heads * setting_.width;
  work.cache = tokens * setting_.kv_heads * setting_.width * 4;
  work.bytes = work.cache + 4.0 * static_cast<double>(elements());
  return work;
}

std::string GqaAttention::size() const {
  return fmt::format("gqa {}, {} queries, {} heads on {} of {}, window {}, hidden {}{}",
                     fmt::join(setting_.kv_lens, ","), setting_.queries, setting_.heads, setting_.kv_heads,
                     setting_.width, setting_.window, setting_.hidden, setting_.sinks ? ", sinks" : "");
}

std::string GqaAttention::check() const {
  return compare_gqa(case_, *inputs_, runtime().get<std::uint16_t>(arguments_.out, elements()));
}

GqaProlog::GqaProlog(const GqaSetting& setting, std::uint64_t seed, const GqaAttention& attention)
    : setting_(setting), attention_(attention), case_(case_of(seed, setting)) {}

void GqaProlog::lay_out(const Site& site) {
  const cm384_gqa& attention = attention_.arguments();
  std::vector<std::uint32_t> positions;
  for (std::uint32_t sequence = 0; sequence < setting_.kv_lens.size(); ++sequence) {
    for (std::uint32_t query = 0; query < setting_.queries; ++query) {
      const std::uint32_t position = setting_.kv_lens[sequence] - 1 + query;
      const std::uint32_t page =
          attention_.page_table()[sequence * attention.table_width + position / CM384_GQA_PAGE_TOKENS];
      positions.push_back(position);
      slots_.push_back(page * CM384_GQA_PAGE_TOKENS + position % CM384_GQA_PAGE_TOKENS);
    }
  }
  cm384_gqa_prolog& a = arguments_;
  a.tokens = setting_.tokens();
  a.hidden = setting_.hidden;
  a.heads = setting_.heads;
  a.kv_heads = setting_.kv_heads;
  a.width = setting_.width;
  a.heads_at_once = std::min(a.heads, kMostHeadsAtOnce);
  while (a.heads % a.heads_at_once != 0) --a.heads_at_once;
  a.epsilon = reference::kNormEpsilon;
  a.x = site.memory.allocate_lines(std::uint64_t{a.tokens} * a.hidden * 2);
  a.gamma_x = site.memory.allocate_lines(a.hidden * 2);
  a.rope = site.memory.allocate_lines(std::uint64_t{a.tokens} * a.width * 8);
  a.slots = site.memory.allocate_lines(a.tokens * 4);
  a.k = attention.k;
  a.v = attention.v;
  a.q = attention.q;
  a.qkv = place_projection(site, a.tokens, 1, (a.heads + 2 * a.kv_heads) * a.width, a.hidden, setting_.int8);
  a.qkv.a = site.memory.allocate_lines(a.tokens * a.qkv.a_pitch);
  a.qkv.c = site.memory.allocate_lines(a.tokens * a.qkv.c_pitch);
  if (setting_.norms) {
    gamma_q_ = site.memory.allocate_lines(a.width * 2);
    gamma_k_ = site.memory.allocate_lines(a.width * 2);
  }
  runtime().put(a.slots, std::span<const std::uint32_t>(slots_));
  const std::vector<float> rope = reference::make_rope(positions, a.width);
  runtime().put(a.rope, std::span<const float>(rope));
  if (!site.full) {
    runtime().mark_payload(a.x, std::uint64_t{a.tokens} * a.hidden * 2);
    runtime().mark_payload(a.gamma_x, a.hidden * 2);
    if (setting_.norms) {
      runtime().mark_payload(gamma_q_, a.width * 2);
      runtime().mark_payload(gamma_k_, a.width * 2);
    }
    return;
  }
  inputs_ = reference::make_gqa_prolog_inputs(case_, positions);
  runtime().put(a.x, std::span<const std::uint16_t>(inputs_->x));
  runtime().put(a.gamma_x, std::span<const std::uint16_t>(inputs_->gamma_x));
  write_weights(runtime(), a.qkv, inputs_->qkv);
  if (!setting_.norms) return;
  runtime().put(gamma_q_, std::span<const std::uint16_t>(inputs_->gamma_q));
  runtime().put(gamma_k_, std::span<const std::uint16_t>(inputs_->gamma_k));
}

std::uint64_t GqaProlog::write_arguments(host::DeviceMemory& memory) const {
  if (setting_.norms) return memory.put(cm384_gqa_prolog_normed{arguments_, gamma_q_, gamma_k_});
  return memory.put(arguments_);
}

Work GqaProlog::work() const {
  Work work = work_of({&arguments_.qkv}, arguments_.tokens,
                      2.0 * arguments_.tokens * (arguments_.hidden + 2.0 * arguments_.qkv.n));
  work.int8 = setting_.int8;
  return work;
}

std::string GqaProlog::check() const {
  const cm384_gqa_prolog& a = arguments_;
  const auto cached = [&](std::uint64_t cache, std::uint32_t token) {
    const std::uint64_t page = slots_[token] / CM384_GQA_PAGE_TOKENS,
                        place = slots_[token] % CM384_GQA_PAGE_TOKENS;
    std::vector<std::uint16_t> row;
    for (std::uint32_t column = 0; column < a.kv_heads * a.width / 16; ++column) {
      const auto block =
          runtime().get<std::uint16_t>(cache + page * CM384_GQA_PAGE_BYTES(a.kv_heads, a.width) +
                                           (column * CM384_GQA_PAGE_TOKENS + place) * 32,
                                       16);
      row.insert(row.end(), block.begin(), block.end());
    }
    return row;
  };
  return compare_tokens(case_.tokens, [&](std::uint32_t token) {
    const std::size_t row = std::size_t{a.heads} * a.width;
    const auto queries = runtime().get<std::uint16_t>(a.q + token * row * 2, row);
    const auto key = cached(a.k, token), value = cached(a.v, token);
    return compare_gqa_prolog(case_, *inputs_, token, {queries, key, value});
  });
}

GqaOutput::GqaOutput(const GqaSetting& setting, std::uint64_t seed, const GqaAttention& attention)
    : setting_(setting), attention_(attention), case_(case_of(seed, setting)) {}

void GqaOutput::lay_out(const Site& site) {
  const std::uint32_t tokens = setting_.tokens(), values = setting_.heads * setting_.width;
  cm384_gemm& out = arguments_.out;
  out = place_projection(site, tokens, 1, setting_.hidden, values, setting_.int8);
  arguments_.value = {attention_.arguments().out, values * 2ull};
  out.a = setting_.int8 ? site.memory.allocate_lines(tokens * out.a_pitch) : arguments_.value.c;
  out.c = site.memory.allocate_lines(tokens * out.c_pitch);
  if (!site.full) return;
  weights_ = reference::make_gqa_output_weights(case_);
  write_weights(runtime(), out, *weights_);
}

Work GqaOutput::work() const {
  Work work = work_of({&arguments_.out}, case_.tokens,
                      2.0 * case_.tokens * (static_cast<double>(case_.heads) * case_.width + case_.hidden));
  work.int8 = setting_.int8;
  return work;
}

std::string GqaOutput::check() const {
  const std::size_t values = std::size_t{case_.heads} * case_.width;
  return compare_tokens(case_.tokens, [&](std::uint32_t token) {
    return compare_gqa_output(
        case_, *weights_, runtime().get<std::uint16_t>(arguments_.value.c + token * values * 2, values),
        runtime().get<std::uint16_t>(arguments_.out.c + token * arguments_.out.c_pitch, case_.hidden));
  });
}

}  // namespace cm384::operators
