#include <algorithm>

#include "workloads/service/service.h"

namespace cm384::service {

void Service::switch_roles(const RoleSwitch& change) {
  const std::size_t group = leaving_.size();
  leaving_.push_back({change.prefill, change.last - change.first + 1});
  ++result_.role_switches;
  for (int k = change.first; k <= change.last; ++k) {
    const auto i = static_cast<std::uint32_t>(k);
    if (change.prefill) {
      prefill_[i].closed = true;
      prefill_leaves_[i] = group;
      leave_prefill(i);
    } else {
      decode_[i].close();
      decode_leaves_[i] = group;
      leave_decode(i);
    }
  }
}

// It leaves the pool once it has ended what it had.
void Service::leave_prefill(std::uint32_t i) {
  PrefillInstance& instance = prefill_[i];
  if (!instance.closed || instance.busy || instance.held > 0 || instance.away > 0 || instance.paused > 0 ||
      instance.until != Time::never())
    return;
  instance.until = now_;
  left(prefill_leaves_.at(i));
}

void Service::leave_decode(std::uint32_t i) {
  if (!decode_[i].is_drained() || stepping_[i].until != Time::never()) return;
  stepping_[i].until = now_;
  left(decode_leaves_.at(i));
}

void Service::left(std::size_t group) {
  if (--leaving_[group].open == 0)
    push(now_ + deployment_.recovery.role_switch, Kind::role_taken, static_cast<std::uint32_t>(group));
}

void Service::take_role(const Leaving& group) {
  if (group.prefill) {
    decode_.emplace_back(deployment_.decode, options_.seed, static_cast<int>(decode_.size()));
    stepping_.emplace_back().since = now_;
    admit();
    return;
  }
  for (int k = 0; k < deployment_.decode.npus / deployment_.prefill.npus; ++k) {
    prefill_.emplace_back().since = now_;
    start_prefill(static_cast<std::uint32_t>(prefill_.size() - 1));
  }
}

void Service::sum_pools() {
  const auto time_of = [this](const auto& instance) {
    return std::max(0.0,
                    seconds(std::min(instance.until, result_.end) - std::min(instance.since, result_.end)));
  };
  for (const PrefillInstance& instance : prefill_) result_.prefill_pool_s += time_of(instance);
  for (const Step& instance : stepping_) result_.decode_pool_s += time_of(instance);
  if (broken_ > 0) degraded_.emplace_back(broken_since_, result_.end);
  for (const auto& [from, to] : degraded_)
    result_.degraded_s += std::max(0.0, seconds(std::min(to, result_.end) - from));
}

}  // namespace cm384::service
