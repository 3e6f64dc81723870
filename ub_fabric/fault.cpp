#include "ub_fabric/fault.h"

#include "ub_fabric/routing.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {

namespace {

std::uint64_t threshold(double probability) {
  if (probability <= 0) return 0;
  if (probability >= 1) return std::uint64_t{1} << 53;
  return static_cast<std::uint64_t>(probability * 9007199254740992.0);
}

}  // namespace

RandomFault::RandomFault(double probability, Damage damage, std::uint64_t seed)
    : damage_(damage), state_(seed) {
  threshold_.fill(threshold(probability));
}

RandomFault RandomFault::of_bits(double rate, Damage damage, std::uint64_t seed) {
  RandomFault fault(0, damage, seed);
  double passes = 1;
  for (std::size_t flits = 0; flits < kFlits; ++flits) {
    fault.threshold_[flits] = threshold(1 - passes);
    for (int bit = 0; bit < kFlitBytes * 8; ++bit) passes *= 1 - rate;
  }
  return fault;
}

Damage RandomFault::strike(Hop hop, Time) {
  if (mix(state_++) >> 11 >= threshold_[hop.flits()]) return Damage::none;
  ++strikes_;
  return damage_;
}

Damage TimedFault::strike(Hop, Time start) {
  if (start < from_ || start >= until_) return Damage::none;
  ++strikes_;
  return damage_;
}

}  // namespace cm384::ub
