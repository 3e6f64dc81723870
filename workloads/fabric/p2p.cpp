#include "workloads/fabric/p2p.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "firmware/abi/p2p.h"
#include "ub_fabric/controller.h"
#include "workloads/frame/session.h"

namespace cm384::studies {
namespace {

constexpr std::uint32_t kWarmup = 4;  // instructions: translations and instruction cache get warm
constexpr std::uint32_t kSamples = 16;
constexpr std::uint32_t kCopyChunk = 16 * 1024;
constexpr std::uint32_t kCopyBuffers = 8;

// Remembers when the last request left by any port.
class LastRequest final : public ub::LinkObserver {
 public:
  void sent(ub::Hop, Time start, Time, int) override { at_ = start; }
  Time at() const { return at_; }

 private:
  Time at_;
};

struct Measured {
  std::vector<cm384_p2p_result> results;
  Time last_request;
};

Measured run_kernel(const StudyContext& context, const P2pPoint& point, int cores, std::uint64_t bytes,
                    std::uint32_t chunk, std::uint32_t buffers, SimulatorCounts& counts) {
  const Counterpart counterpart = find_counterpart(point, context.machine.topology);
  SessionOptions options;
  options.dies = counterpart.dies;
  options.sockets = counterpart.sockets;
  options.what = fmt::format("p2p {} {} {}, {} cores, {} B each, in {} B", point.operation, point.target,
                             point.distance, cores, bytes, chunk);
  Session session(context, options);
  auto& runtime = session.runtime();

  cm384_p2p arguments{};
  arguments.mode = point.operation == "read"    ? CM384_P2P_READ
                   : point.operation == "write" ? CM384_P2P_WRITE
                                                : CM384_P2P_ATOMIC;
  arguments.buffers = buffers;
  arguments.chunk_bytes = chunk;
  arguments.pattern = 1;
  arguments.warmup = kWarmup;
  arguments.bytes = bytes;
  arguments.target_stride = (bytes + 511) / 512 * 512;
  const std::uint64_t span = arguments.target_stride * static_cast<std::uint64_t>(cores);
  arguments.target = counterpart.sockets.empty()
                         ? runtime.allocate(counterpart.dies.back(), span)
                         : runtime.allocate_on_socket(counterpart.sockets.front(), span);
  // What is read is tensor payload: its values play no part here, and 800 MB need not be kept.
  runtime.mark_payload(arguments.target, span);
  arguments.results = runtime.allocate(0, static_cast<std::uint64_t>(cores) * CM384_P2P_RESULT_STRIDE);
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);

  LastRequest last_request;
  if (buffers == 1) {
    auto& ports = session.machine().controller(0).ports();
    for (unsigned port = 0; port < static_cast<unsigned>(context.machine.topology.sub_planes); ++port)
      ports.attach_observer(port, &last_request);
  }
  runtime.launch(0, session.built_in("p2p"), block, runtime.first_cores(cores), runtime.earliest_start());
  runtime.wait();
  session.count(counts);
  Measured measured;
  measured.last_request = of_die(session.machine().owners(), 0, last_request.at());
  for (int core = 0; core < cores; ++core) {
    measured.results.push_back(
        runtime
            .get<cm384_p2p_result>(
                arguments.results + static_cast<std::uint64_t>(core) * CM384_P2P_RESULT_STRIDE, 1)
            .front());
  }
  return measured;
}

// From the first core's start to the last one's end; 0 where the run was interrupted.
Time span_of(const Measured& measured, const Clock& clock) {
  std::uint64_t start = UINT64_MAX, end = 0;
  for (const auto& result : measured.results) {
    start = std::min(start, result.start_cycle);
    end = std::max(end, result.end_cycle);
  }
  if (end <= start) return {};
  return clock.start(static_cast<std::int64_t>(end)) - clock.start(static_cast<std::int64_t>(start));
}

}  // namespace

Counterpart find_counterpart(const P2pPoint& point, const hw::Topology& topology) {
  Counterpart found;
  if (point.distance == "inter-supernode") {  // at the same place
    if (topology.supernodes < 2)
      throw InputError("run p2p: --distance inter-supernode needs --supernodes 2 or more");
    found.dies.push_back(topology.one_supernode().dies());
    return found;
  }
  const bool inter = point.distance == "inter-node";
  if (inter && topology.nodes < 2)
    throw InputError("run p2p: --distance inter-node needs a machine of at least two nodes");
  if (point.target == "cpu") {
    if (topology.sockets_per_node == 0)
      throw InputError("run p2p: --target cpu needs a machine with CPU sockets");
    found.sockets.push_back(inter ? topology.sockets_per_node : 0);
  } else if (point.target == "sibling-die") {
    if (topology.dies_per_package < 2)
      throw InputError("run p2p: --target sibling-die needs a machine with at least two dies per package");
    found.dies.push_back(1);
  } else {
    if (!inter && topology.dies_per_node <= topology.dies_per_package)
      throw InputError("run p2p: --distance intra-node needs a machine with at least two packages per node");
    found.dies.push_back(inter ? topology.dies_per_node : topology.dies_per_package);
  }
  return found;
}

P2pReading measure_p2p(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts) {
  const Clock clock(context.machine.die.clock);
  P2pReading reading;
  const auto chunk = static_cast<std::uint32_t>(point.bytes.count);
  const Measured one =
      run_kernel(context, point, 1, std::uint64_t{chunk} * (kWarmup + kSamples), chunk, 1, counts);
  const cm384_p2p_result& r = one.results.front();
  if (context.interrupted != 0 || r.samples == 0) return reading;
  const double cycle_us = clock.start(1'000'000).us() * 1e-6;
  reading.latency_us = static_cast<double>(r.sum_cycles) / static_cast<double>(r.samples) * cycle_us;
  if (point.target != "sibling-die")
    reading.startup_us = (one.last_request - clock.start(static_cast<std::int64_t>(r.last_issue_cycle))).us();
  if (point.volume.count == 0) return reading;

  const Measured many =
      run_kernel(context, point, point.cores, static_cast<std::uint64_t>(point.volume.count), kCopyChunk,
                 kCopyBuffers, counts);
  const Time span = span_of(many, clock);
  if (span > Time{})
    reading.bandwidth_GBps = static_cast<double>(point.volume.count) * point.cores / (span.us() * 1e3);
  return reading;
}

P2pShares shares_of(const P2pPoint& point) {
  const auto bytes = static_cast<std::uint64_t>(point.bytes.count);
  const std::uint64_t each = (bytes + static_cast<std::uint64_t>(point.cores) * 512 - 1) /
                             (static_cast<std::uint64_t>(point.cores) * 512) * 512;
  return {static_cast<int>((bytes + each - 1) / each), std::min(each, bytes)};
}

double measure_shared_p2p(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts) {
  const auto [cores, share] = shares_of(point);
  const auto chunk = static_cast<std::uint32_t>(std::min<std::uint64_t>(kCopyChunk, (share + 31) / 32 * 32));
  const Measured measured = run_kernel(context, point, cores, share, chunk, kCopyBuffers, counts);
  return span_of(measured, Clock(context.machine.die.clock)).us();
}

}  // namespace cm384::studies
