#include "workloads/service/prompt_cache.h"

#include <algorithm>

namespace cm384::service {

PromptCache::PromptCache(const RequestTrace& trace, const ContextCache& cache, Bytes token, int tenants)
    : trace_(trace),
      cache_(cache),
      token_(token),
      tenants_(tenants),
      blocks_({cache.servers, blocks_in(cache.dram), blocks_in(cache.evs), blocks_in(cache.obs)}) {}

std::int64_t PromptCache::blocks_in(Bytes bytes) const {
  const std::int64_t tokens = std::max(1, trace_.block_tokens);
  return bytes.count / (tokens * token_.count);
}

CachedPrompt PromptCache::read(const Request& request) {
  CachedPrompt found;
  if (!cache_.on || request.blocks == 0) return found;
  const PrefixHits hits = blocks_.read(trace_.blocks_of(request), tenant_of(request));
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

void PromptCache::write(const Request& request) {
  if (cache_.on && request.blocks > 0) blocks_.write(trace_.blocks_of(request), tenant_of(request));
}

void PromptCache::write_answer(const Request& request) {
  if (cache_.on && cache_.answers && request.answer_blocks > 0)
    blocks_.write(trace_.blocks_with_answer(request), tenant_of(request));
}

}  // namespace cm384::service
