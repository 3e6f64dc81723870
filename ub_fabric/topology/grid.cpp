#include "ub_fabric/topology/grid.h"

#include <fmt/format.h>

#include "base/text/error.h"

namespace cm384::ub {

Grid::Grid(const hw::Topology& topology) {
  for (const int length : topology.lengths()) {
    lengths_.push_back(static_cast<unsigned>(length));
    strides_.push_back(chips_);
    chips_ *= static_cast<unsigned>(length);
    if (chips_ > 65'535) throw InputError("topology.shape: more than 65535 chips");
  }
  if (2 * lengths_.size() > Layout::kMostGroups)
    throw InputError(fmt::format("topology.shape: more than {} dimensions", Layout::kMostGroups / 2));
  if (static_cast<unsigned>(topology.dies()) % chips_ != 0)
    throw InputError(fmt::format("topology.shape: {} chips do not share {} dies evenly; allowed: a divisor",
                                 chips_, topology.dies()));
}

Layout Grid::layout(const hw::Topology& topology) const {
  Layout layout;
  for (unsigned chip = 0; chip < chips_; ++chip) layout.add_chip("chip", chip);
  const auto spread = [&](int count) {
    for (int i = 0; i < count; ++i)
      layout.attach(
          static_cast<unsigned>(static_cast<std::uint64_t>(i) * chips_ / static_cast<unsigned>(count)));
  };
  layout.dies = static_cast<unsigned>(topology.dies());
  spread(topology.dies());
  spread(topology.sockets());
  return layout;
}

}  // namespace cm384::ub
