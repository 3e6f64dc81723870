#include "workloads/service/prompt_cache.h"

#include <algorithm>
#include <utility>

namespace cm384::service {

BlockPool shared_blocks(const ContextCache& cache, std::vector<PoolMember> members) {
  return BlockPool({cache.servers, cache.dram.count, cache.evs.count, cache.obs.count}, std::move(members));
}

PoolMember member_of(const RequestTrace& trace, const ContextCache& cache, Bytes token) {
  return {std::max(1, trace.block_tokens) * token.count, cache.quota};
}

PromptCache::PromptCache(const RequestTrace& trace, const ContextCache& cache, Bytes token, int tenants,
                         int parts, SharedBlocks shared)
    : trace_(trace),
      cache_(cache),
      token_(token),
      tenants_(tenants),
      member_(shared.member),
      own_(shared.pool != nullptr
               ? nullptr
               : std::make_unique<BlockPool>(
                     PoolSizes{std::max(1, cache.servers / parts), blocks_in(cache.dram, parts),
                               blocks_in(cache.evs, parts), blocks_in(cache.obs, parts)},
                     std::vector<PoolMember>(
                         cache.quota < 1 && tenants > 1 ? static_cast<std::size_t>(tenants) : 0,
                         PoolMember{1, cache.quota}))),
      blocks_(own_ ? *own_ : *shared.pool) {}

PoolCounts PromptCache::counts() const {
  PoolCounts all;
  const std::uint32_t members = has_parts() ? static_cast<std::uint32_t>(tenants_) : 1;
  for (std::uint32_t k = 0; k < members; ++k) all.add(blocks_.counts(member_ + k));
  return all;
}

std::int64_t PromptCache::blocks_in(Bytes bytes, int parts) const {
  const std::int64_t tokens = std::max(1, trace_.block_tokens);
  return bytes.count / (tokens * token_.count * parts);
}

CachedPrompt PromptCache::read(const Request& request) {
  CachedPrompt found;
  if (!cache_.on || request.blocks == 0) return found;
  const PrefixHits hits =
      blocks_.read(trace_.blocks_of(request), tenant_of(request), member_of_pool(request));
  // The last token is computed in any case: the answer's first comes of it.
  auto most = static_cast<std::int64_t>(request.prompt) - 1;
  const auto read = [&](std::int64_t blocks, const Bandwidth& rate) {
    const std::int64_t tokens = std::min(blocks * trace_.block_tokens, most);
    most -= tokens;
    if (tokens > 0)
      found.read_ms +=
          static_cast<double>(tokens * token_.count) / static_cast<double>(rate.bytes_per_second) * 1e3;
    return static_cast<std::int32_t>(tokens);
  };
  found.dram = read(hits.dram, cache_.dram_rate);
  found.evs = read(hits.ssd, cache_.evs_rate);
  found.obs = read(hits.store, cache_.obs_rate);
  return found;
}

std::int32_t PromptCache::peek(const Request& request) {
  if (!cache_.on || request.blocks == 0) return 0;
  const std::int64_t blocks = blocks_.peek(trace_.blocks_of(request), tenant_of(request));
  return static_cast<std::int32_t>(
      std::min(blocks * trace_.block_tokens, static_cast<std::int64_t>(request.prompt) - 1));
}

void PromptCache::warm(const RequestTrace& before) {
  if (!cache_.on) return;
  for (const Request& request : before.requests) {
    const auto keys = cache_.answers ? before.blocks_with_answer(request) : before.blocks_of(request);
    if (!keys.empty()) blocks_.write(keys, tenant_of(request), member_of_pool(request));
  }
}

void PromptCache::write(const Request& request) {
  if (cache_.on && request.blocks > 0)
    blocks_.write(trace_.blocks_of(request), tenant_of(request), member_of_pool(request));
}

void PromptCache::write_answer(const Request& request) {
  if (cache_.on && cache_.answers && request.answer_blocks > 0)
    blocks_.write(trace_.blocks_with_answer(request), tenant_of(request), member_of_pool(request));
}

}  // namespace cm384::service
