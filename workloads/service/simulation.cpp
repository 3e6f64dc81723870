#include "workloads/service/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/text/error.h"
#include "workloads/service/service.h"

namespace cm384::service {

ServiceResult serve(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                    const ServiceOptions& options) {
  check_service(trace, deployment, library, options);
  return Service(trace, deployment, library, options).run();
}

namespace {

// Throws InputError, behind the name of the service that it is of.
NpuBudget budget_of(const std::vector<SharingService>& services, const Sharing& sharing) {
  std::vector<NpuBudget::Member> members;
  int own = 0;
  for (const SharingService& service : services) {
    try {
      check_service(service.trace, service.deployment, service.library, service.options);
      if (sharing.blocks && service.deployment.cache.scope == "instance")
        throw InputError("cache.scope = instance: its instances share nothing; allowed: shared");
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", service.name, error.what()));
    }
    members.push_back({service.deployment.npus(), service.share});
    own += members.back().npus;
  }
  if (own > sharing.npus)
    throw InputError(
        fmt::format("the deployments of {} services have {} NPUs together; allowed: at most {} in all",
                    services.size(), own, sharing.npus));
  return {sharing.npus, members};
}

BlockPool blocks_of(const std::vector<SharingService>& services) {
  std::vector<PoolMember> members;
  for (const SharingService& service : services)
    members.push_back(member_of(service.trace, service.deployment.cache, service.deployment.decode.token));
  return shared_blocks(services.front().deployment.cache, std::move(members));
}

}  // namespace

SharedResult serve_together(std::vector<SharingService>& services, const Sharing& sharing) {
  NpuBudget budget = budget_of(services, sharing);
  std::optional<BlockPool> blocks;
  if (sharing.blocks) blocks.emplace(blocks_of(services));
  std::optional<TrainingBeside> training;
  if (!sharing.training.empty()) {
    training.emplace(sharing.training, sharing.training_times, budget.free());
    budget.set_training(&*training);
  }
  std::deque<Service> running;
  for (std::size_t k = 0; k < services.size(); ++k) {
    services[k].options.npus = &budget;
    services[k].options.member = k;
    if (blocks) services[k].options.shared_blocks = {&*blocks, static_cast<std::uint32_t>(k)};
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
  SharedResult result;
  Time end{};
  for (Service& one : running) {
    end = std::max(end, one.now());
    result.services.push_back(one.finish());
  }
  if (training) {
    training->finish(end);
    result.training = {seconds(end), training->tokens(), training->npu_s(),
                       training->tokens_s_on(budget.least_free()), training->changes()};
  }
  return result;
}

}  // namespace cm384::service
