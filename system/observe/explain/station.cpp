#include "system/observe/explain/station.h"

namespace cm384::observe {

double Station::Bins::reserve(double at, double service) {
  auto bin = static_cast<std::int32_t>(at / kBin) + 1;
  const std::int32_t wanted = bin;
  for (;; ++bin) {
    const std::size_t place = static_cast<std::uint32_t>(bin) % kBins;
    if (number[place] > bin) return at;  // so far back that nobody knows
    if (number[place] < bin) {
      number[place] = bin;
      used[place] = 0;
    }
    if (used[place] < static_cast<float>(kBin)) {
      const double begin = bin == wanted ? at : (bin - 1) * kBin + static_cast<double>(used[place]);
      used[place] += static_cast<float>(service);
      const float over = used[place] - static_cast<float>(kBin);
      if (over > 0) {  // goes on in the next one
        used[place] = static_cast<float>(kBin);
        const std::size_t next = static_cast<std::uint32_t>(bin + 1) % kBins;
        if (number[next] < bin + 1) {
          number[next] = bin + 1;
          used[next] = 0;
        }
        if (number[next] == bin + 1) used[next] += over;
      }
      return begin;
    }
  }
}

// As the mean wait of a queue with one server and a fixed service time.
double Station::Bins::load(double at, double service) {
  constexpr double kMemory = 10'000'000;  // ps
  constexpr double kLeast = 0.05, kMost = 0.95;
  const double share = std::clamp(recent / kMemory, kLeast, kMost);
  const double passed = std::clamp(at - latest, 0.0, kMemory);
  latest = std::max(latest, at);
  recent += service - recent * passed / kMemory;
  return share / (1 - share);
}

void Station::pass(Path& path, double start, double service, Part part, Resource resource, Part otherwise,
                   Resource slowed_by) {
  if (!bins_) bins_ = std::make_unique<std::array<Bins, kResources>>();
  const auto own = static_cast<std::size_t>(resource);
  const double waited = std::max(0.0, start - path.at);
  const std::array<double, kResources> came = path.gain;
  // An HBM channel may let one overtake.
  const bool in_turn = !used_ || free_.at <= start + service / 2;
  if (used_ && in_turn) path.join(free_);
  path.meet(start, otherwise, slowed_by);
  const double in_order = path.gain[own];
  const double load = load_.load(start, service);
  for (std::size_t k = 0; k < kResources; ++k) {
    if (k == own) continue;
    Bins& bins = (*bins_)[k];
    const double arrival = start - waited - came[k];
    const double wait = waited * std::clamp(bins.load(arrival, service) / load, 0.5, 2.0);
    path.gain[k] = start - bins.reserve(arrival + wait, service);
  }
  path.gain[own] = in_turn ? std::min(came[own] + waited, in_order) : came[own] + waited;
  if (in_turn) {
    free_ = path;
    free_.add(service, part, resource);
  }
  used_ = true;
  busy_ += service;
}

}  // namespace cm384::observe
