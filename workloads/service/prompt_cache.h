// The memory service as prompts use it: what it holds of a prompt, and how long that takes to read.
#pragma once

#include <cstdint>

#include "workloads/service/block_pool.h"
#include "workloads/service/deployment.h"
#include "workloads/service/requests.h"

namespace cm384::service {

// Tokens of a prompt by where they are, and the time to read them without the latency of a batch's reads.
struct CachedPrompt {
  std::int32_t dram = 0, evs = 0, obs = 0;
  double read_ms = 0;
};

class PromptCache {
 public:
  // `token`: bytes of context of a token. Tenants share nothing.
  // One of `parts` equal ones of what the deployment has.
  PromptCache(const RequestTrace& trace, const ContextCache& cache, Bytes token, int tenants, int parts = 1);

  // Its blocks are the most recently used then.
  CachedPrompt read(const Request& request);
  // Its tokens that are here; nothing is used by that.
  std::int32_t peek(const Request& request);
  // Nobody waits for it: blocks are written behind the batch.
  void write(const Request& request);
  // The same of prompt and answer, once that is complete.
  void write_answer(const Request& request);
  // What requests of before have left here, in their order.
  void warm(const RequestTrace& before);
  const BlockPool& blocks() const { return blocks_; }

 private:
  std::int64_t blocks_in(Bytes bytes, int parts) const;
  std::uint32_t tenant_of(const Request& request) const {
    return request.session % static_cast<std::uint32_t>(tenants_);
  }

  const RequestTrace& trace_;
  const ContextCache& cache_;
  Bytes token_;
  int tenants_;
  BlockPool blocks_;
};

}  // namespace cm384::service
