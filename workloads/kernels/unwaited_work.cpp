#include "workloads/kernels/unwaited_work.h"

#include <algorithm>
#include <utility>

namespace cm384::studies {

void UnwaitedWork::started(std::uint64_t stream, Work work) {
  streams_[stream].works.push_back(std::move(work));
}

void UnwaitedWork::join(Clock& into, const Clock& other) {
  for (const auto& [stream, count] : other) into[stream] = std::max(into[stream], count);
}

UnwaitedWork::Clock UnwaitedWork::after(std::uint64_t stream) {
  const Stream& of = streams_[stream];
  Clock clock = of.before;
  clock[stream] = of.complete + of.works.size();
  return clock;
}

void UnwaitedWork::complete(const Clock& done) {
  for (const auto& [number, count] : done) {
    Stream& of = streams_[number];
    for (; of.complete < count; ++of.complete) of.works.pop_front();
  }
}

std::optional<std::string> UnwaitedWork::meets(std::uint64_t address, bool write) const {
  auto allocation = allocations_.upper_bound(address);
  if (allocation == allocations_.begin()) return std::nullopt;
  --allocation;
  const auto within = [&](std::uint64_t word) {
    return word >= allocation->first && word - allocation->first < allocation->second;
  };
  for (const auto& [number, stream] : streams_) {
    for (const Work& work : stream.works) {
      if (std::ranges::any_of(work.writes, within) || (write && std::ranges::any_of(work.reads, within)))
        return work.what;
    }
  }
  return std::nullopt;
}

}  // namespace cm384::studies
