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

// Tokens that a pair sees, their KV blocks, and the parts into which these go: no part is empty.
struct MlaPair {
  CM384_INLINE MlaPair(const cm384_mla& a, uint32_t pair)
      : batch(pair / a.queries),
        tokens(reinterpret_cast<const uint32_t*>(a.kv_lens)[batch] + (pair - batch * a.queries)),
        blocks((tokens + a.block_tokens - 1) / a.block_tokens),
        parts(blocks < a.splits ? blocks : a.splits) {}
  uint32_t batch, tokens, blocks, parts;
};

// Tasks are the parts of all pairs, one behind the other, dealt out to the blocks of the launch in turn.
class MlaWalker {
 public:
  MlaWalker(const cm384_mla& a, uint32_t block, uint32_t blocks)
      : a_(a), pairs_(a.batch * a.queries), step_(blocks), split_(block), of_(a, 0) {
    Enter();
  }

  bool Next(MlaItem& item) {
    if (pair_ >= pairs_) return false;
    item.pair = pair_;
    item.split = split_;
    item.batch = of_.batch;
    item.token = block_ * a_.block_tokens;
    item.count = of_.tokens - item.token < a_.block_tokens ? of_.tokens - item.token : a_.block_tokens;
    item.first = block_ == first_;
    item.last = ++block_ == end_;
    if (item.last) {
      split_ += step_;
      Enter();
    }
    return true;
  }

 private:
  // To the pair that has the task.
  void Enter() {
    while (split_ >= of_.parts) {
      split_ -= of_.parts;
      if (++pair_ >= pairs_) return;
      of_ = MlaPair(a_, pair_);
    }
    first_ = block_ = split_ * of_.blocks / of_.parts;
    end_ = (split_ + 1) * of_.blocks / of_.parts;
  }

  const cm384_mla& a_;
  uint32_t pairs_, step_;
  uint32_t pair_ = 0, split_;
  MlaPair of_;
  uint32_t first_ = 0, block_ = 0, end_ = 0;  // of the task: KV blocks
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
