#include "workloads/fabric/traffic_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "system/machine/bisection.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/link_timing.h"
#include "ub_fabric/routing.h"
#include "ub_fabric/topology/network.h"
#include "ub_fabric/wire_format.h"

namespace cm384::studies {
namespace {

// Bytes on the wire of the requests of a message, and of their responses.
struct WireBytes {
  double request = 0, response = 0;
};
WireBytes wire_bytes(bool writes, int bytes) {
  WireBytes sum;
  for (int left = bytes; left > 0; left -= static_cast<int>(sim::kRequestBytes)) {
    const int part = std::min(left, static_cast<int>(sim::kRequestBytes));
    const auto flits = [](ub::PacketKind kind, int payload) {
      return static_cast<double>(ub::packet_flits(kind, payload) * ub::kFlitBytes);
    };
    sum.request +=
        writes ? flits(ub::PacketKind::write_request, part) : flits(ub::PacketKind::read_request, 0);
    sum.response += writes ? flits(ub::PacketKind::write_ack, 0) : flits(ub::PacketKind::read_response, part);
  }
  return sum;
}

// The load of every link of a sub-plane by what chips send each other.
class LinkLoads {
 public:
  explicit LinkLoads(const ub::Network& network) : network_(network), of_link_(network.links()) {}

  // Adds what all chips send to one: `sent` by chip. Shares are split evenly over the ways at each chip;
  // chips are taken from far to near, so that what passes one has come together.
  void add(unsigned destination, std::vector<double> sent) {
    std::vector<unsigned> order;
    std::vector<unsigned> hops(network_.chips());
    for (unsigned chip = 0; chip < network_.chips(); ++chip) {
      hops[chip] = network_.hops(chip, destination);
      if (chip != destination && hops[chip] < network_.chips()) order.push_back(chip);
    }
    std::ranges::stable_sort(order, [&](unsigned a, unsigned b) { return hops[a] > hops[b]; });
    for (const unsigned chip : order) {
      if (sent[chip] == 0) continue;
      const auto ways = network_.ways(chip, destination);
      for (const std::uint16_t port : ways) {
        const unsigned link = network_.first_link(chip) + port;
        const double share = sent[chip] / static_cast<double>(ways.size());
        of_link_[link] += share;
        sent[network_.link(network_.link(link).peer).chip] += share;
      }
    }
  }
  double of(unsigned link) const { return of_link_[link]; }

