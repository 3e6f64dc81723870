// Prompts that wait for prefill, in the order in which they are served.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "base/text/describe.h"
#include "base/text/units.h"

namespace cm384::service {

enum class PromptOrder : std::uint8_t { fcfs, shortest, priority };
inline const hw::OneOf kPromptOrders{{"fcfs", "shortest", "priority"}};

struct WaitingPrompt {
  std::uint32_t request = 0;
  std::int32_t tokens = 0;  // to be computed or read from the cache
  int priority = 0;         // its class: 0 is the most urgent
  Time arrival{};
};

class PromptQueue {
 public:
  // With `ageing` a request that has waited so long is as urgent as a new one of the class before; 0: classes
  // are strict.
  PromptQueue(PromptOrder order, Time ageing) : order_(order), ageing_(ageing) {}

  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  std::uint32_t front() const { return queue_.top().request; }
  void pop() { queue_.pop(); }
  // Behind equals.
  void push(const WaitingPrompt& prompt) { push(prompt, ++last_); }
  // Ahead of equals, in their own order: prompts that a fault or a preemption sent back.
  void push_front(const std::vector<WaitingPrompt>& prompts);

 private:
  struct Entry {
    std::int64_t rank, turn;
    std::uint32_t request;
    bool operator<(const Entry& o) const { return rank != o.rank ? rank > o.rank : turn > o.turn; }
  };
  void push(const WaitingPrompt& prompt, std::int64_t turn) {
    queue_.push({rank_of(prompt), turn, prompt.request});
  }
  std::int64_t rank_of(const WaitingPrompt& prompt) const;

  PromptOrder order_;
  Time ageing_;
  std::priority_queue<Entry> queue_;
  std::int64_t first_ = 0, last_ = 0;  // turns
};

}  // namespace cm384::service
