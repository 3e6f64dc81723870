#include "studies/ems_read.h"

#include <algorithm>
#include <map>

#include "firmware/abi/p2p.h"
#include "hw/error.h"
#include "service/block_pool.h"
#include "studies/session.h"

namespace cm384::studies {
namespace {

constexpr std::uint32_t kChunk = 16 * 1024;
constexpr std::uint32_t kBuffers = 8;
constexpr int kCores = 48;

// What a die's cores took together.
double span_us(host::Runtime& runtime, std::uint64_t results, const Clock& clock) {
  std::uint64_t start = UINT64_MAX, end = 0;
  for (std::uint64_t core = 0; core < kCores; ++core) {
    const auto one = runtime.get<cm384_p2p_result>(results + core * CM384_P2P_RESULT_STRIDE, 1).front();
    start = std::min(start, one.start_cycle);
    end = std::max(end, one.end_cycle);
  }
  if (end <= start) return 0;
  return (clock.start(static_cast<std::int64_t>(end)) - clock.start(static_cast<std::int64_t>(start))).us();
}

}  // namespace

BlockReads measure_block_reads(const StudyContext& context, int readers, Bytes bytes,
                               SimulatorCounts& counts) {
  const hw::Topology& topology = context.machine.topology;
  const int sockets = topology.nodes * topology.sockets_per_node,
            dies = topology.nodes * topology.dies_per_node;
  if (sockets == 0) throw InputError("run ems: --readers needs a machine with CPU sockets");
  if (readers > dies)
    throw InputError(fmt::format("run ems: --readers {}: the machine has {} dies", readers, dies));
  const service::HashRing ring(sockets);
  std::map<int, int> readers_of;  // socket
  SessionOptions options;
  std::vector<int> socket_of;
  for (int reader = 0; reader < readers; ++reader) {
    options.dies.push_back(reader * (dies / readers));
    socket_of.push_back(ring.server_of(context.seed * 100'003 + static_cast<std::uint64_t>(reader)));
    ++readers_of[socket_of.back()];
  }
  for (const auto& [socket, count] : readers_of) options.sockets.push_back(socket);
  options.what = fmt::format("{} readers of {} B", readers, bytes.count);
  Session session(context, options);
  auto& runtime = session.runtime();
  const auto program = session.built_in("p2p");
  std::vector<std::uint64_t> results;
  for (std::size_t reader = 0; reader < socket_of.size(); ++reader) {
    const int die = options.dies[reader];
    cm384_p2p arguments{};
    arguments.mode = CM384_P2P_READ;
    arguments.buffers = kBuffers;
    arguments.chunk_bytes = kChunk;
    arguments.pattern = 1;
    arguments.warmup = 0;
    arguments.bytes = (static_cast<std::uint64_t>(bytes.count) + kCores * 512 - 1) / (kCores * 512) * 512;
    arguments.target_stride = arguments.bytes;
    const std::uint64_t span = arguments.bytes * kCores;
    arguments.target = runtime.allocate_on_socket(socket_of[reader], span);
    runtime.mark_payload(arguments.target, span);
    arguments.results = runtime.allocate(die, std::uint64_t{kCores} * CM384_P2P_RESULT_STRIDE);
    results.push_back(arguments.results);
    const std::uint64_t block = runtime.allocate(die, sizeof arguments);
    runtime.put(block, arguments);
    runtime.launch(die, program, block, runtime.first_cores(kCores), runtime.earliest_start());
  }
  runtime.wait();
  session.count(counts);
  BlockReads reads;
  if (context.interrupted != 0) return reads;
  const Clock clock(context.machine.die.clock);
  for (const std::uint64_t result : results) reads.latency_us.push_back(span_us(runtime, result, clock));
  reads.servers = static_cast<int>(readers_of.size());
  for (const auto& [socket, count] : readers_of)
    reads.most_at_a_server = std::max(reads.most_at_a_server, count);
  return reads;
}

double vpc_read_us(const Vpc& vpc, int readers_of_a_node, Bytes bytes) {
  const double rate = static_cast<double>(vpc.rate.bytes_per_second) * vpc.share / readers_of_a_node;
  return vpc.latency.us() + static_cast<double>(bytes.count) / rate * 1e6;
}

}  // namespace cm384::studies
