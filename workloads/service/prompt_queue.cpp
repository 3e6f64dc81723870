#include "workloads/service/prompt_queue.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"

namespace cm384::service {

std::vector<double> shares_of(std::string_view text) {
  std::vector<double> shares;
  if (text.empty()) return shares;
  for (const std::string_view part : split_fields(text, ':')) {
    shares.push_back(hw::parse_real(part));
    if (!(shares.back() >= 0.001 && shares.back() <= 1e6))
      throw InputError(fmt::format("{}; allowed: shares such as 3:1, of 0.001 to 1000000 each", text));
  }
  return shares;
}

void check_shares(std::string_view text) {
  shares_of(text);
}

void PromptQueue::push_front(const std::vector<WaitingPrompt>& prompts) {
  first_ -= static_cast<std::int64_t>(prompts.size());
  std::int64_t turn = first_;
  for (const WaitingPrompt& prompt : prompts) push(prompt, turn++);
}

// The least is served first. A class that rises with the time waited is a rank that does not change: whoever
// is a class more urgent stands where he would if he had come `ageing` earlier.
std::int64_t PromptQueue::rank_of(const WaitingPrompt& prompt, bool returns) {
  switch (order_) {
    case PromptOrder::fcfs:
      return 0;
    case PromptOrder::shortest:
      return prompt.tokens;
    case PromptOrder::fair: {
      if (returns) return 0;  // it has been paid for
      if (finished_.size() <= prompt.tenant) finished_.resize(prompt.tenant + 1);
      std::int64_t& finished = finished_[prompt.tenant];
      const double share = shares_.empty() ? 1 : shares_[prompt.tenant % shares_.size()];
      const std::int64_t start = std::max(virtual_, finished);
      finished = start + std::llround(1000 * prompt.tokens / share);
      return start;
    }
    case PromptOrder::priority:
      break;
  }
  return ageing_ == Time{} ? prompt.priority : prompt.arrival.ps + ageing_.ps * prompt.priority;
}

}  // namespace cm384::service
