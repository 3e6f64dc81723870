#include "workloads/contexts/ems_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/error.h"
#include "firmware/abi/p2p.h"
#include "workloads/frame/session.h"
#include "workloads/service/block_pool.h"

namespace cm384::studies {
namespace {

constexpr std::uint32_t kReadChunk = 16 * 1024;
constexpr std::uint32_t kReadBuffers = 8;

// What a die's cores took together.
double span_us(host::Runtime& runtime, std::uint64_t results, std::uint64_t cores, const Clock& clock) {
  std::uint64_t start = UINT64_MAX, end = 0;
  for (std::uint64_t core = 0; core < cores; ++core) {
    const auto one = runtime.get<cm384_p2p_result>(results + core * CM384_P2P_RESULT_STRIDE, 1).front();
    start = std::min(start, one.start_cycle);
    end = std::max(end, one.end_cycle);
  }
  if (end <= start) return 0;
  return (clock.start(static_cast<std::int64_t>(end)) - clock.start(static_cast<std::int64_t>(start))).us();
}

}  // namespace

BlockPlaces place_block_reads(const StudyContext& context, int readers, int nodes) {
  const hw::Topology& topology = context.machine.topology;
  const int sockets = topology.nodes * topology.sockets_per_node,
            dies = (nodes == 0 ? topology.nodes : nodes) * topology.dies_per_node;
  if (sockets == 0) throw InputError("run ems: --readers needs a machine with CPU sockets");
  if (nodes > topology.nodes)
    throw InputError(
        fmt::format("run ems: --reader-nodes {}: the machine has {} nodes", nodes, topology.nodes));
  if (readers > dies)
    throw InputError(fmt::format("run ems: --readers {}: {} {} dies", readers,
                                 nodes == 0 ? "the machine has" : "the nodes of --reader-nodes have", dies));
  const service::HashRing ring(sockets);
  std::map<int, int> readers_of;  // socket
  BlockPlaces places;
  for (int reader = 0; reader < readers; ++reader) {
    places.dies.push_back(reader * (dies / readers));
    places.sockets.push_back(ring.server_of(context.seed * 100'003 + static_cast<std::uint64_t>(reader)));
    ++readers_of[places.sockets.back()];
  }
  places.servers = static_cast<int>(readers_of.size());
  for (const auto& [socket, count] : readers_of)
    places.most_at_a_server = std::max(places.most_at_a_server, count);
  return places;
}

std::vector<double> measure_block_reads(const StudyContext& context, const BlockPlaces& places, Bytes bytes,
                                        SimulatorCounts& counts) {
  SessionOptions options;
  options.dies = places.dies;
  const std::set<int> sockets(places.sockets.begin(), places.sockets.end());
  options.sockets.assign(sockets.begin(), sockets.end());
  options.what = fmt::format("{} readers of {} B", places.dies.size(), bytes.count);
  Session session(context, options);
  auto& runtime = session.runtime();
  const auto program = session.built_in("p2p");
  const auto cores = static_cast<std::uint64_t>(context.machine.die.aiv);
  std::vector<std::uint64_t> results;
  for (std::size_t reader = 0; reader < places.dies.size(); ++reader) {
    const int die = places.dies[reader];
    cm384_p2p arguments{};
    arguments.mode = CM384_P2P_READ;
    arguments.buffers = kReadBuffers;
    arguments.chunk_bytes = kReadChunk;
    arguments.pattern = 1;
    arguments.warmup = 0;
    arguments.bytes = (static_cast<std::uint64_t>(bytes.count) + cores * 512 - 1) / (cores * 512) * 512;
    arguments.target_stride = arguments.bytes;
    const std::uint64_t span = arguments.bytes * cores;
    arguments.target = runtime.allocate_on_socket(places.sockets[reader], span);
    runtime.mark_payload(arguments.target, span);
    arguments.results = runtime.allocate(die, cores * CM384_P2P_RESULT_STRIDE);
    results.push_back(arguments.results);
    const std::uint64_t block = runtime.allocate(die, sizeof arguments);
    runtime.put(block, arguments);
    runtime.launch(die, program, block, runtime.first_cores(context.machine.die.aiv),
                   runtime.earliest_start());
  }
  runtime.wait();
  session.count(counts);
  std::vector<double> latency_us;
  if (context.interrupted != 0) return latency_us;
  const Clock clock(context.machine.die.clock);
  for (const std::uint64_t result : results) latency_us.push_back(span_us(runtime, result, cores, clock));
  return latency_us;
}

}  // namespace cm384::studies
