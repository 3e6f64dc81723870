#include "ub_fabric/fault.h"

#include "ub_fabric/routing.h"

namespace cm384::ub {

RandomFault::RandomFault(double probability, Damage damage, std::uint64_t seed)
    : threshold_(probability <= 0   ? 0
                 : probability >= 1 ? std::uint64_t{1} << 53
                                    : static_cast<std::uint64_t>(probability * 9007199254740992.0)),
      damage_(damage),
      state_(seed) {}

Damage RandomFault::strike(PacketIndex, Time) {
  if (mix(state_++) >> 11 >= threshold_) return Damage::none;
  ++strikes_;
  return damage_;
}

Damage TimedFault::strike(PacketIndex, Time start) {
  if (start < from_ || start >= until_) return Damage::none;
  ++strikes_;
  return damage_;
}

}  // namespace cm384::ub
