// Which prefill instance a prompt waits for: all for the next idle one in a common queue, or each for the one
// that it was sent to when it came.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "workloads/service/prompt_queue.h"

namespace cm384::service {

enum class PromptRoute : std::uint8_t { common, round_robin, least_loaded, prefix };
inline const hw::OneOf kPromptRoutes{{"common", "round-robin", "least-loaded", "prefix"}};

class PromptRouter {
 public:
  // What it asks of the pool: whether an instance takes prompts, and tokens of a request that its cache has.
  using TakesPrompts = std::function<bool(std::uint32_t)>;
  using Cached = std::function<std::int32_t(std::uint32_t instance, std::uint32_t request)>;

  // `empty`: what the queues are like.
  PromptRouter(PromptRoute route, PromptQueue empty, TakesPrompts takes, Cached cached)
      : route_(route), empty_(std::move(empty)), takes_(std::move(takes)), cached_(std::move(cached)) {}

  void add_instance();
  PromptQueue& queue(std::uint32_t instance) { return queues_[index(instance)]; }
  const PromptQueue& queue(std::uint32_t instance) const { return queues_[index(instance)]; }
  std::size_t waiting() const;
  std::int64_t waiting_tokens() const;
  void push(const WaitingPrompt& prompt) { queue(choose(prompt)).push(prompt); }
  // Ahead of all that are as urgent.
  void push_front(const std::vector<WaitingPrompt>& prompts);
  // The prompt does not load the instance that it was sent to any more.
  void end(std::uint32_t request);
  // The instance takes no prompts now: those that wait for it, in their order, where another one does. To be
  // pushed again.
  std::vector<std::uint32_t> withdraw(std::uint32_t instance);

 private:
  std::size_t index(std::uint32_t instance) const { return route_ == PromptRoute::common ? 0 : instance; }
  std::uint32_t choose(const WaitingPrompt& prompt);

  struct Sent {
    std::uint32_t instance = 0;
    std::int64_t tokens = 0;  // 0: nowhere
  };

  PromptRoute route_;
  PromptQueue empty_;
  TakesPrompts takes_;
  Cached cached_;
  std::vector<PromptQueue> queues_;
  std::vector<std::int64_t> loads_;  // tokens to be computed, as far as was known when they were sent
  std::vector<Sent> sent_;           // by request
  std::uint32_t last_ = UINT32_MAX;  // that a prompt was sent to
};

}  // namespace cm384::service
