#include "workloads/contexts/ems_vpc.h"

#include <algorithm>

#include "ub_fabric/planes/vpc/vpc_plane.h"

namespace cm384::studies {

VpcReads measure_vpc_reads(const StudyContext& context, const vpc::Parameters& parameters,
                           const BlockPlaces& places, Bytes bytes, SimulatorCounts& counts) {
  constexpr Time kStep{100'000'000};  // between looks at whether to go on
  const hw::Topology& topology = context.machine.topology;
  vpc::VpcPlane plane(parameters, context.machine.cpu, topology.nodes, topology.sockets_per_node);
  const auto nodes = static_cast<std::size_t>(topology.nodes);
  std::vector<int> readers_of(nodes), blocks_of(nodes);
  for (std::size_t reader = 0; reader < places.dies.size(); ++reader) {
    const int node = places.dies[reader] / topology.dies_per_node;
    plane.read(node, places.sockets[reader], bytes);
    ++readers_of[static_cast<std::size_t>(node)];
    ++blocks_of[static_cast<std::size_t>(places.sockets[reader] / topology.sockets_per_node)];
  }
  VpcReads reads;
  for (Time at = kStep; !plane.finished() && context.interrupted == 0; at += kStep) {
    plane.run_until(at);
    context.progress.update(plane.done(), at, plane.events());
  }
  counts.simulated += plane.end();
  counts.events += plane.events();
  counts.packet_hops += plane.packet_hops();
  if (!plane.finished()) return reads;
  for (std::size_t reader = 0; reader < places.dies.size(); ++reader)
    reads.latency_us.push_back(plane.latency(reader).us());
  reads.readers_of_a_card = std::ranges::max(readers_of);
  reads.blocks_of_a_card = std::ranges::max(blocks_of);
  for (int node = 0; node < topology.nodes; ++node) {
    reads.inward = std::max(reads.inward, plane.inward(node).busy().us() / plane.end().us());
    reads.outward = std::max(reads.outward, plane.outward(node).busy().us() / plane.end().us());
  }
  return reads;
}

}  // namespace cm384::studies
