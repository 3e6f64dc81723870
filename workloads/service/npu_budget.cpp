#include "workloads/service/npu_budget.h"

#include <algorithm>

namespace cm384::service {

NpuBudget::NpuBudget(int npus, const std::vector<Member>& members) : free_(npus) {
  double all = 0;
  for (const Member& member : members) all += member.share;
  for (const Member& member : members) {
    shares_.push_back({member.npus, npus * member.share / all});
    free_ -= member.npus;
  }
  least_free_ = free_;
}

void NpuBudget::set_free(int npus, Time now) {
  free_ = npus;
  least_free_ = std::min(least_free_, free_);
  if (training_ != nullptr) training_->set_free(free_, now);
}

int NpuBudget::reserved_for(const Share& share) {
  int least = 0;
  for (const int wants : share.wants)
    if (wants > 0 && (least == 0 || wants < least)) least = wants;
  if (least == 0 || share.held > share.due) return 0;
  return static_cast<int>((share.due - share.held) / least) * least;
}

bool NpuBudget::acquire(std::size_t member, bool prefill, int npus, Time now) {
  Share& own = shares_[member];
  own.wants[prefill ? 0 : 1] = npus;
  int open = free_;
  if (own.held + npus > own.due)
    for (const Share& other : shares_)
      if (&other != &own) open -= reserved_for(other);
  if (training_ != nullptr && npus <= open) {
    training_->yield(std::min(own.wants[0] + own.wants[1], free_), now);
    open = std::min(open, free_ - training_->held());
  }
  if (npus > open) {
    ++own.denied;
    return false;
  }
  own.held += npus;
  set_free(free_ - npus, now);
  return true;
}

void NpuBudget::release(std::size_t member, int npus, Time now) {
  shares_[member].held -= npus;
  set_free(free_ + npus, now);
}

}  // namespace cm384::service
