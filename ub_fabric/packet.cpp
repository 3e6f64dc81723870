#include "ub_fabric/packet.h"

#include "base/text/error.h"

namespace cm384::ub {

void PacketPool::grow(std::vector<PacketIndex>& free) {
  const std::lock_guard lock(*growing_);
  if (used_ == kPages) throw MachineError("unified bus: more than 2^28 packets at a time");
  pages_[used_] = std::make_unique<Packet[]>(kPage);
  const PacketIndex first = used_++ * kPage;
  // The lowest index comes first out of the free list.
  for (PacketIndex i = kPage; i-- > 0;) free.push_back(first + i);
}

}  // namespace cm384::ub
