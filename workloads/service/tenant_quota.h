// What a tenant may ask of a service (QuotaSpec): requests at a time, and tokens over time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/text/units.h"
#include "workloads/service/deployment.h"

namespace cm384::service {

class TenantQuota {
 public:
  explicit TenantQuota(const Deployment& deployment);

  // Whether a request of so many tokens, prompt and answer, may enter; one that may counts until end().
  bool admit(std::uint32_t tenant, std::int64_t tokens, Time now);
  void end(std::uint32_t tenant);

 private:
  struct Tenant {
    int requests = 0;  // in the service
    Time paid{};       // until when its rate has been used up
  };
  Tenant& of(std::uint32_t tenant);

  const QuotaSpec& spec_;
  std::vector<double> shares_;
  std::vector<Tenant> tenants_;
};

}  // namespace cm384::service
