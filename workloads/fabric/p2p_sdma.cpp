#include "workloads/fabric/p2p_sdma.h"

#include <fmt/format.h>

#include <utility>

#include "firmware/abi/memory_map.h"
#include "firmware/abi/sdma.h"
#include "ub_fabric/controller.h"
#include "workloads/frame/session.h"

namespace cm384::studies {
namespace {

// The first request by any port since wait() was called.
class FirstRequest final : public ub::LinkObserver {
 public:
  void sent(ub::Hop, Time start, Time, int) override { sent(start); }
  void sent(Time start) {
    if (start >= from_ && (at_ == Time{} || start < at_)) at_ = start;
  }
  void wait(Time from) {
    from_ = from;
    at_ = Time{};
  }
  Time at() const { return at_; }

 private:
  Time from_ = Time::never(), at_;
};

std::vector<Stage> stages_of(const host::HostTask& task, Time port, const hw::Host& host) {
  const npu::TaskRecord& r = task.record;
  const npu::SdmaRecord& copy = r.copy;
  std::vector<Stage> stages;
  Time last = task.called;
  const auto until = [&](const char* name, Time at) {
    stages.push_back({name, (at - last).us()});
    last = at;
  };
  until("host_submit", task.called + host.submit_latency);
  until("host_doorbell", task.arrived);
  until("entry_write", r.turn);
  until("entry_fetch", r.fetched);
  until("entry_decode", r.decoded);
  until("hand_over", copy.rung);
  until("channel_wait", copy.taken);
  until("descriptor_fetch", copy.fetched);
  until("translation", copy.translated);
  if (port != Time{}) until("to_port", port);
  until("copy", copy.last_ack);
  until("completion", r.completed);
  until("host_seen", task.seen);
  return stages;
}

void observe_ports(Session& session, FirstRequest& first) {
  if (session.machine().has_rdma())
    session.machine().rdma_interface(0).request_sent.attach(
        &first, [](void* self, Time at) { static_cast<FirstRequest*>(self)->sent(at); });
  ub::LinkBank& ports = session.machine().controller(0).ports();
  const int count = session.machine().parameters().topology.sub_planes;
  for (unsigned port = 0; port < static_cast<unsigned>(count); ++port) ports.attach_observer(port, &first);
}

// Descriptors of a core's rounds; the first request is that of the round after the first flag.
struct CoreCopies {
  FirstRequest first;
  std::vector<npu::SdmaRecord> records;
  bool warm = false;

