// The memory service as prompts use it: what it holds of a prompt, and how long that takes to read.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/service/block_pool.h"
#include "workloads/service/deployment.h"
#include "workloads/service/requests.h"

namespace cm384::service {

// Tokens of a prompt by where they are, and the time to read them without the latency of a batch's reads.
struct CachedPrompt {
  std::int32_t dram = 0, evs = 0, obs = 0;
  double read_ms = 0;
};

// A memory service that several services share, each with blocks of its own: who is who there.
struct SharedBlocks {
  BlockPool* pool = nullptr;  // null: the service has one of its own
  std::uint32_t member = 0;
};
// That of `cache`, in bytes; of each member the bytes of a block, and its quota.
BlockPool shared_blocks(const ContextCache& cache, std::vector<PoolMember> members);
PoolMember member_of(const RequestTrace& trace, const ContextCache& cache, Bytes token);

class PromptCache {
 public:
  // `token`: bytes of context of a token. Tenants share nothing; with cache.quota each may have that part.
  // One of `parts` equal ones of what the deployment has; or a part of what services share.
  PromptCache(const RequestTrace& trace, const ContextCache& cache, Bytes token, int tenants, int parts = 1,
              SharedBlocks shared = {});

  // Reads a prompt's blocks, which become the most recently used.
  CachedPrompt read(const Request& request);
  // How many tokens of a prompt are cached; does not count as use.
  std::int32_t peek(const Request& request);
  // Nobody waits for it: blocks are written behind the batch.
  void write(const Request& request);
  // Stores the blocks of prompt and answer, once the answer is complete.
  void write_answer(const Request& request);
  // What requests of before have left here, in their order.
  void warm(const RequestTrace& before);
  // The pool of all services that share the cache.
  const BlockPool& blocks() const { return blocks_; }
  // The counts of this service.
  PoolCounts counts() const;

 private:
  std::int64_t blocks_in(Bytes bytes, int parts) const;
  // Its number among all tenants of the pool.
  std::uint32_t tenant_of(const Request& request) const {
    return (member_ << 20) + request.session % static_cast<std::uint32_t>(tenants_);
  }
  bool has_parts() const { return own_ != nullptr && cache_.quota < 1 && tenants_ > 1; }
  std::uint32_t member_of_pool(const Request& request) const {
    return has_parts() ? tenant_of(request) : member_;
  }

  const RequestTrace& trace_;
  const ContextCache& cache_;
  Bytes token_;
  int tenants_;
  std::uint32_t member_;
  std::unique_ptr<BlockPool> own_;
  BlockPool& blocks_;
};

}  // namespace cm384::service
