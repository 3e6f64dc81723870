#include "workloads/service/tenant_quota.h"

#include <algorithm>
#include <cmath>

#include "workloads/service/prompt_queue.h"

namespace cm384::service {

TenantQuota::TenantQuota(const Deployment& deployment)
    : spec_(deployment.quota), shares_(shares_of(deployment.prefill.shares)) {}

TenantQuota::Tenant& TenantQuota::of(std::uint32_t tenant) {
  if (tenants_.size() <= tenant) tenants_.resize(tenant + 1);
  return tenants_[tenant];
}

// A bucket of tokens that fills at a rate, as the time that its missing tokens take to come (the generic cell
// rate algorithm, ITU-T I.371): whole picoseconds, so that nothing is lost by rounding.
bool TenantQuota::admit(std::uint32_t tenant, std::int64_t tokens, Time now) {
  if (!spec_.acts()) return true;
  Tenant& one = of(tenant);
  if (spec_.requests > 0 && one.requests >= spec_.requests) return false;
  if (spec_.tokens_s > 0) {
    const double share = shares_.empty() ? 1 : shares_[tenant % shares_.size()];
    const double ps = static_cast<double>(tokens) / (static_cast<double>(spec_.tokens_s) * share) * 1e12;
    if (ps > static_cast<double>(spec_.period.ps)) return false;
    const Time paid = std::max(now, one.paid) + Time{std::llround(ps)};
    if (paid - now > spec_.period) return false;
    one.paid = paid;
  }
  ++one.requests;
  return true;
}

void TenantQuota::end(std::uint32_t tenant) {
  if (spec_.acts()) --of(tenant).requests;
}

}  // namespace cm384::service
