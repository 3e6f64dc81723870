// What a machine says of itself: sums of its counters, and who waits on what when it hangs.
#include <fmt/format.h>

#include "sim/error.h"
#include "supernode/supernode_parts.h"

namespace cm384::supernode {

void Supernode::report_hang(const std::string& why) const {
  constexpr std::size_t kLines = 32;
  std::string lines;
  std::size_t count = 0;
  for (const auto& die : parts_->dies) {
    if (!die) continue;
    const std::string report = die->report() + host(die->number()).report();
    for (std::size_t at = 0; at < report.size();) {
      const std::size_t end = report.find('\n', at);
      if (++count <= kLines) lines += "  " + report.substr(at, end - at) + "\n";
      at = end + 1;
    }
  }
  if (count > kLines) lines += fmt::format("  ... and {} more cores\n", count - kLines);
  throw MachineError(fmt::format(
      "the simulated machine hangs at {:.3f} us: {}; {} launches and calls of the host have not finished\n{}",
      now().us(), why, unfinished_, lines));
}

SupernodeCounts Supernode::counts() const {
  SupernodeCounts counts;
  for (const auto& die : parts_->dies) {
    if (!die) continue;
    counts.instructions += die->instructions();
    const auto& memory = die->memory().statistics();
    counts.memory_requests += memory.reads + memory.writes + memory.atomics;
    counts.events += die->queue().handled();
  }
  for (const auto& controller : parts_->controllers) {
    if (controller) counts.packet_hops += controller->packet_hops();
  }
  for (const auto& plane : parts_->planes) {
    counts.packet_hops += plane->packet_hops();
    counts.events += plane->queue().handled();
  }
  if (parts_->sockets) {
    counts.packet_hops += parts_->sockets->packet_hops();
    counts.events += parts_->sockets->queue().handled();
  }
  return counts;
}

}  // namespace cm384::supernode
