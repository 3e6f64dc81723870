#include "workloads/operators/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text/error.h"

namespace cm384::operators {

std::vector<float> sinks_of_tiles(const std::vector<float>& of_heads) {
  std::vector<float> made;
  for (const float sink : of_heads) made.insert(made.end(), CM384_FLASH_TILE, sink);
  return made;
}

FlashAttention::FlashAttention(const reference::AttentionCase& attention, std::uint32_t keys)
    : case_(attention), keys_(keys) {
  if (case_.length % 16 != 0)
    throw InputError(
        fmt::format("flash-attention: sequences of {} tokens; allowed: multiples of 16", case_.length));
  if (case_.cached % CM384_FLASH_TILE != 0 || case_.cached >= case_.length)
    throw InputError(fmt::format("flash-attention: {} of {} tokens cached; allowed: multiples of {}, not all",
                                 case_.cached, case_.length, CM384_FLASH_TILE));
  if (grouped() && case_.width != 64 && case_.width != 128)
    throw InputError(fmt::format("flash-attention: heads of {} elements; allowed: 64 or 128", case_.width));
  if (grouped() && case_.heads % case_.kv_heads != 0)
    throw InputError(fmt::format("flash-attention: {} KV heads; allowed: a divisor of {} heads",
                                 case_.kv_heads, case_.heads));
  if (case_.window % CM384_FLASH_TILE != 0)
    throw InputError(fmt::format("flash-attention: a window of {} tokens; allowed: multiples of {}",
                                 case_.window, CM384_FLASH_TILE));
  if (!case_.causal && (!grouped() || case_.window != 0))
    throw InputError("flash-attention: without a causal mask: allowed: grouped heads without a window");
  if (case_.sinks && (!grouped() || !case_.causal))
    throw InputError("flash-attention: sinks: allowed: with grouped heads and a causal mask");
  case_.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(case_.key())));
}

std::uint64_t FlashAttention::tasks() const {
  return std::uint64_t{case_.sequences} * case_.heads *
         ((case_.length - case_.cached + CM384_FLASH_TILE - 1) / CM384_FLASH_TILE);
}

// A tile of a head is one block's; where there are fewer the other cores are left out.
std::vector<std::uint16_t> FlashAttention::cores() const {
  std::vector<std::uint16_t> cores = site().cores;
  cores.resize(std::min<std::uint64_t>(cores.size(), tasks()));
  return cores;
}

void FlashAttention::lay_out(const Site& site) {
  const auto allocate = [&site](std::uint64_t bytes) { return site.memory.allocate(bytes, 4096); };
  cm384_flash_attention& a = arguments_;
  a.sequences = case_.sequences;
  a.heads = case_.heads;
  a.length = case_.length;
  a.cached = case_.cached;
  a.block_tokens = keys_;
  a.scale = case_.scale;
  // The last tile of queries is read as a whole.
  const std::uint64_t queries = (rows() + std::uint64_t{CM384_FLASH_TILE} * case_.heads) * case_.key() * 2;
  const std::uint64_t kv_rows = case_.tokens() * case_.kv();
  a.q = allocate(queries);
  a.k = allocate(kv_rows * case_.key() * 2);
  a.v = allocate(kv_rows * case_.value() * 2);
  a.out = allocate(rows() * case_.value() * 2);
  a.workspace = allocate(std::uint64_t{CM384_FLASH_WORKSPACE(a.block_tokens)} * site.cores.size());
  const std::uint64_t sinks = case_.sinks ? case_.heads * (CM384_FLASH_TILE * 4ull) : 0;
  if (sinks > 0) sinks_ = site.memory.allocate_lines(sinks);
  if (!site.full) {
    runtime().mark_payload(a.q, queries);
    runtime().mark_payload(a.k, kv_rows * case_.key() * 2);
    runtime().mark_payload(a.v, kv_rows * case_.value() * 2);
    if (sinks > 0) runtime().mark_payload(sinks_, sinks);
    return;
  }
  inputs_ = reference::make_attention_inputs(case_);
  copy_attention_inputs(runtime(), a, sinks_, *inputs_);
}

std::uint64_t FlashAttention::write_arguments(host::DeviceMemory& memory) const {
  const cm384_flash_attention& a = arguments_;
  if (!grouped()) return memory.put(a);
  const cm384_flash_grouped grouped{a.q,         a.k,
                                    a.v,         a.out,
                                    a.workspace, a.sequences,
                                    a.heads,     case_.kv_heads,
                                    a.length,    a.block_tokens,
                                    a.scale,     a.cached,
                                    case_.width, case_.window};
  if (case_.sinks) return memory.put(cm384_flash_sinks{grouped, sinks_});
  return memory.put(grouped);
}

Work FlashAttention::work() const {
  const double all = case_.length, cached = case_.cached, heads = 1.0 * case_.sequences * case_.heads;
  // Pairs of a query and a key in so many first tokens of a sequence.
  const auto seen = [&](double tokens) {
    const double window = case_.window == 0 ? tokens : std::min<double>(tokens, case_.window);
    return window * (window + 1) / 2 + (tokens - window) * window;
  };
  const double pairs = (case_.causal ? seen(all) - seen(cached) : (all - cached) * all) * heads;
  const double width = case_.key() + case_.value();
  const double kv_heads = 1.0 * case_.sequences * case_.kv();
  const double cache = all * kv_heads * 2 * width, bytes = (all - cached) * heads * 2 * width + cache;
  return {2 * pairs * width, false, bytes, 1, 0, cache};
}

std::string FlashAttention::size() const {
  return fmt::format(
      "flash-attention {} x {} heads x {}{}{}", case_.sequences, case_.heads, case_.length,
      case_.cached > 0 ? fmt::format(", {} cached", case_.cached) : "",
      grouped() ? fmt::format(", {} KV heads of {}, window {}{}{}", case_.kv_heads, case_.width, case_.window,
                              case_.causal ? "" : ", no mask", case_.sinks ? ", sinks" : "")
                : "");
}

std::string FlashAttention::check() const {
  return compare_attention(case_, *inputs_,
                           runtime().get<std::uint16_t>(arguments_.out, rows() * case_.value()));
}

}  // namespace cm384::operators
