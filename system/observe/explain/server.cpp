#include "system/observe/explain/server.h"

#include <algorithm>

namespace cm384::observe {

Calendar& Server::calendar(std::size_t resource) {
  if (!calendars_) calendars_ = std::make_unique<std::array<Calendar, kResources>>();
  return (*calendars_)[resource];
}

void Server::serve(Path& path, double start, double service, const Served& served, Part otherwise) {
  for (std::size_t k = 0; k < kResources; ++k)
    path.gain[k] = start - calendar(k).reserve(path.at - path.gain[k], served.halved(service, k));
  if (free_at_ > path.at) {
    path.spent = spent_;
    path.at = free_at_;
  }
  path.spent[static_cast<std::size_t>(otherwise)] += static_cast<float>(start - path.at);
  path.at = start;
  free_at_ = start + service;
  spent_ = path.spent;
  spent_[static_cast<std::size_t>(served.part)] += static_cast<float>(service);
  busy_ += service;
}

void Server::occupy(double start, double service, const Served& served) {
  for (std::size_t k = 0; k < kResources; ++k) calendar(k).reserve(start, served.halved(service, k));
  busy_ += service;
}

}  // namespace cm384::observe
