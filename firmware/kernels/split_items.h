// The order of work of decode attention whose tokens may be split: KV blocks of the tasks of a block of the
// launch, one after another. The cube core and its vector cores walk the same items.
#pragma once

#include <stdint.h>

#include "kernel_operator.h"

struct SplitItem {
  uint32_t pair;  // of those of the kernel
  uint32_t batch;
  uint32_t split;
  uint32_t token, count;  // of the sequence
  bool first, last;       // of its task
};

// Tasks are the parts of all pairs, one after another, dealt out to the blocks of the launch in turn.
// `Pair(a, number)` knows its sequence (`batch`), the first of its tokens and the end of them (`First()`,
// `tokens`), their KV blocks (`blocks`), and the parts into which these go (`parts`): no part is empty.
template <class Pair, class Arguments>
class SplitWalker {
 public:
  SplitWalker(const Arguments& a, uint32_t block, uint32_t blocks)
      : a_(a), pairs_(Pair::Count(a)), step_(blocks), split_(block), of_(a, 0) {
    Enter();
  }

  bool Next(SplitItem& item) {
    if (pair_ >= pairs_) return false;
    item.pair = pair_;
    item.split = split_;
    item.batch = of_.batch;
    item.token = of_.First() + block_ * a_.block_tokens;
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
      of_ = Pair(a_, pair_);
    }
    first_ = block_ = split_ * of_.blocks / of_.parts;
    end_ = (split_ + 1) * of_.blocks / of_.parts;
  }

  const Arguments& a_;
  uint32_t pairs_, step_;
  uint32_t pair_ = 0, split_;
  Pair of_;
  uint32_t first_ = 0, block_ = 0, end_ = 0;  // of the task: KV blocks
};
