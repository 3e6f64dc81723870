// Kernels, whose blocks go to cores one after another, and copies, which go to the SDMA engine.
#include <algorithm>
#include <cstring>

#include "npu_core/devices/scheduler/task_scheduler.h"
#include "npu_core/scalar/program.h"

namespace cm384::npu {

bool TaskScheduler::start_kernel(std::uint32_t number) {
  Stream& stream = streams_[number];
  const auto& entry = stream.entry.u.kernel;
  const std::size_t cores = cores_.all();
  const auto refuse = [this, number] {
    done_at(number, socket_.now(), CM384_STATUS_NO_SUCH_KERNEL);
    return false;
  };
  if (entry.kernel >= kernels_.size()) return refuse();
  const Registered& registered = kernels_[entry.kernel];
  const bool missing = std::any_of(registered.cores.begin(), registered.cores.end(),
                                   [cores](std::uint16_t core) { return core >= cores; });
  const auto blocks = entry.blocks != 0 ? entry.blocks : static_cast<std::uint32_t>(registered.cores.size());
  if (missing || blocks == 0) return refuse();
  ++statistics_.kernels;
  Kernel& kernel = stream.kernel;
  kernel = Kernel{};
  kernel.graph = (stream.entry.flags & CM384_TASK_GRAPH) != 0;
  kernel.blocks = blocks;
  kernel.request = {registered.program, entry.arguments, registered.cores, registered.type,
                    registered.played};
  kernel.record.launch = stream.entry.number;
  if (registered.program) kernel.record.image = registered.program->shared_image();
  kernel.record.arguments = entry.arguments;
  kernel.record.blocks = blocks;
  return true;
}

// A kernel is set up. In a captured graph its task begins here, its stages before belong to nobody's time.
void TaskScheduler::dispatchable(std::uint32_t number) {
  Stream& stream = streams_[number];
  if (stream.kernel.graph) stream.record.turn = socket_.now();
  stream.kernel.record.task_start = stream.record.turn;
  dispatching_.push_back(number);
  arm_dispatch();
}

// Kernels have their blocks dispatched in the order in which they were set up.
void TaskScheduler::arm_dispatch() {
  if (dispatch_armed_ || dispatching_.empty()) return;
  dispatch_armed_ = true;
  socket_.schedule(std::max(socket_.now(), next_block_), kDispatch, 0);
}

// The first blocks have a core each, and a further one the first that is free; one of a group takes its three
// cores when all of them are.
std::uint32_t TaskScheduler::core_for(const Kernel& kernel) const {
  const auto& fixed = kernel.request.cores;
  const auto is_free = [this](std::uint16_t core) { return running_on_[core] == kFree; };
  const auto if_free = [&](std::uint16_t core) { return is_free(core) ? core : kFree; };
  if (fixed.empty()) {
    const auto end = running_on_.begin() + static_cast<std::ptrdiff_t>(cores_.count());
    const auto free = std::find(running_on_.begin(), end, kFree);
    return free == end ? kFree : static_cast<std::uint32_t>(free - running_on_.begin());
  }
  if (kernel.dispatched < fixed.size()) return if_free(fixed[kernel.dispatched]);
  const std::ptrdiff_t together = kernel.request.type == KernelType::mix ? 3 : 1;
  if (kernel.dispatched % static_cast<std::uint32_t>(together) != 0)
    return if_free(*std::next(std::find(fixed.begin(), fixed.end(), kernel.cores.back())));
  for (auto at = fixed.begin(); at != fixed.end(); at += together) {
    if (std::all_of(at, at + together, is_free)) return *at;
  }
  return kFree;
}

void TaskScheduler::dispatch() {
  const std::uint32_t number = dispatching_.front();
  Kernel& kernel = streams_[number].kernel;
  const std::uint32_t core = core_for(kernel);
  if (core == kFree) {
    ++statistics_.block_waits;
    return;  // the next core that becomes free comes back here
  }
  running_on_[core] = number;
  block_of_[core] = kernel.dispatched++;
  ++kernel.running;
  ++statistics_.blocks;
  kernel.cores.push_back(static_cast<std::uint16_t>(core));
  next_block_ = socket_.now() + parameters_.block_interval;
  const Time head = kernel.graph ? parameters_.graph_block_head : parameters_.block_head;
  socket_.schedule(socket_.now() + head, kBlockStart, core);
  if (kernel.dispatched == kernel.blocks) dispatching_.pop_front();
  arm_dispatch();
}

void TaskScheduler::block_ended(std::uint16_t core, Time retired, const std::array<Time, kPhases>& phases,
                                Time fetch_stall) {
  Kernel& kernel = kernel_on(core);
  LaunchRecord& record = kernel.record;
  record.last_retired = std::max(record.last_retired, retired);
  for (std::size_t p = 0; p < kPhases; ++p) record.phase_total[p] += phases[p];
  record.fetch_stall += fetch_stall;
  const Time tail = kernel.graph ? parameters_.graph_block_tail : parameters_.block_tail;
  socket_.schedule(std::max(socket_.now(), retired) + tail, kCoreFree, core);
}

void TaskScheduler::core_free(std::uint16_t core) {
  const std::uint32_t number = std::exchange(running_on_[core], kFree);
  Kernel& kernel = streams_[number].kernel;
  --kernel.running;
  if (kernel.running == 0 && kernel.dispatched == kernel.blocks)
    done_at(number, kernel.graph ? socket_.now() : socket_.now() + parameters_.kernel_teardown);
  arm_dispatch();
}

void TaskScheduler::kernel_completed(Stream& stream) {
  stream.kernel.record.task_end = socket_.now();
  cores_.kernel_finished(stream.kernel.record);
}

// Into the shortest of the scheduler's SDMA queues; where all are full the copy waits for the next end of
// one.
void TaskScheduler::hand_over(std::uint32_t number) {
  std::size_t queue = 0;
  const auto waiting = [this](std::size_t q) {
    return copies_.tail[q] - sdma_.ring(copies_.first + q).head();
  };
  for (std::size_t q = 1; q < copies_.tail.size(); ++q) {
    if (waiting(q) < waiting(queue)) queue = q;
  }
  const QueueRing& ring = sdma_.ring(copies_.first + queue);
  if (waiting(queue) >= ring.depth()) {
    copies_.waiting.push_back(number);
    return;
  }
  ++statistics_.copies;
  cm384_task entry = streams_[number].entry;
  entry.number = number;
  entry.flags = 0;
  std::byte bytes[CM384_QUEUE_ENTRY_BYTES];
  std::memcpy(bytes, &entry, sizeof bytes);
  const Time at = socket_.write(ring.entry_offset(copies_.tail[queue]++), bytes, sizeof bytes, 0, 0);
  socket_.schedule(at, kHandOver, queue);
}

void TaskScheduler::copy_ended(const SdmaRecord& record) {
  if (record.status != 0) {
    // An error's completion stands in the queue's ring; it is read at once.
    sdma_.completions_taken(record.queue, sdma_.ring(record.queue).completions());
  }
  const std::uint32_t number = record.number;
  streams_[number].record.copy = record;
  done_at(number, socket_.now(), record.status, record.fault);
  if (copies_.waiting.empty()) return;
  const std::uint32_t next = copies_.waiting.front();
  copies_.waiting.pop_front();
  hand_over(next);
}

}  // namespace cm384::npu
