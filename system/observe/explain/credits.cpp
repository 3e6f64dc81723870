#include "system/observe/explain/credits.h"

#include <algorithm>

namespace cm384::observe {

void Credits::Pool::add(double at, int cells) {
  const auto place = std::ranges::upper_bound(there_, at, {}, &Cells::at);
  there_.insert(place, {at, cells});
  if (there_.size() <= kMost) return;
  there_[1].count += there_[0].count;
  there_.erase(there_.begin());
}

double Credits::Pool::acquire(double at, int cells) {
  while (cells > 0 && !there_.empty()) {
    auto from = std::ranges::upper_bound(there_, at, {}, &Cells::at);
    if (from != there_.begin()) --from;  // otherwise the first that will be there
    at = std::max(at, from->at);
    const int taken = std::min(cells, from->count);
    cells -= taken;
    from->count -= taken;
    if (from->count == 0) there_.erase(from);
  }
  return at;
}

void Credits::acquire(Path& path, int cells, int buffer) {
  if (pools_.empty()) {
    pools_.resize(kResources);
    for (std::size_t k = 0; k < kResources; ++k)
      pools_[k].add(0, k == static_cast<std::size_t>(Resource::buffers) ? 2 * buffer : buffer);
  }
  std::array<double, kResources> when{};
  for (std::size_t k = 0; k < kResources; ++k) when[k] = pools_[k].acquire(path.at - path.gain[k], cells);
  out_ += cells;
  for (; out_ - back_ > buffer && !returned_.empty(); returned_.pop_front()) {
    const Returned& last = returned_.front();
    back_ += last.cells;
    if (last.at <= path.at) continue;
    path.at = last.at;
    path.spent = last.spent;
  }
  for (std::size_t k = 0; k < kResources; ++k) path.gain[k] = path.at - when[k];
}

void Credits::release(const Path& back, int cells, double start) {
  for (std::size_t k = 0; k < pools_.size(); ++k) pools_[k].add(back.at - back.gain[k], cells);
  returned_.push_back({back.at, cells, back.spent});
  held_ += cells * (back.at - start);
}

}  // namespace cm384::observe