  void ended(const npu::SdmaRecord& record) {
    records.push_back(record);
    if (record.bytes != sizeof(std::uint64_t) || std::exchange(warm, true)) return;
    first.wait(record.ended);
  }
};

SessionOptions session_options(const P2pPoint& point, const Counterpart& counterpart, const char* submitter) {
  SessionOptions options;
  options.dies = counterpart.dies;
  options.sockets = counterpart.sockets;
  options.rdma = point.rdma;
  options.what = fmt::format("p2p {} by {}, {} {} {}, {} B", point.rdma ? "rdma" : "sdma", submitter,
                             point.operation, point.target, point.distance, point.bytes.count);
  return options;
}

}  // namespace

Ends allocate_ends(host::Runtime& runtime, const P2pPoint& point, const Counterpart& counterpart) {
  const auto bytes = static_cast<std::uint64_t>(point.bytes.count);
  const std::uint64_t own = runtime.allocate(0, bytes);
  std::uint64_t other = counterpart.sockets.empty()
                            ? runtime.allocate(counterpart.dies.back(), bytes)
                            : runtime.allocate_on_socket(counterpart.sockets.front(), bytes);
  // Values play no part here, and need not be kept.
  runtime.mark_payload(point.operation == "read" ? other : own, bytes);
  if (point.rdma) other |= CM384_GM_VIA_RDMA_BIT;
  return point.operation == "read" ? Ends{other, own} : Ends{own, other};
}

SdmaReading measure_sdma(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts) {
  const Counterpart counterpart = find_counterpart(point, context.machine.topology);
  Session session(context, session_options(point, counterpart, "host"));
  auto& runtime = session.runtime();
  const auto bytes = static_cast<std::uint64_t>(point.bytes.count);
  const auto [source, destination] = allocate_ends(runtime, point, counterpart);
  FirstRequest first;
  observe_ports(session, first);
  const host::Plane plane = point.rdma ? host::Plane::rdma : host::Plane::unified_bus;
  const host::Stream stream = runtime.create_stream(0);
  runtime.memcpy_async(stream, destination, source, std::min<std::uint64_t>(bytes, 64 * 1024), plane);
  runtime.synchronize_stream(stream);
  runtime.host_function(0, [&] { first.wait(session.machine().die(0).now()); });
  const host::TaskHandle copy = runtime.memcpy_async(stream, destination, source, bytes, plane);
  runtime.synchronize_stream(stream);
  SdmaReading reading;
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return reading;
  const host::HostTask& task = runtime.task(copy);
  reading.latency_us = (task.seen - task.called).us();
  const Time port = of_die(session.machine().owners(), 0, first.at());
  if (port != Time{}) reading.startup_us = (port - task.called).us();
  reading.bandwidth_GBps =
      static_cast<double>(bytes) / ((task.record.copy.last_ack - task.record.copy.translated).us() * 1e3);
  reading.stages = stages_of(task, port, context.machine.host);
  return reading;
}

SdmaReading measure_core_sdma(const StudyContext& context, const P2pPoint& point, bool prefetch,
                              SimulatorCounts& counts) {
  const Counterpart counterpart = find_counterpart(point, context.machine.topology);
  Session session(context, session_options(point, counterpart, "core"));
  auto& runtime = session.runtime();
  const auto [source, destination] = allocate_ends(runtime, point, counterpart);
  cm384_sdma_run arguments{};
  arguments.queue = runtime.create_sdma_queue(0, 0);
  arguments.source = source;
  arguments.destination = destination;
  arguments.bytes = static_cast<std::uint64_t>(point.bytes.count);
  arguments.entry_bytes = 1 << 20;
  arguments.operation = CM384_SDMA_COPY;
  arguments.warmup = 1;
  if (prefetch) {
    // Of other memory each time: what is in L2 already needs none.
    arguments.operation = CM384_SDMA_PREFETCH;
    arguments.source = runtime.allocate(0, 2 * arguments.bytes);
    arguments.source_stride = arguments.bytes;
    runtime.mark_payload(arguments.source, 2 * arguments.bytes);
  }
  arguments.arena = runtime.allocate(0, 64);
  arguments.flag = runtime.allocate(0, 64);
  arguments.result = runtime.allocate(0, 64);
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);
  CoreCopies copies;
  observe_ports(session, copies.first);
  session.machine().die(0).devices().sdma().ended.attach(
      &copies,
      [](void* self, const npu::SdmaRecord& record) { static_cast<CoreCopies*>(self)->ended(record); });
  runtime.launch(0, session.built_in("sdma"), block, runtime.first_cores(1), runtime.earliest_start());
  SdmaReading reading;
  const bool finished = runtime.wait();
  session.count(counts);
  if (!finished) return reading;
  const auto result = runtime.get<cm384_sdma_result>(arguments.result, 1).front();
  const Clock clock(context.machine.die.clock);
  const Time start = clock.start(static_cast<std::int64_t>(result.start_cycle));
  reading.latency_us = (clock.start(static_cast<std::int64_t>(result.end_cycle)) - start).us();
  const Time port = of_die(session.machine().owners(), 0, copies.first.at());
  if (port != Time{}) reading.startup_us = (port - start).us();
  const std::vector<npu::SdmaRecord> records =
      sim::peers().list_from(session.machine().owners().of_die(0), std::span(std::as_const(copies.records)));
  const std::size_t entries = records.size() / (arguments.warmup + std::size_t{1}) - 1;
  const npu::SdmaRecord& begun = records[records.size() - 1 - entries];
  const npu::SdmaRecord& ended = records[records.size() - 2];
  reading.bandwidth_GBps =
      static_cast<double>(arguments.bytes) / ((ended.last_ack - begun.translated).us() * 1e3);
  return reading;
}

}  // namespace cm384::studies
