// Up-down routing in a sub-plane: endpoint, L1 chip, and between nodes one L2 chip and the other L1 chip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/parameters/ub.h"
#include "ub_fabric/packet.h"

namespace cm384::ub {

// How an L1 chip picks the L2 chip of a packet for another node.
enum class RoutingPolicy : std::uint8_t {
  spray,    // in turn, a turn of its own for every input, starting at a place drawn from the seed
  flow,     // by hash of source, destination and core: keeps a flow in order
  adaptive  // the uplink with the fewest cells waiting here and in the L2 chip's input buffer, else in turn
};
// Throws InputError for an unknown name.
RoutingPolicy routing_policy(const std::string& name);

// Numbers of chips and ports. Chips: L1 of node n is n, L2 chip k is nodes + k.
class ClosShape {
 public:
  explicit ClosShape(const hw::Topology& topology);

  unsigned nodes() const { return nodes_; }
  unsigned chips() const { return nodes_ + l2_; }
  unsigned l2_switches() const { return l2_; }
  unsigned endpoints() const { return static_cast<unsigned>(node_.size()); }
  // Ports of the larger kind of chip; input or output p of chip c has number c * ports() + p.
  unsigned ports() const { return ports_; }
  bool is_l1(unsigned chip) const { return chip < nodes_; }
  unsigned node(Endpoint endpoint) const { return node_[endpoint]; }
  // Port of the endpoint's L1 chip.
  unsigned endpoint_port(Endpoint endpoint) const { return port_[endpoint]; }
  // Port of an L1 chip to L2 chip `l2`.
  unsigned uplink(unsigned l2) const { return first_uplink_ + l2; }
  unsigned input(unsigned chip, unsigned port) const { return chip * ports_ + port; }

 private:
  unsigned nodes_;
  unsigned l2_;
  unsigned first_uplink_;
  unsigned ports_;
  std::vector<std::uint8_t> node_;  // an endpoint
  std::vector<std::uint8_t> port_;
};

// A well-mixed function of 64 bits (Steele, Lea and Flood's splitmix64 finaliser).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace cm384::ub
