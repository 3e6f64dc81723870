#include "workloads/service/host_memory.h"

#include <algorithm>
#include <cmath>

namespace cm384::service {

HostMemory::Instance& HostMemory::instance(std::uint32_t i) {
  while (instances_.size() <= i)
    instances_.emplace_back().free.resize(static_cast<std::size_t>(spec_.dies()));
  return instances_[i];
}

Time HostMemory::copy(Time from, std::int64_t bytes, const Bandwidth& rate, Time& free) {
  const Time span{
      std::llround(static_cast<double>(bytes) / static_cast<double>(rate.bytes_per_second) * 1e12)};
  free = std::max(from, free) + span;
  return free;
}

Time HostMemory::swap_out(std::uint32_t i, std::vector<DecodeInstance::Lost>& requests, Time now) {
  Time last = now;
  if (spec_.preempt != "swap") return last;
  const std::int64_t room = spec_.swap_room.count * spec_.dies();
  for (DecodeInstance::Lost& one : requests) {
    Instance& here = instance(i);
    if (here.used + one.bytes > room) continue;
    one.swapped = true;
    here.used += one.bytes;
    const Time end = copy(now, one.bytes, spec_.swap_out_rate, here.free[static_cast<std::size_t>(one.die)]);
    here.waiting.push_back({one.request, one.bytes, end});
    last = std::max(last, end);
  }
  return last;
}

const HostMemory::Context* HostMemory::next(std::uint32_t i) const {
  if (i >= instances_.size() || instances_[i].waiting.empty()) return nullptr;
  return &instances_[i].waiting.front();
}

Time HostMemory::begin_return(std::uint32_t i, int die, Time now) {
  Instance& here = instance(i);
  const Context context = here.waiting.front();
  here.waiting.pop_front();
  const Time end = copy(std::max(now, context.copied), context.bytes, spec_.swap_in_rate,
                        here.free[static_cast<std::size_t>(die)]);
  here.returning.push_back({context, die, end});
  return end;
}

bool HostMemory::end_return(std::uint32_t i, std::uint32_t request, Time now) {
  Instance& here = instance(i);
  const auto of = std::ranges::find_if(
      here.returning, [&](const Returning& r) { return r.context.request == request && r.end == now; });
  if (of == here.returning.end()) return false;
  here.used -= of->context.bytes;
  here.returning.erase(of);
  return true;
}

std::vector<std::uint32_t> HostMemory::lose_die(std::uint32_t i, int die) {
  std::vector<std::uint32_t> back;
  if (empty(i)) return back;
  Instance& here = instance(i);
  std::vector<Returning> others;
  std::vector<Context> again;
  for (const Returning& one : here.returning) {
    if (one.die == die)
      again.push_back(one.context);
    else
      others.push_back(one);
  }
  here.returning = std::move(others);
  for (const Context& context : again) back.push_back(context.request);
  here.waiting.insert(here.waiting.begin(), again.begin(), again.end());
  return back;
}

std::vector<std::uint32_t> HostMemory::lose_all(std::uint32_t i) {
  std::vector<std::uint32_t> lost;
  if (empty(i)) return lost;
  Instance& here = instance(i);
  for (const Context& context : here.waiting) lost.push_back(context.request);
  for (const Returning& one : here.returning) lost.push_back(one.context.request);
  here = {};
  here.free.resize(static_cast<std::size_t>(spec_.dies()));
  return lost;
}

}  // namespace cm384::service
