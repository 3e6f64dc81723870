#include "workloads/service/step_samples.h"

#include <algorithm>

namespace cm384::service {

// Reservoir sampling: after n steps each of them is kept with chance wanted / n.
void StepSamples::see(Time at, int instance, const DecodeInstance& decode, const DecodeInstance::Load& load) {
  if (wanted_ == 0) return;
  const std::int64_t number = seen_++;
  auto place = static_cast<std::size_t>(number);
  if (number >= wanted_) place = random_.below(static_cast<std::uint64_t>(number) + 1);
  if (place >= static_cast<std::size_t>(wanted_)) return;
  if (place == kept_.size()) kept_.emplace_back();
  kept_[place] = {number, at, instance, load, decode.lengths()};
}

std::vector<StepSample> StepSamples::take() {
  std::ranges::sort(kept_, {}, &StepSample::number);
  return std::move(kept_);
}

}  // namespace cm384::service
