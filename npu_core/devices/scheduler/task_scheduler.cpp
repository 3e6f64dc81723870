// Streams and their entries; blocks.cpp has kernels and copies, words.cpp events and notifies.
#include "npu_core/devices/scheduler/task_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "firmware/abi/memory_map.h"

namespace cm384::npu {

TaskScheduler::TaskScheduler(const hw::Scheduler& parameters, DeviceSocket& socket, CoreArray& cores,
                             SdmaEngine& sdma, std::size_t sdma_first)
    : parameters_(parameters),
      socket_(socket),
      cores_(cores),
      sdma_(sdma),
      running_on_(cores.all(), kFree),
      block_of_(cores.all(), 0) {
  const std::vector<std::uint32_t> none(sdma.queues() - sdma_first, 0);
  copies_ = {sdma_first, none, none, {}};
  sdma_.set_client(*this, sdma_first);
}

std::uint32_t TaskScheduler::create_stream(const QueueRing& ring) {
  streams_.emplace_back();
  streams_.back().ring = ring;
  const auto number = static_cast<std::uint32_t>(streams_.size() - 1);
  cores_.stream_made(number, ring);
  return number;
}

std::uint32_t TaskScheduler::register_kernel(std::shared_ptr<Program> program,
                                             std::vector<std::uint16_t> cores, KernelType type,
                                             std::shared_ptr<const PlayedLaunch> played) {
  for (std::size_t n = 0; n < kernels_.size(); ++n) {
    const Registered& k = kernels_[n];
    if (k.program == program && k.cores == cores && k.type == type && k.played == played)
      return static_cast<std::uint32_t>(n);
  }
  kernels_.push_back({std::move(program), std::move(cores), type, std::move(played)});
  const auto number = static_cast<std::uint32_t>(kernels_.size() - 1);
  cores_.kernel_registered(number, {nullptr, 0, kernels_.back().cores, type});
  return number;
}

void TaskScheduler::notify_all() const {
  for (std::size_t n = 0; n < streams_.size(); ++n)
    cores_.stream_made(static_cast<std::uint32_t>(n), streams_[n].ring);
  for (std::size_t n = 0; n < kernels_.size(); ++n)
    cores_.kernel_registered(static_cast<std::uint32_t>(n),
                             {nullptr, 0, kernels_[n].cores, kernels_[n].type});
}

void TaskScheduler::submit(std::uint32_t stream, const cm384_task& task) {
  streams_[stream].waiting_for_room.push_back(task);
  post(stream);
}

void TaskScheduler::submit_at(std::uint32_t stream, const cm384_task& task, Time at) {
  submissions_.push_back({stream, task});
  socket_.schedule(at, kSubmit, first_submission_ + submissions_.size() - 1);
}

std::size_t TaskScheduler::pending(std::uint32_t stream) const {
  const Stream& s = streams_[stream];
  return s.waiting_for_room.size() + (s.posted - s.ring.head());
}

// Writes entries into the ring while there is room; each one's doorbell follows its write.
void TaskScheduler::post(std::uint32_t number) {
  Stream& stream = streams_[number];
  while (!stream.waiting_for_room.empty() && stream.posted - stream.ring.head() < stream.ring.depth()) {
    std::byte bytes[CM384_QUEUE_ENTRY_BYTES];
    std::memcpy(bytes, &stream.waiting_for_room.front(), sizeof bytes);
    stream.waiting_for_room.pop_front();
    const Time at = socket_.write(stream.ring.entry_offset(stream.posted++), bytes, sizeof bytes, 0, 0);
    socket_.schedule(at, kPosted, number);
  }
}

void TaskScheduler::completions_taken(std::uint32_t number, std::uint32_t count) {
  Stream& stream = streams_[number];
  if (stream.ring.taken(count) && stream.state == State::stalled) complete(number);
}

void TaskScheduler::handle(std::uint32_t what, std::uint64_t argument) {
  const auto number = static_cast<std::uint32_t>(argument);
  switch (static_cast<What>(what)) {
    case kSubmit: {
      // Times of submission need not follow the order of the calls.
      Submission& s = submissions_[argument - first_submission_];
      submit(s.stream, s.task);
      s.stream = kFree;
      while (!submissions_.empty() && submissions_.front().stream == kFree) {
        submissions_.pop_front();
        ++first_submission_;
      }
      return;
    }
    case kPosted:
      streams_[number].ring.ring(streams_[number].ring.tail() + 1);
      look_ahead(number);
      return make_ready(number);
    case kFetched: {
      Stream& stream = streams_[number];
      stream.record.fetched = socket_.now();
      const Time at = std::max(socket_.now(), next_decode_);
      next_decode_ = at + parameters_.entry_interval;
      socket_.schedule(at + parameters_.entry_latency, kDecoded, number);
      return;
    }
    case kDecoded:
      return decoded(number);
    case kDispatchable:
      return dispatchable(number);
    case kDispatch:
      dispatch_armed_ = false;
      return dispatch();
    case kBlockStart: {
      const auto core = static_cast<std::uint16_t>(argument);
      Kernel& kernel = streams_[running_on_[core]].kernel;
      ++kernel.begun;
      if (block_of_[core] == 0) {
        kernel.record.first_instruction = socket_.now();
        cores_.kernel_started(kernel.record);
      }
      return cores_.start_block(
          {core, kernel.record.launch, block_of_[core], kernel.blocks, kernel.request.arguments,
           kernel.request.program, kernel.request.type, kernel.request.played,
           kernel.graph ? static_cast<std::uint64_t>(parameters_.graph_preload.count) : 0});
    }
    case kCoreFree:
      return core_free(static_cast<std::uint16_t>(argument));
    case kHandOver:
      return sdma_.doorbell(copies_.first + argument, ++copies_.rung[argument]);
    case kRead:
      return word_read(number);
    case kDone:
      streams_[number].record.done = socket_.now();
      streams_[number].state = State::completing;
      return socket_.schedule(socket_.now() + parameters_.completion_latency, kCompleted, number);
    case kCompleted:
      return complete(number);
    case kAheadFetched:
    case kAheadDecoded:
    case kAheadReady:
      return handle_ahead(number, what);
  }
}

// A stream with an entry at its head and nothing under way gets in line for a slot.
void TaskScheduler::make_ready(std::uint32_t number) {
  Stream& stream = streams_[number];
  if (stream.state != State::idle || stream.ring.empty()) return;
  stream.state = State::ready;
  stream.record = TaskRecord{};
  stream.record.stream = number;
  stream.record.turn = socket_.now();
  ready_.push_back(number);
  if (under_way_ >= parameters_.slots) ++statistics_.slot_waits;
  fetch_ready();
}

void TaskScheduler::fetch_ready() {
  while (!ready_.empty() && under_way_ < parameters_.slots) {
    const std::uint32_t number = ready_.front();
    ready_.pop_front();
    Stream& stream = streams_[number];
    ++under_way_;
    stream.holds_slot = true;
    stream.state = State::fetching;
    socket_.schedule(stream.ring.fetch(socket_, stream.entry, stream.plain), kFetched, number);
  }
}

void TaskScheduler::decoded(std::uint32_t number) {
  Stream& stream = streams_[number];
  stream.state = State::working;
  stream.record.decoded = socket_.now();
  stream.record.type = stream.entry.type;
  stream.record.number = stream.entry.number;
  ++statistics_.tasks;
  socket_.progressed();
  cores_.task_decoded(stream.record);
  const unsigned type = stream.plain ? stream.entry.type : unsigned{CM384_TASK_NONE};
  switch (type) {
    case CM384_TASK_KERNEL:
      if (start_kernel(number))
        socket_.schedule(socket_.now() + parameters_.kernel_setup, kDispatchable, number);
      return look_ahead(number);
    case CM384_TASK_SDMA:
      return hand_over(number);
    case CM384_TASK_EVENT_RECORD:
    case CM384_TASK_NOTIFY_RECORD:
      return record_word(number);
    case CM384_TASK_EVENT_WAIT:
    case CM384_TASK_NOTIFY_WAIT:
      return wait_word(number);
    default:
      return done_at(number, socket_.now(), CM384_STATUS_BAD_ENTRY);
  }
}

void TaskScheduler::done_at(std::uint32_t number, Time at, std::uint32_t status, std::uint64_t fault) {
  Stream& stream = streams_[number];
  stream.record.status = status;
  stream.record.fault = fault;
  socket_.schedule(at, kDone, number);
}

void TaskScheduler::release_slot(Stream& stream) {
  if (!std::exchange(stream.holds_slot, false)) return;
  --under_way_;
  fetch_ready();
}

void TaskScheduler::complete(std::uint32_t number) {
  Stream& stream = streams_[number];
  const bool told = (stream.entry.flags & CM384_TASK_WRITE_COMPLETION) != 0 || stream.record.status != 0;
  if (told && stream.ring.completions_full()) {
    stream.state = State::stalled;
    return;
  }
  if (stream.record.status != 0) ++statistics_.errors;
  stream.ring.advance();
  if (told) stream.ring.complete(socket_, stream.record.number, stream.record.status, stream.record.fault);
  stream.record.completed = socket_.now();
  const TaskRecord record = stream.record;  // before the next entry has its turn
  stream.state = State::idle;
  socket_.progressed();
  if (record.type == CM384_TASK_KERNEL && record.status == 0) kernel_completed(stream);
  post(number);
  if (!begin_next_ahead(number)) {
    release_slot(stream);
    make_ready(number);
  }
  cores_.task_finished(record);
}

std::string TaskScheduler::report() const {
  std::string text;
  for (const Stream& stream : streams_) {
    if (stream.state == State::idle) continue;
    const TaskRecord& r = stream.record;
    text += fmt::format("stream {}: entry {} of {}, type {}", r.stream, stream.ring.head(),
                        stream.ring.tail(), stream.entry.type);
    if (stream.state == State::waiting)
      text += fmt::format(", waits for {:#x} to reach {}", stream.entry.u.word.address,
                          stream.entry.u.word.value);
    if (stream.state == State::stalled) text += ", waits for room among its completions";
    const Kernel& kernel = stream.kernel;
    const std::uint32_t cores = kernel.request.type == KernelType::mix ? 3 : 1;  // of a block
    if (stream.state == State::working && kernel.running > 0 && kernel.dispatched < kernel.blocks)
      text += fmt::format(", {} of {} blocks wait for a core: blocks in turns do not meet",
                          (kernel.blocks - kernel.dispatched) / cores, kernel.blocks / cores);
    text += fmt::format(", since {:.3f} us\n", r.turn.us());
  }
  return text;
}

void TaskScheduler::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const SchedulerStatistics& s = statistics_;
  to.declare(at, "tasks", "entries", "of streams decoded", s.tasks);
  to.declare(at, "kernels", "entries", "among them that start a kernel", s.kernels);
  to.declare(at, "copies", "entries", "among them handed to the SDMA engine", s.copies);
  to.declare(at, "errors", "entries", "that ended with an error", s.errors);
  to.declare(at, "blocks", "blocks", "dispatched to cores", s.blocks);
  to.declare(at, "block_waits", "blocks", "whose dispatch waited for a core", s.block_waits);
  to.declare(at, "slot_waits", "entries", "that waited for a place among those under way", s.slot_waits);
}

}  // namespace cm384::npu