 private:
  const ub::Network& network_;
  std::vector<double> of_link_;
};

// Bytes by pair of chips that dies of unit rate put on a plane, dies' own ports left out.
std::map<std::pair<unsigned, unsigned>, double> between_chips(const ub::Network& network, unsigned dies,
                                                              const Destinations& destinations,
                                                              const WireBytes& wire, std::vector<double>& out,
                                                              std::vector<double>& in) {
  std::map<std::pair<unsigned, unsigned>, double> flows;
  for (unsigned a = 0; a < dies; ++a) {
    for (unsigned b = 0; b < dies; ++b) {
      const double share = destinations.share(a, b);
      if (share == 0) continue;
      const unsigned from = network.chip_of(static_cast<ub::Endpoint>(a));
      const unsigned to = network.chip_of(static_cast<ub::Endpoint>(b));
      out[a] += share * wire.request, in[a] += share * wire.response;
      in[b] += share * wire.request, out[b] += share * wire.response;
      if (from == to) continue;
      flows[{from, to}] += share * wire.request;
      flows[{to, from}] += share * wire.response;
    }
  }
  return flows;
}

// As a packet of valiant goes: first to any chip with dies, then on.
std::map<std::pair<unsigned, unsigned>, double> by_any_chip(
    const ub::Network& network, const std::map<std::pair<unsigned, unsigned>, double>& flows) {
  std::vector<unsigned> chips;
  for (unsigned chip = 0; chip < network.chips(); ++chip) {
    if (network.has_endpoints(chip)) chips.push_back(chip);
  }
  std::map<std::pair<unsigned, unsigned>, double> both;
  for (const auto& [pair, bytes] : flows) {
    const double share = bytes / static_cast<double>(chips.size());
    for (const unsigned by : chips) {
      if (by == pair.first || by == pair.second) {
        both[pair] += share;  // no detour
        continue;
      }
      both[{pair.first, by}] += share;
      both[{by, pair.second}] += share;
    }
  }
  return both;
}

double rate_of(const Clock& flit) {
  return ub::kFlitBytes * 1e12 * static_cast<double>(flit.denominator()) /
         static_cast<double>(flit.numerator());
}

// Messages to the die that gets most, for one of each die.
double most_to_a_die(const Destinations& destinations, unsigned dies) {
  double most = 0;
  for (unsigned to = 0; to < dies; ++to) {
    double sum = 0;
    for (unsigned from = 0; from < dies; ++from) sum += destinations.share(from, to);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TrafficBounds traffic_bounds(const hw::Machine& machine, const Destinations& destinations, bool writes,
                             int bytes) {
  TrafficBounds bounds;
  const auto network = ub::Network::of(machine.topology);
  const auto dies = static_cast<unsigned>(machine.topology.dies());
  const WireBytes wire = wire_bytes(writes, bytes);
  const double data = bytes / std::max(wire.request, wire.response);
  const ub::Parameters parameters{machine.topology, machine.ub, machine.cpu, machine.package_link};
  const auto slowest_die = [&](int plane) {
    double slowest = std::numeric_limits<double>::max();
    for (unsigned d = 0; d < dies; ++d) {
      const auto die = static_cast<ub::Endpoint>(d);
      slowest = std::min({slowest, rate_of(timing_of_port(parameters, *network, die, plane).flit),
                          rate_of(timing_of_link(parameters, *network, network->link_to(die), plane).flit)});
    }
    return slowest;
  };
  double all_planes = 0;
  for (int plane = 0; plane < machine.topology.sub_planes; ++plane) all_planes += slowest_die(plane) / 1e9;
  bounds.bisection_GBps = supernode::bisection_GBps(parameters, *network);
  bounds.capacity_GBps = all_planes * data;
  const hw::UbController& controller = machine.ub.controller;
  const auto requests =
      (bytes + static_cast<int>(sim::kRequestBytes) - 1) / static_cast<int>(sim::kRequestBytes);
  const auto load = [&](Time interval, double share) {
    if (interval == Time{}) return 1e9;
    return bytes / (static_cast<double>(requests * interval.ps) / 1e3) / bounds.capacity_GBps / share;
  };
  const Time issued = writes ? ub::write_issue_interval(controller) : controller.read_interval;
  const Time served = writes ? ub::write_service_interval(controller) : controller.target_read_interval;
  bounds.controller_load =
      std::min(load(issued, 1), load(served, served == Time{} ? 1 : most_to_a_die(destinations, dies)));

  const ub::RoutingPolicy routing = ub::routing_policy(machine.ub.switch_chip.routing);
  if (routing == ub::RoutingPolicy::ugal) {
    bounds.busiest_link_load = -1;
    return bounds;
  }
  std::vector<double> out(dies), in(dies);
  auto flows = between_chips(*network, dies, destinations, wire, out, in);
  if (routing == ub::RoutingPolicy::valiant) flows = by_any_chip(*network, flows);
  LinkLoads loads(*network);
  std::map<unsigned, std::vector<double>> by_destination;
  for (const auto& [pair, amount] : flows) {
    std::vector<double>& sent = by_destination[pair.second];
    sent.resize(network->chips());
    sent[pair.first] += amount;
  }
  for (auto& [destination, sent] : by_destination) loads.add(destination, std::move(sent));
  // Bytes on the busiest link, for messages of one per die in the time that load 1 takes; rates of links are
  // counted in that of the slowest die's.
  const double unit = slowest_die(0);
  double trunk = 0, die = 0;
  for (unsigned n = 0; n < network->links(); ++n) {
    if (network->link(n).peer == ub::Network::kNoLink || loads.of(n) == 0) continue;
    trunk = std::max(trunk, loads.of(n) / (rate_of(timing_of_link(parameters, *network, n, 0).flit) / unit));
  }
  for (unsigned d = 0; d < dies; ++d) {
    const auto end = static_cast<ub::Endpoint>(d);
    die = std::max(
        {die, out[d] / (rate_of(timing_of_port(parameters, *network, end, 0).flit) / unit),
         in[d] / (rate_of(timing_of_link(parameters, *network, network->link_to(end), 0).flit) / unit)});
  }
  const double full = std::max(wire.request, wire.response);
  const double of_trunk = trunk == 0 ? 1e9 : full / trunk;
  bounds.busiest_link_load = std::min(of_trunk, full / die);
  return bounds;
}

}  // namespace cm384::studies
