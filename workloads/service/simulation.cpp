#include "workloads/service/simulation.h"

#include <fmt/format.h>

#include <deque>

#include "base/text/error.h"
#include "workloads/service/service.h"

namespace cm384::service {

ServiceResult serve(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                    const ServiceOptions& options) {
  check_service(trace, deployment, library, options);
  return Service(trace, deployment, library, options).run();
}

std::vector<ServiceResult> serve_together(std::vector<SharingService>& services, int npus) {
  std::vector<NpuBudget::Member> members;
  int own = 0;
  for (const SharingService& service : services) {
    try {
      check_service(service.trace, service.deployment, service.library, service.options);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", service.name, error.what()));
    }
    members.push_back({service.deployment.npus(), service.share});
    own += members.back().npus;
  }
  if (own > npus)
    throw InputError(
        fmt::format("the deployments of {} services have {} NPUs together; allowed: at most {} in all",
                    services.size(), own, npus));
  NpuBudget budget(npus, members);
  std::deque<Service> running;
  for (std::size_t k = 0; k < services.size(); ++k) {
    services[k].options.npus = &budget;
    services[k].options.member = k;
    running.emplace_back(services[k].trace, services[k].deployment, services[k].library, services[k].options);
    running.back().begin();
  }
  // Of events at one moment that of the service that was named first.
  for (;;) {
    Service* next = nullptr;
    for (Service& one : running)
      if (!one.is_done() && (next == nullptr || one.next_at() < next->next_at())) next = &one;
    if (next == nullptr) break;
    next->advance();
  }
  std::vector<ServiceResult> results;
  for (Service& one : running) results.push_back(one.finish());
  return results;
}

}  // namespace cm384::service
