#include "workloads/service/service_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"

namespace cm384::service {

void BusyEvidence::add(const StepTime& time, const char* what, double first, double second) {
  if (time.evidence == Evidence::extrapolated && !allow_extrapolation_)
    throw InputError(fmt::format(fmt::runtime(what), first, second) +
                     " is outside of what the library has measured; allowed: requests within it, or "
                     "--allow-extrapolation");
  s_[static_cast<std::size_t>(time.evidence)] += time.ms * 1e-3;
  worst_error_ = std::max(worst_error_, time.error);
  worst_scaled_ = std::max(worst_scaled_, time.scaled_error);
}

void BusyEvidence::add_to(ServiceResult& result) const {
  result.evidence_s = s_;
  result.worst_error = worst_error_;
  result.worst_scaled = worst_scaled_;
}

double Membership::seconds_until(Time end) const {
  return std::max(0.0, seconds(std::min(until, end) - std::min(since, end)));
}

}  // namespace cm384::service
