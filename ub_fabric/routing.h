// How a switch chip picks one of the ways that the topology offers a packet.
#pragma once

#include <cstdint>
#include <string>

namespace cm384::ub {

enum class RoutingPolicy : std::uint8_t {
  spray,     // in turn, with a turn of its own for every input, starting at a place drawn from the seed
  flow,      // by hash of source, destination and core: keeps a flow in order
  adaptive,  // the output with the fewest cells waiting here and in the next chip's input buffer, else in
             // turn
  minimal,   // always the same for a destination
  valiant,   // first to a chip drawn for each packet, then on (Valiant and Brebner)
  ugal  // by such a chip where the shortest way's queue, weighted by hops, is the longer (Singh's UGAL-L)
};
// Throws InputError for an unknown name.
RoutingPolicy routing_policy(const std::string& name);
// Whether packets take detours by chips that are drawn.
constexpr bool draws_chips(RoutingPolicy policy) {
  return policy == RoutingPolicy::valiant || policy == RoutingPolicy::ugal;
}

// A well-mixed function of 64 bits (Steele, Lea and Flood's splitmix64 finaliser).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace cm384::ub
