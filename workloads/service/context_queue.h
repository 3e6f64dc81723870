// Contexts that wait for a die of decode: in the order in which prefill made them, or fair to tenants.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <utility>
#include <vector>

namespace cm384::service {

class ContextQueue {
 public:
  // `fair`: tenants that have contexts waiting are given tokens of answers in proportion to `shares`, in turn
  // (start-time fair queueing: Goyal, Vin, Cheng, 1996); who comes late has not saved up anything. A tenant's
  // own contexts stay in their order.
  explicit ContextQueue(bool fair = false, std::vector<double> shares = {})
      : fair_(fair), shares_(std::move(shares)) {}

  bool empty() const { return active_.empty(); }
  std::size_t size() const { return size_; }
  std::uint32_t front() const { return tenants_[active_.begin()->second].contexts.front().request; }
  void pop();
  // `tokens` of its answer that decode has to make.
  void push(std::uint32_t request, std::uint32_t tenant, std::int32_t tokens);
  void erase_if(const std::function<bool(std::uint32_t request)>& which);
  void for_each(const std::function<void(std::uint32_t request)>& what) const;

 private:
  struct Context {
    std::uint32_t request = 0;
    std::int32_t tokens = 0;
  };
  // Points of virtual time, in thousandths of a token of share 1: at which its next context is due, and at
  // which it has had what it was given.
  struct Tenant {
    std::deque<Context> contexts{};
    std::int64_t start = 0, finished = 0;
  };

  bool fair_;
  std::vector<double> shares_;
  std::vector<Tenant> tenants_;
  std::set<std::pair<std::int64_t, std::uint32_t>> active_;  // start and number of those with contexts
  std::int64_t virtual_ = 0;
  std::size_t size_ = 0;
};

}  // namespace cm384::service
