#include "testbenches/studies/p2p.h"

#include <algorithm>

#include "firmware/abi/memory_map.h"
#include "firmware/abi/p2p.h"
#include "sim/error.h"
#include "testbenches/studies/options.h"
#include "testbenches/studies/session.h"
#include "testbenches/studies/studies.h"
#include "ub_fabric/controller.h"

namespace cm384::studies {
namespace {

constexpr std::uint32_t kWarmup = 4;  // instructions: translations and instruction cache get warm
constexpr std::uint32_t kSamples = 16;
constexpr std::uint32_t kChunk = 16 * 1024;
constexpr std::uint32_t kBuffers = 8;

// Where the initiator, die 0, finds its counterpart.
struct Counterpart {
  std::vector<int> dies{0};
  std::vector<int> sockets;
};

Counterpart find_counterpart(const P2pPoint& point, const hw::Topology& topology) {
  Counterpart found;
  const bool inter = point.distance == "inter-node";
  if (inter && topology.nodes < 2)
    throw InputError("run p2p: --distance inter-node needs a machine of at least two nodes");
  if (point.target == "cpu") {
    if (topology.sockets_per_node == 0)
      throw InputError("run p2p: --target cpu needs a machine with CPU sockets");
    found.sockets.push_back(inter ? topology.sockets_per_node : 0);
  } else if (point.target == "sibling-die") {
    found.dies.push_back(1);
  } else {
    found.dies.push_back(inter ? topology.dies_per_node : 2);
  }
  return found;
}

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
  measured.last_request = last_request.at();
  for (int core = 0; core < cores; ++core) {
    measured.results.push_back(
        runtime
            .get<cm384_p2p_result>(
                arguments.results + static_cast<std::uint64_t>(core) * CM384_P2P_RESULT_STRIDE, 1)
            .front());
  }
  return measured;
}

}  // namespace

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

  const Measured many = run_kernel(context, point, point.cores,
                                   static_cast<std::uint64_t>(point.volume.count), kChunk, kBuffers, counts);
  std::uint64_t start = UINT64_MAX, end = 0;
  for (const auto& result : many.results) {
    start = std::min(start, result.start_cycle);
    end = std::max(end, result.end_cycle);
  }
  if (end > start) {
    const Time span =
        clock.start(static_cast<std::int64_t>(end)) - clock.start(static_cast<std::int64_t>(start));
    reading.bandwidth_GBps = static_cast<double>(point.volume.count) * point.cores / (span.us() * 1e3);
  }
  return reading;
}

namespace {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("path", choice_option("aiv-direct", {"aiv-direct", "sdma"}), "how the die sends")(
      "op", choices_option("read,write", {"read", "write", "atomic"}), "operations, one row each")(
      "target", choices_option("npu,cpu", {"npu", "cpu", "sibling-die"}), "what is read or written")(
      "distance", choices_option("intra-node,inter-node", {"intra-node", "inter-node"}),
      "where the target is")("bytes", size_option(512_B),
                             "bytes of the one instruction whose latency is measured; at most 184 KiB")(
      "cores", integer_option(48, 1, 64), "AIVs that move data together, for bandwidth")(
      "volume", size_option(16_MiB), "bytes each of them moves; 0B: measure no bandwidth");
  add_fault_option(options);
}

StudyResult run(const StudyContext& context) {
  if (context.option<std::string>("path") == "sdma")
    throw InputError("run p2p: --path sdma is not built yet; allowed: aiv-direct");
  P2pPoint point;
  point.bytes = context.option<Bytes>("bytes");
  point.cores = context.option<int>("cores");
  point.volume = context.option<Bytes>("volume");
  if (point.bytes.count < 4 || point.bytes.count % 4 != 0 || point.bytes.count > CM384_P2P_BUFFER_BYTES)
    throw InputError(
        fmt::format("run p2p: --bytes {}: allowed: 4 B to 184 KiB, a multiple of 4 B", point.bytes.count));
  if (point.volume.count % kChunk != 0)
    throw InputError(fmt::format("run p2p: --volume {}: allowed: multiples of 16 KiB", point.volume.count));

  StudyResult result;
  std::vector<P2pPoint> points;
  for (const auto& target : context.option<Names>("target").values) {
    for (const auto& operation : context.option<Names>("op").values) {
      for (const auto& distance : context.option<Names>("distance").values) {
        if (target == "sibling-die" && distance == "inter-node") continue;
        point.target = target;
        point.operation = operation;
        point.distance = distance;
        points.push_back(point);
      }
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const P2pReading reading = measure_p2p(context, points[i], result.simulator);
    if (context.interrupted != 0) {
      result.complete = false;
      break;
    }
    Json row;
    row["op"] = points[i].operation;
    row["path"] = "aiv-direct";
    row["target"] = points[i].target;
    row["distance"] = points[i].distance;
    row["bytes"] = points[i].bytes.count;
    row["latency_us"] = reading.latency_us;
    row["startup_us"] = points[i].target == "sibling-die" ? Json() : Json(reading.startup_us);
    row["bandwidth_GBps"] = points[i].volume.count == 0 ? Json() : Json(reading.bandwidth_GBps);
    result.rows.push_back(row);
    context.progress.update(static_cast<double>(i + 1) / static_cast<double>(points.size()),
                            result.simulator.simulated, result.simulator.events);
  }
  return result;
}

}  // namespace

const Study kP2pStudy{"p2p", "latency, start-up and bandwidth between two memories", add_options, run};

}  // namespace cm384::studies
