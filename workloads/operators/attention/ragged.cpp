#include "workloads/operators/attention/ragged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/text/error.h"
#include "workloads/operators/attention/attention.h"

namespace cm384::operators {

RaggedAttention::RaggedAttention(const RaggedSetting& setting) : setting_(setting) {
  if (setting.prompts.empty()) throw InputError("ragged attention: no prompts; allowed: one or more");
  std::uint64_t row = 0;
  for (const RaggedPrompt& prompt : setting.prompts) {
    [[maybe_unused]] const FlashAttention one{case_of(prompt)};  // refuses what it is not for
    for (std::uint32_t tile = prompt.cached / CM384_FLASH_TILE; tile * CM384_FLASH_TILE < prompt.length;
         ++tile)
      tiles_.push_back({static_cast<std::uint32_t>(row), prompt.length, tile});
    row += prompt.length;
  }
  if (row * setting.heads > 0xffffffffU)
    throw InputError(
        fmt::format("ragged attention: {} tokens of {} heads; allowed: 2^32 rows", row, setting.heads));
  std::ranges::stable_sort(tiles_, std::greater(), &cm384_flash_tile::tile);
}

reference::AttentionCase RaggedAttention::case_of(const RaggedPrompt& prompt) const {
  reference::AttentionCase made{.seed = setting_.seed,
                                .heads = setting_.heads,
                                .length = prompt.length,
                                .cached = prompt.cached,
                                .kv_heads = setting_.kv_heads,
                                .width = setting_.width,
                                .sinks = setting_.sinks};
  made.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(made.key())));
  return made;
}

std::uint64_t RaggedAttention::tokens() const {
  return std::accumulate(setting_.prompts.begin(), setting_.prompts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const RaggedPrompt& prompt) { return sum + prompt.length; });
}

// A tile of a head is one block's; where there are fewer the other cores are left out.
std::vector<std::uint16_t> RaggedAttention::cores() const {
  std::vector<std::uint16_t> cores = site().cores;
  cores.resize(std::min<std::uint64_t>(cores.size(), tiles_.size() * setting_.heads));
  return cores;
}

void RaggedAttention::lay_out(const Site& site) {
  const auto allocate = [&site](std::uint64_t bytes) { return site.memory.allocate(bytes, 4096); };
  const reference::AttentionCase of = case_of(setting_.prompts.front());
  cm384_flash_ragged& a = arguments_;
  a.tile_count = static_cast<std::uint32_t>(tiles_.size());
  a.heads = of.heads;
  a.kv_heads = of.kv();
  a.key = of.key();
  a.block_tokens = CM384_FLASH_MOST_KEYS;
  a.scale = of.scale;
  // The last tile of queries is read as a whole.
  const std::uint64_t queries = (tokens() + CM384_FLASH_TILE) * of.heads * of.key() * 2;
  const std::uint64_t keys = tokens() * of.kv() * of.key() * 2, values = tokens() * of.kv() * of.value() * 2;
  a.q = allocate(queries);
  a.k = allocate(keys);
  a.v = allocate(values);
  a.out = allocate(tokens() * of.heads * of.value() * 2);
  a.workspace = allocate(std::uint64_t{CM384_FLASH_WORKSPACE(a.block_tokens)} * site.cores.size());
  a.tiles = allocate(tiles_.size() * sizeof(cm384_flash_tile));
  const std::uint64_t sinks = setting_.sinks ? of.heads * (CM384_FLASH_TILE * 4ull) : 0;
  if (sinks > 0) sinks_ = site.memory.allocate_lines(sinks);
  runtime().put(a.tiles, std::span<const cm384_flash_tile>(tiles_));
  if (!site.full) {
    runtime().mark_payload(a.q, queries);
    runtime().mark_payload(a.k, keys);
    runtime().mark_payload(a.v, values);
    if (sinks > 0) runtime().mark_payload(sinks_, sinks);
    return;
  }
  reference::AttentionCase all = of;
  all.length = static_cast<std::uint32_t>(tokens());
  inputs_ = reference::make_attention_inputs(all);
  copy_attention_inputs(runtime(), a, sinks_, *inputs_);
}

std::uint64_t RaggedAttention::write_arguments(host::DeviceMemory& memory) const {
  if (setting_.sinks) return memory.put(cm384_flash_ragged_sinks{arguments_, sinks_});
  return memory.put(arguments_);
}

Work RaggedAttention::work() const {
  Work sum;
  for (const RaggedPrompt& prompt : setting_.prompts) {
    const Work own = FlashAttention(case_of(prompt)).work();
    sum.operations += own.operations;
    sum.bytes += own.bytes;
    sum.cache += own.cache;
  }
  return sum;
}

std::string RaggedAttention::size() const {
  std::string lengths;
  for (const RaggedPrompt& prompt : setting_.prompts)
    lengths +=
        fmt::format("{}{}+{}", lengths.empty() ? "" : ",", prompt.cached, prompt.length - prompt.cached);
  return fmt::format("ragged attention {} heads, {} KV heads of {}, prompts {}{}", setting_.heads,
                     setting_.kv_heads, setting_.width, lengths, setting_.sinks ? ", sinks" : "");
}

std::string RaggedAttention::check() const {
  const reference::AttentionCase any = case_of(setting_.prompts.front());
  const auto out = runtime().get<std::uint16_t>(arguments_.out, tokens() * setting_.heads * any.value());
  std::uint64_t row = 0;
  for (std::size_t k = 0; k < setting_.prompts.size(); ++k) {
    const reference::AttentionCase of = case_of(setting_.prompts[k]);
    const auto part = [&](const std::vector<std::uint16_t>& all, std::uint64_t width) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(row * width);
      return std::vector<std::uint16_t>(from, from + static_cast<std::ptrdiff_t>(of.length * width));
    };
    const reference::AttentionInputs own{part(inputs_->q, std::uint64_t{of.heads} * of.key()),
                                         part(inputs_->k, std::uint64_t{of.kv()} * of.key()),
                                         part(inputs_->v, std::uint64_t{of.kv()} * of.value()),
                                         inputs_->sinks};
    const std::string wrong = compare_attention(of, own, part(out, std::uint64_t{of.heads} * of.value()));
    if (!wrong.empty()) return fmt::format("prompt {}: {}", k, wrong);
    row += of.length;
  }
  return {};
}

}  // namespace cm384::operators
