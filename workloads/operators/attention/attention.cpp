#include "workloads/operators/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text/error.h"

namespace cm384::operators {

FlashAttention::FlashAttention(const reference::AttentionCase& attention) : case_(attention) {
  if (case_.length % 16 != 0)
    throw InputError(
        fmt::format("flash-attention: sequences of {} tokens; allowed: multiples of 16", case_.length));
  if (case_.cached % CM384_FLASH_TILE != 0 || case_.cached >= case_.length)
    throw InputError(fmt::format("flash-attention: {} of {} tokens cached; allowed: multiples of {}, not all",
                                 case_.cached, case_.length, CM384_FLASH_TILE));
  case_.scale = static_cast<float>(1 / std::sqrt(double{CM384_FLASH_KEY}));
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
  a.block_tokens = CM384_FLASH_TILE;
  a.scale = case_.scale;
  // The last tile of queries is read as a whole.
  const std::uint64_t queries =
      (rows() + std::uint64_t{CM384_FLASH_TILE} * case_.heads) * CM384_FLASH_KEY * 2;
  a.q = allocate(queries);
  a.k = allocate(rows() * CM384_FLASH_KEY * 2);
  a.v = allocate(rows() * CM384_FLASH_VALUE * 2);
  a.out = allocate(rows() * CM384_FLASH_VALUE * 2);
  a.workspace = allocate(std::uint64_t{CM384_FLASH_WORKSPACE} * site.cores.size());
  if (!site.full) {
    runtime().mark_payload(a.q, queries);
    runtime().mark_payload(a.k, rows() * CM384_FLASH_KEY * 2);
    runtime().mark_payload(a.v, rows() * CM384_FLASH_VALUE * 2);
    return;
  }
  inputs_ = reference::make_attention_inputs(case_);
  runtime().put(a.q, std::span<const std::uint16_t>(inputs_->q));
  runtime().put(a.k, std::span<const std::uint16_t>(inputs_->k));
  runtime().put(a.v, std::span<const std::uint16_t>(inputs_->v));
}

Work FlashAttention::work() const {
  const double all = case_.length, cached = case_.cached, heads = 1.0 * case_.sequences * case_.heads;
  const double pairs = (all * (all + 1) - cached * (cached + 1)) / 2 * heads;
  const double bytes = ((all - cached) + all) * heads * 2 * (CM384_FLASH_KEY + CM384_FLASH_VALUE);
  return {2 * pairs * (CM384_FLASH_KEY + CM384_FLASH_VALUE), false, bytes};
}

std::string FlashAttention::size() const {
  return fmt::format("flash-attention {} x {} heads x {}{}", case_.sequences, case_.heads, case_.length,
                     case_.cached > 0 ? fmt::format(", {} cached", case_.cached) : "");
}

std::string FlashAttention::check() const {
  return compare_attention(case_, *inputs_,
                           runtime().get<std::uint16_t>(arguments_.out, rows() * CM384_FLASH_VALUE));
}

}  // namespace cm384::operators
