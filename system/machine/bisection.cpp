#include "system/machine/bisection.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "ub_fabric/link_timing.h"
#include "ub_fabric/topology/kinds.h"
#include "ub_fabric/wire_format.h"

namespace cm384::supernode {
namespace {

// Dies in an order whose first half is one side.
using Order = std::vector<unsigned>;

std::int64_t megabytes(const ub::LinkTiming& timing) {
  return std::llround(ub::kFlitBytes * 1e6 * static_cast<double>(timing.flit.denominator()) /
                      static_cast<double>(timing.flit.numerator()));
}

// In MB/s of one plane.
std::int64_t cut_between_halves(const ub::Network& network, const Order& order,
                                const ub::Parameters& parameters, int plane) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Graph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<boost::edge_capacity_t, std::int64_t,
                      boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                      boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  const unsigned source = network.chips(), sink = source + 1;
  Graph graph(sink + 1);
  // One way; the algorithm wants a reverse edge without capacity for each.
  const auto add = [&](unsigned a, unsigned b, std::int64_t rate) {
    const auto forth = boost::add_edge(a, b, graph).first, reverse = boost::add_edge(b, a, graph).first;
    boost::put(boost::edge_capacity, graph, forth, rate);
    boost::put(boost::edge_capacity, graph, reverse, 0);
    boost::put(boost::edge_reverse, graph, forth, reverse);
    boost::put(boost::edge_reverse, graph, reverse, forth);
  };
  std::vector<bool> sends(order.size());
  for (std::size_t n = 0; n < order.size() / 2; ++n) sends[order[n]] = true;
  for (unsigned n = 0; n < network.links(); ++n) {
    const ub::Network::Link& link = network.link(n);
    if (link.peer != ub::Network::kNoLink) {
      add(link.chip, network.link(link.peer).chip, megabytes(timing_of_link(parameters, network, n, plane)));
    } else if (link.endpoint < order.size() && sends[link.endpoint]) {
      add(source, link.chip, megabytes(timing_of_port(parameters, network, link.endpoint, plane)));
    } else if (link.endpoint < order.size()) {
      add(link.chip, sink, megabytes(timing_of_link(parameters, network, n, plane)));
    }
  }
  return boost::push_relabel_max_flow(graph, source, sink);
}

template <class Key>
Order sorted_by(unsigned dies, Key&& key) {
  Order order(dies);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, key);
  return order;
}

// Across each dimension; where its middle is a slice, that across the longest of the others, and so on.
std::vector<Order> across_dimensions(const ub::Network& network, const std::vector<unsigned>& lengths,
                                     unsigned dies) {
  std::vector<unsigned> strides;
  for (unsigned stride = 1; const unsigned length : lengths) {
    strides.push_back(stride);
    stride *= length;
  }
  std::vector<unsigned> longest_first(lengths.size());
  std::iota(longest_first.begin(), longest_first.end(), 0u);
  std::ranges::stable_sort(longest_first, std::greater<>(), [&](unsigned d) { return lengths[d]; });
  std::vector<Order> orders;
  for (unsigned first = 0; first < lengths.size(); ++first) {
    if (lengths[first] == 1) continue;
    std::vector<unsigned> dimensions{first};
    std::ranges::copy_if(longest_first, std::back_inserter(dimensions),
                         [&](unsigned d) { return d != first; });
    orders.push_back(sorted_by(dies, [&](unsigned die) {
      std::vector<unsigned> place;
      const unsigned chip = network.chip_of(static_cast<ub::Endpoint>(die));
      for (const unsigned d : dimensions) place.push_back(chip / strides[d] % lengths[d]);
      return place;
    }));
  }
  return orders;
}

std::vector<unsigned> distances_from(const ub::Network& network, unsigned start) {
  std::vector<unsigned> distance(network.chips(), network.chips());
  std::vector<unsigned> queue{start};
  distance[start] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const unsigned chip = queue[next];
    for (unsigned n = network.first_link(chip); n < network.first_link(chip) + network.ports(chip); ++n) {
      if (network.link(n).peer == ub::Network::kNoLink) continue;
      const unsigned other = network.link(network.link(n).peer).chip;
      if (distance[other] != network.chips()) continue;
      distance[other] = distance[chip] + 1;
      queue.push_back(other);
    }
  }
  return distance;
}

// From each of some chips: the nearer ones against the farther ones, and those nearer to it than to a chip as
// far away as can be.
std::vector<Order> by_distance(const ub::Network& network, unsigned dies) {
  constexpr unsigned kMostStarts = 64;
  std::vector<Order> orders;
  for (unsigned k = 0; k < std::min(dies, kMostStarts); ++k) {
    const auto die = static_cast<ub::Endpoint>(std::uint64_t{k} * dies / std::min(dies, kMostStarts));
    const std::vector<unsigned> near = distances_from(network, network.chip_of(die));
    const auto distance = [&](unsigned d) { return near[network.chip_of(static_cast<ub::Endpoint>(d))]; };
    orders.push_back(sorted_by(dies, distance));
    const auto opposite = network.chip_of(static_cast<ub::Endpoint>(orders.back().back()));
    const std::vector<unsigned> far = distances_from(network, opposite);
    orders.push_back(sorted_by(dies, [&](unsigned d) {
      const unsigned chip = network.chip_of(static_cast<ub::Endpoint>(d));
      return static_cast<int>(near[chip]) - static_cast<int>(far[chip]);
    }));
  }
  return orders;
}

}  // namespace

double bisection_GBps(const ub::Parameters& parameters, const ub::Network& network) {
  const hw::Topology& topology = parameters.topology;
  const auto dies = static_cast<unsigned>(topology.dies());
  std::vector<Order> orders = across_dimensions(network, ub::grid_lengths(topology), dies);
  if (topology.kind == "file") orders = by_distance(network, dies);
  if (orders.empty())
    orders.push_back(sorted_by(dies, std::identity()));  // nodes, pods and groups follow one another
  std::map<double, std::int64_t> of_rate;                // planes of one rate are alike
  std::int64_t sum = 0;
  for (int plane = 0; plane < topology.sub_planes; ++plane) {
    const auto [known, fresh] = of_rate.emplace(parameters.ub.link.plane_rate(plane), 0);
    if (fresh) {
      known->second = std::numeric_limits<std::int64_t>::max();
      for (const Order& order : orders)
        known->second = std::min(known->second, cut_between_halves(network, order, parameters, plane));
    }
    sum += known->second;
  }
  return static_cast<double>(sum) / 1e3;
}

double bisection_GBps(const hw::Machine& machine) {
  const hw::Topology topology = machine.topology.one_supernode();
  return bisection_GBps({topology, machine.ub, machine.cpu, machine.package_link},
                        *ub::Network::of(topology));
}

}  // namespace cm384::supernode
