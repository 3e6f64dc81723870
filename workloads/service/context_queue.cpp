#include "workloads/service/context_queue.h"

#include <algorithm>
#include <cmath>

namespace cm384::service {

void ContextQueue::push(std::uint32_t request, std::uint32_t tenant, std::int32_t tokens) {
  if (!fair_) tenant = 0;
  if (tenants_.size() <= tenant) tenants_.resize(tenant + 1);
  Tenant& of = tenants_[tenant];
  of.contexts.push_back({request, tokens});
  ++size_;
  if (of.contexts.size() > 1) return;
  of.start = std::max(virtual_, of.finished);
  active_.emplace(of.start, tenant);
}

void ContextQueue::pop() {
  const std::uint32_t tenant = active_.begin()->second;
  active_.erase(active_.begin());
  Tenant& of = tenants_[tenant];
  const double share = shares_.empty() ? 1 : shares_[tenant % shares_.size()];
  virtual_ = of.start;
  of.finished = of.start + std::llround(1000 * of.contexts.front().tokens / share);
  of.contexts.pop_front();
  --size_;
  if (of.contexts.empty()) return;
  of.start = of.finished;
  active_.emplace(of.start, tenant);
}

void ContextQueue::erase_if(const std::function<bool(std::uint32_t request)>& which) {
  for (std::uint32_t k = 0; k < tenants_.size(); ++k) {
    Tenant& of = tenants_[k];
    if (of.contexts.empty()) continue;
    size_ -= std::erase_if(of.contexts, [&](const Context& context) { return which(context.request); });
    if (of.contexts.empty()) active_.erase({of.start, k});
  }
}

void ContextQueue::for_each(const std::function<void(std::uint32_t request)>& what) const {
  for (const Tenant& tenant : tenants_)
    for (const Context& context : tenant.contexts) what(context.request);
}

}  // namespace cm384::service
