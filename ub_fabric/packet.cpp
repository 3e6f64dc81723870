#include "ub_fabric/packet.h"

#include "sim/error.h"

namespace cm384::ub {

void PacketPool::grow() {
  constexpr std::size_t kLargest = std::size_t{1} << 28;  // Hop has 28 bits for an index
  const std::size_t first = pages_.size() * kPage;
  if (first + kPage > kLargest) throw MachineError("unified bus: more than 2^28 packets at a time");
  pages_.push_back(std::make_unique<Packet[]>(kPage));
  // The lowest index comes first out of the free list.
  for (PacketIndex i = kPage; i-- > 0;) free_.push_back(static_cast<PacketIndex>(first) + i);
}

}  // namespace cm384::ub
