// Prompts that wait for prefill, in the order in which they are served.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <string_view>
#include <vector>

#include "base/text/describe.h"
#include "base/text/units.h"

namespace cm384::service {

enum class PromptOrder : std::uint8_t { fcfs, shortest, priority, fair };
inline const hw::OneOf kPromptOrders{{"fcfs", "shortest", "priority", "fair"}};

struct WaitingPrompt {
  std::uint32_t request = 0;
  std::int32_t tokens = 0;  // to be computed or read from the cache
  int priority = 0;         // its class: 0 is the most urgent
  Time arrival{};
  std::uint32_t tenant = 0;
};

// "3:1": what tenants are due to, in turn; empty: all the same. Throws InputError.
std::vector<double> shares_of(std::string_view text);
void check_shares(std::string_view text);

class PromptQueue {
 public:
  // With `ageing` a request that has waited so long is as urgent as a new one of the class before; 0: classes
  // are strict.
  // `shares`: of fair tenants. Each is given tokens in proportion while it has prompts waiting (start-time
  // fair queueing: Goyal, Vin, Cheng, 1996): who comes late has not saved up anything.
  PromptQueue(PromptOrder order, Time ageing, std::vector<double> shares = {})
      : order_(order), ageing_(ageing), shares_(std::move(shares)) {}

  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  std::int64_t tokens() const { return tokens_; }  // of all that wait
  std::uint32_t front() const { return queue_.top().request; }
  void pop() {
    if (order_ == PromptOrder::fair) virtual_ = std::max(virtual_, queue_.top().rank);
    tokens_ -= queue_.top().tokens;
    queue_.pop();
  }
  // Behind equals.
  void push(const WaitingPrompt& prompt) { push(prompt, ++last_); }
  // Ahead of equals, in their own order: prompts that a fault or a preemption sent back.
  void push_front(const std::vector<WaitingPrompt>& prompts);

 private:
  struct Entry {
    std::int64_t rank, turn;
    std::uint32_t request;
    std::int32_t tokens;
    bool operator<(const Entry& o) const { return rank != o.rank ? rank > o.rank : turn > o.turn; }
  };
  void push(const WaitingPrompt& prompt, std::int64_t turn) {
    queue_.push({rank_of(prompt, turn < 0), turn, prompt.request, prompt.tokens});
    tokens_ += prompt.tokens;
  }
  std::int64_t rank_of(const WaitingPrompt& prompt, bool returns);

  PromptOrder order_;
  Time ageing_;
  std::vector<double> shares_;
  std::int64_t virtual_ = 0;            // time, in thousandths of a token of share 1
  std::vector<std::int64_t> finished_;  // at which each tenant has had what it asked for
  std::priority_queue<Entry> queue_;
  std::int64_t first_ = 0, last_ = 0;  // turns
  std::int64_t tokens_ = 0;
};

}  // namespace cm384::service
