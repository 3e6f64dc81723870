#include "workloads/service/prompt_router.h"

#include <algorithm>
#include <optional>

namespace cm384::service {

void PromptRouter::add_instance() {
  loads_.push_back(0);
  if (queues_.size() < loads_.size() && (route_ != PromptRoute::common || queues_.empty()))
    queues_.push_back(empty_);
}

std::size_t PromptRouter::waiting() const {
  std::size_t waiting = 0;
  for (const PromptQueue& queue : queues_) waiting += queue.size();
  return waiting;
}

std::int64_t PromptRouter::waiting_tokens() const {
  std::int64_t tokens = 0;
  for (const PromptQueue& queue : queues_) tokens += queue.tokens();
  return tokens;
}

void PromptRouter::push_front(const std::vector<WaitingPrompt>& prompts) {
  std::vector<std::vector<WaitingPrompt>> of(queues_.size());
  for (const WaitingPrompt& prompt : prompts) of[index(choose(prompt))].push_back(prompt);
  for (std::size_t k = 0; k < of.size(); ++k)
    if (!of[k].empty()) queues_[k].push_front(of[k]);
}

// Where nobody takes prompts all instances count. Of equals the first.
std::uint32_t PromptRouter::choose(const WaitingPrompt& prompt) {
  if (route_ == PromptRoute::common) return 0;
  const auto count = static_cast<std::uint32_t>(loads_.size());
  std::optional<std::uint32_t> best;
  std::int64_t least = 0, tokens = 0;
  for (const bool any : {false, true}) {
    // Round-robin takes the first one behind the last.
    const std::uint32_t from = route_ == PromptRoute::round_robin ? last_ + 1 : 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t i = (from + k) % count;
      if (!any && !takes_(i)) continue;
      const std::int64_t own =
          prompt.tokens - (route_ == PromptRoute::prefix ? cached_(i, prompt.request) : 0);
      const std::int64_t load = route_ == PromptRoute::round_robin ? 0 : loads_[i] + own;
      if (best && load >= least) continue;
      best = i, least = load, tokens = own;
    }
    if (best) break;
  }
  end(prompt.request);
  if (sent_.size() <= prompt.request) sent_.resize(prompt.request + 1);
  sent_[prompt.request] = {*best, tokens};
  loads_[*best] += tokens;
  last_ = *best;
  return *best;
}

void PromptRouter::end(std::uint32_t request) {
  if (request >= sent_.size()) return;
  loads_[sent_[request].instance] -= sent_[request].tokens;
  sent_[request] = {};
}

std::vector<std::uint32_t> PromptRouter::withdraw(std::uint32_t instance) {
  std::vector<std::uint32_t> prompts;
  if (route_ == PromptRoute::common) return prompts;
  bool other = false;
  for (std::uint32_t i = 0; i < loads_.size(); ++i) other = other || (i != instance && takes_(i));
  for (; other && !queue(instance).empty(); queue(instance).pop()) prompts.push_back(queue(instance).front());
  return prompts;
}

}  // namespace cm384::service
