#include "workloads/service/prompt_queue.h"

namespace cm384::service {

void PromptQueue::push_front(const std::vector<WaitingPrompt>& prompts) {
  first_ -= static_cast<std::int64_t>(prompts.size());
  std::int64_t turn = first_;
  for (const WaitingPrompt& prompt : prompts) push(prompt, turn++);
}

// The least is served first. A class that rises with the time waited is a rank that does not change: whoever
// is a class more urgent stands where he would if he had come `ageing` earlier.
std::int64_t PromptQueue::rank_of(const WaitingPrompt& prompt) const {
  switch (order_) {
    case PromptOrder::fcfs:
      return 0;
    case PromptOrder::shortest:
      return prompt.tokens;
    case PromptOrder::priority:
      break;
  }
  return ageing_ == Time{} ? prompt.priority : prompt.arrival.ps + ageing_.ps * prompt.priority;
}

}  // namespace cm384::service
