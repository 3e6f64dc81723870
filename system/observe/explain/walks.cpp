#include "system/observe/explain/walks.h"

#include <algorithm>

#include "firmware/abi/memory_map.h"

namespace cm384::observe {

Walks::Walks(const hw::UbTranslation& parameters)
    : cache_(parameters),
      walks_(static_cast<std::size_t>(parameters.walks)),
      latency_(static_cast<double>(parameters.miss_latency.ps)) {}

void Walks::translate(Path& path, std::uint64_t address) {
  const std::uint64_t page = cache_.key(address & ~CM384_GM_VIA_UB_BIT);
  if (cache_.lookup(page)) {
    const auto end = ends_.find(page);
    if (end != ends_.end()) path.join(end->second);
    return;
  }
  cache_.insert(page);
  walk(path);
  ends_.insert_or_assign(page, path);
}

void Walks::know(std::uint64_t address) {
  const std::uint64_t page = cache_.key(address & ~CM384_GM_VIA_UB_BIT);
  if (!cache_.lookup(page)) cache_.insert(page);
}

// In every evaluation by the walk that is free first there.
void Walks::walk(Path& path) {
  if (free_.empty()) {
    free_.resize(kResources * walks_);
    last_.resize(walks_);
  }
  std::array<double, kResources> end{};
  for (std::size_t k = 0; k < kResources; ++k) {
    const auto first = free_.begin() + static_cast<std::ptrdiff_t>(k * walks_);
    const auto walk = std::min_element(first, first + static_cast<std::ptrdiff_t>(walks_));
    const bool faster = k == static_cast<std::size_t>(Resource::translation);
    *walk = end[k] = std::max(*walk, path.at - path.gain[k]) + (faster ? latency_ / 2 : latency_);
  }
  Path& last = *std::ranges::min_element(last_, {}, &Path::at);
  if (last.at > path.at) {
    path.at = last.at;
    path.spent = last.spent;
  }
  path.at += latency_;
  path.spent[static_cast<std::size_t>(Part::translation)] += static_cast<float>(latency_);
  for (std::size_t k = 0; k < kResources; ++k) path.gain[k] = path.at - end[k];
  last = path;
  busy_ += latency_;
}

}  // namespace cm384::observe
