// The order of work of kernel `mla`: KV blocks of the tasks of a block of the launch, one after another. The
// cube core and its vector cores walk the same items.
#pragma once

#include "firmware/abi/mla.h"
#include "online_softmax.h"

struct MlaItem {
  uint32_t pair;  // batch number * queries + query
  uint32_t batch;
  uint32_t split;
  uint32_t token, count;  // of the sequence
  bool first, last;       // of its task
};

class MlaWalker {
 public:
  MlaWalker(const cm384_mla& a, uint32_t block, uint32_t blocks) : a_(a), task_(block), step_(blocks) {
    Enter();
  }

  bool Next(MlaItem& item) {
    if (task_ >= Tasks()) return false;
    item.pair = task_ / a_.splits;
    item.split = task_ - item.pair * a_.splits;
    item.batch = item.pair / a_.queries;
    item.token = block_ * a_.block_tokens;
    item.count = tokens_ - item.token < a_.block_tokens ? tokens_ - item.token : a_.block_tokens;
    item.first = block_ == first_;
    item.last = ++block_ == end_;
    if (item.last) {
      task_ += step_;
      Enter();
    }
    return true;
  }

 private:
  uint32_t Tasks() const { return a_.batch * a_.queries * a_.splits; }
  void Enter() {
    if (task_ >= Tasks()) return;
    const uint32_t pair = task_ / a_.splits, split = task_ - pair * a_.splits, batch = pair / a_.queries;
    tokens_ = reinterpret_cast<const uint32_t*>(a_.kv_lens)[batch] + (pair - batch * a_.queries);
    const uint32_t all = (tokens_ + a_.block_tokens - 1) / a_.block_tokens;
    first_ = block_ = split * all / a_.splits;
    end_ = (split + 1) * all / a_.splits;
  }

  const cm384_mla& a_;
  uint32_t task_, step_;
  uint32_t tokens_ = 0, first_ = 0, block_ = 0, end_ = 0;  // of the task: KV blocks
};

// Where a block keeps what its cores hand each other, taken in turn: two scores and probabilities, three
// products. Scores i are out after products i - 2, so that no core needs to say that it has read something.
struct MlaWorkspace {
  CM384_INLINE MlaWorkspace(const cm384_mla& a, uint32_t block)
      : scores(a.workspace + block * CM384_MLA_WORKSPACE(a)),
        probabilities(scores + 2 * CM384_MLA_SCORES(a)),
        products(probabilities + 2 * CM384_MLA_PROBABILITIES(a)) {}
  uint64_t scores, probabilities, products;
};
