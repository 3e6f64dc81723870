#include "workloads/service/request_evidence.h"

#include <algorithm>

namespace cm384::service {

EvidenceSum EvidenceSum::of(const StepTime& time, Time span) {
  EvidenceSum sum;
  const double known = time.ms * 1e-3, all = span.us() * 1e-6;
  sum.s[static_cast<std::size_t>(time.evidence)] = known;
  sum.s[static_cast<std::size_t>(Evidence::parameter)] += std::max(0.0, all - known);
  sum.error_s = known * (time.error + time.scaled_error);
  return sum;
}

EvidenceSum EvidenceSum::times(double factor) const {
  EvidenceSum made = *this;
  for (double& one : made.s) one *= factor;
  made.error_s *= factor;
  return made;
}

EvidenceSum& EvidenceSum::operator+=(const EvidenceSum& o) {
  for (std::size_t k = 0; k < s.size(); ++k) s[k] += o.s[k];
  error_s += o.error_s;
  return *this;
}

EvidenceSum& EvidenceSum::operator-=(const EvidenceSum& o) {
  return *this += o.times(-1);
}

void RequestEvidence::begin_waiting(std::uint32_t k) {
  if (on()) by_request_[k].prefill = computed_.times(-1);
}

void RequestEvidence::begin_prefill(std::uint32_t k, double waited_s) {
  if (!on()) return;
  EvidenceSum& of = by_request_[k].prefill;
  of += computed_;
  const double all = of.total();
  of = all > 0 ? of.times(waited_s / all) : EvidenceSum{};
}

}  // namespace cm384::service
