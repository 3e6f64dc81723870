// The runtime's streams, events and copies: each call becomes one of the die's host thread.
#include <fmt/format.h>

#include "base/engine/peers.h"
#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/host/runtime.h"
#include "system/machine/ownership.h"

namespace cm384::host {
namespace {

const char* status_text(std::uint32_t status) {
  switch (status) {
    case CM384_STATUS_BAD_ENTRY:
      return "the entry is malformed";
    case CM384_STATUS_READ_FAULT:
      return "no memory to read";
    case CM384_STATUS_WRITE_FAULT:
      return "no memory to write";
    case CM384_STATUS_NO_SUCH_KERNEL:
      return "the kernel or its cores do not exist";
    default:
      return "an error";
  }
}

}  // namespace

void Runtime::call(int die, HostCall call) {
  HostThread& host = host_of(die);
  if (in_function_of_ >= 0 && in_function_of_ != die)
    throw std::logic_error(
        fmt::format("a function of die {}'s host thread made a call about die {}", in_function_of_, die));
  if (unfolding_ != nullptr) {
    if (die != unfolding_of_ || call.kind != HostCall::Kind::submit)
      throw std::logic_error(
          fmt::format("an AICPU of die {} submits tasks to that die's streams, no more", unfolding_of_));
    unfolding_->unfolded.push_back(std::move(call));
    return;
  }
  if (machine_.owners().has_die(die)) host.call(std::move(call), machine_.earliest());
}

void Runtime::share_tasks() {
  for (const int die : machine_.dies()) {
    HostThread& host = host_of(die);
    if (host.tasks() == 0) continue;  // in none of the processes
    host.replace_tasks(sim::peers().list_from(machine_.owners().of_die(die), std::span(host.all_tasks())));
  }
}

TaskHandle Runtime::submit(Stream stream, const cm384_task& entry) {
  HostCall made;
  made.stream = stream.number;
  made.task = host_of(stream.die).new_task();
  made.entry = entry;
  made.entry.flags |= CM384_TASK_WRITE_COMPLETION;
  const TaskHandle handle{stream.die, made.task};
  call(stream.die, std::move(made));
  return handle;
}

Stream Runtime::create_stream(int die) {
  npu::TaskScheduler& scheduler = machine_.die(die).scheduler();
  const auto depth = static_cast<std::uint32_t>(machine_.parameters().scheduler.queue_depth);
  const std::uint64_t bytes = std::uint64_t{depth} * CM384_QUEUE_ENTRY_BYTES;
  const std::uint64_t entries = cm384_gm_offset(allocate(die, bytes));
  const std::uint64_t completions = cm384_gm_offset(allocate(die, bytes));
  return {die, scheduler.create_stream(npu::QueueRing(entries, completions, depth))};
}

TaskHandle Runtime::submit_kernel(Stream stream, npu::LaunchRequest request, std::uint32_t blocks,
                                  std::uint32_t launch) {
  sim::peers().needs_one("kernels in streams");
  cm384_task entry{};
  entry.type = CM384_TASK_KERNEL;
  entry.number = launch;
  if (request.graph) entry.flags |= CM384_TASK_GRAPH;
  entry.u.kernel.arguments = request.arguments;
  entry.u.kernel.kernel = machine_.die(stream.die)
                              .scheduler()
                              .register_kernel(std::move(request.program), std::move(request.cores),
                                               request.type, std::move(request.played));
  entry.u.kernel.blocks = blocks;
  return submit(stream, entry);
}

TaskHandle Runtime::launch_kernel(Stream stream, const std::shared_ptr<npu::Program>& program,
                                  std::uint64_t arguments, std::vector<std::uint16_t> cores) {
  npu::Die& die = machine_.die(stream.die);
  die.cluster().check(cores);
  return submit_kernel(stream, {program, arguments, std::move(cores)}, 0, die.new_launch());
}

TaskHandle Runtime::launch_kernel(Stream stream, const std::shared_ptr<npu::Program>& program,
                                  std::uint64_t arguments, std::uint32_t blocks) {
  if (blocks == 0) throw InputError(fmt::format("launch on die {}: no blocks", stream.die));
  return submit_kernel(stream, {program, arguments, {}}, blocks, machine_.die(stream.die).new_launch());
}

// In another supernode.
bool Runtime::elsewhere(int die, std::uint64_t address) const {
  const hw::Topology& topology = machine_.parameters().topology;
  if (topology.supernodes == 1 || cm384_gm_via_rdma(address)) return false;
  const auto unit = static_cast<int>(cm384_gm_unit(address));
  const int there =
      cm384_gm_is_cpu(address) ? unit / topology.one_supernode().sockets() : topology.supernode_of(unit);
  return there != topology.supernode_of(die);
}

std::uint64_t Runtime::reached_from(int die, std::uint64_t address) const {
  return elsewhere(die, address) ? by_plane(die, address, Plane::rdma) : address;
}

std::uint64_t Runtime::by_plane(int die, std::uint64_t address, Plane plane) const {
  if (plane == Plane::unified_bus) {
    if (elsewhere(die, address))
      throw InputError(
          fmt::format("copy on die {}: the Unified Bus does not reach {} {}, which is in another "
                      "supernode; allowed: the RDMA plane, to dies",
                      die, cm384_gm_is_cpu(address) ? "CPU socket" : "die", cm384_gm_unit(address)));
    return address;
  }
  machine_.rdma_interface(die);  // takes part
  if (cm384_gm_is_cpu(address))
    throw InputError(fmt::format("copy on die {}: the RDMA plane does not reach CPU sockets", die));
  return cm384_gm_unit(address) == static_cast<std::uint64_t>(die) ? address
                                                                   : address | CM384_GM_VIA_RDMA_BIT;
}

TaskHandle Runtime::memcpy_async(Stream stream, std::uint64_t destination, std::uint64_t source,
                                 std::uint64_t bytes, Plane plane) {
  if (bytes == 0 || bytes > UINT32_MAX)
    throw InputError(fmt::format("copy on die {}: {} B; allowed: 1 B to 4 GiB less 1 B", stream.die, bytes));
  cm384_task entry{};
  entry.type = CM384_TASK_SDMA;
  entry.operation = CM384_SDMA_COPY;
  entry.u.copy.source = by_plane(stream.die, source, plane);
  entry.u.copy.destination = by_plane(stream.die, destination, plane);
  entry.u.copy.bytes = static_cast<std::uint32_t>(bytes);
  return submit(stream, entry);
}

void unfold_on_device(Runtime& runtime, int die, const std::function<void()>& calls) {
  HostCall made;
  made.kind = HostCall::Kind::unfold;
  runtime.unfolding_ = &made;
  runtime.unfolding_of_ = die;
  calls();
  runtime.unfolding_ = nullptr;
  runtime.call(die, std::move(made));
}

Event Runtime::create_event(int die) {
  events_.push_back({allocate(die, 64, 64), 0});
  return {die, events_.size() - 1};
}

TaskHandle Runtime::record_event(Stream stream, Event event) {
  EventState& state = events_[event.number];
  cm384_task entry{};
  entry.type = CM384_TASK_EVENT_RECORD;
  entry.u.word = {state.address, ++state.records};
  return submit(stream, entry);
}

TaskHandle Runtime::stream_wait_event(Stream stream, Event event) {
  if (stream.die != event.die)
    throw InputError(
        fmt::format("stream of die {} waits for an event of die {}: make the event for the die "
                    "that waits, any die may record it",
                    stream.die, event.die));
  cm384_task entry{};
  entry.type = CM384_TASK_EVENT_WAIT;
  entry.u.word = {events_[event.number].address, events_[event.number].records};
  return submit(stream, entry);
}

Notify Runtime::create_notify(int die) {
  return {die, allocate(die, 64, 64)};
}

TaskHandle Runtime::record_notify(Stream stream, Notify notify, std::uint32_t count) {
  cm384_task entry{};
  entry.type = CM384_TASK_NOTIFY_RECORD;
  entry.u.word = {notify.address, count};
  return submit(stream, entry);
}

TaskHandle Runtime::wait_notify(Stream stream, Notify notify, std::uint32_t count) {
  if (stream.die != notify.die)
    throw InputError(fmt::format("stream of die {} waits for a notify of die {}", stream.die, notify.die));
  cm384_task entry{};
  entry.type = CM384_TASK_NOTIFY_WAIT;
  entry.u.word = {notify.address, count};
  return submit(stream, entry);
}

void Runtime::synchronize_stream(Stream stream) {
  HostCall made;
  made.kind = HostCall::Kind::synchronize;
  made.stream = stream.number;
  call(stream.die, std::move(made));
}

void Runtime::synchronize_device(int die) {
  HostCall made;
  made.kind = HostCall::Kind::synchronize;
  call(die, std::move(made));
}

void Runtime::host_barrier(const std::vector<int>& dies) {
  if (dies.empty()) return;
  machine_.need_order("host threads that meet", supernode::Supernode::OrderOf::process);
  const auto met = std::make_shared<HostBarrier>();
  met->expected = dies.size();
  for (const int die : dies) met->threads.push_back(&host_of(die));
  met->threads.front()->count(met);
  for (const int die : dies) {
    HostCall made;
    made.kind = HostCall::Kind::barrier;
    made.met = met;
    call(die, std::move(made));
  }
}

void Runtime::host_compute(int die, Time time) {
  HostCall made;
  made.kind = HostCall::Kind::compute;
  made.time = time;
  call(die, std::move(made));
}

void Runtime::host_function(int die, std::function<void()> function) {
  // Functions of several dies may share what they look at.
  machine_.need_order("functions of host threads", supernode::Supernode::OrderOf::process);
  HostCall made;
  made.kind = HostCall::Kind::function;
  made.function = [this, die, function = std::move(function)] {
    in_function_of_ = die;
    function();
    in_function_of_ = -1;
  };
  call(die, std::move(made));
}

std::uint64_t Runtime::create_sdma_queue(int die, std::uint16_t core, std::uint32_t depth) {
  npu::Die& d = machine_.die(die);
  const int cores = machine_.parameters().die.aiv;  // a die of another process has none here
  if (core >= cores)
    throw InputError(
        fmt::format("SDMA queue of die {}: core {} does not exist; allowed: 0 to {}", die, core, cores - 1));
  cm384_queue queue{};
  queue.depth = depth;
  const std::uint64_t bytes = std::uint64_t{queue.depth} * CM384_QUEUE_ENTRY_BYTES;
  queue.entries = allocate(die, bytes);
  queue.completions = allocate(die, bytes);
  queue.doorbell = d.devices().doorbell(core);
  const npu::QueueRing ring(cm384_gm_offset(queue.entries), cm384_gm_offset(queue.completions), queue.depth);
  if (machine_.owners().has_die(die)) d.devices().sdma().set_up(core, ring);
  const std::uint64_t address = allocate(die, sizeof queue);
  put(address, queue);
  return address;
}

void Runtime::report_errors() const {
  for (const int die : machine_.dies()) {
    const HostThread& host = host_of(die);
    for (std::size_t n = 0; n < host.tasks(); ++n) {
      const HostTask& task = host.task(n);
      if (!task.finished || task.record.status == CM384_STATUS_DONE) continue;
      throw MachineError(fmt::format(
          "die {}, stream {}: task {} of the host (type {}) ended with an error: {} "
          "at {:#x}",
          die, task.record.stream, n, task.record.type, status_text(task.record.status), task.record.fault));
    }
  }
}

}  // namespace cm384::host
