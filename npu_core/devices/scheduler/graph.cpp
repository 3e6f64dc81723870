// Kernels of a captured graph: fetched, decoded and set up while the one before them in their stream runs.
#include <algorithm>

#include "npu_core/devices/scheduler/task_scheduler.h"

namespace cm384::npu {

// Fetches the entry behind those that are known, while the stream works at a kernel of a graph.
void TaskScheduler::look_ahead(std::uint32_t number) {
  Stream& stream = streams_[number];
  Ahead& ahead = stream.ahead;
  const bool graph = stream.plain && (stream.entry.flags & CM384_TASK_GRAPH) != 0;
  const bool works =
      stream.state == State::working || stream.state == State::completing || stream.state == State::preparing;
  const std::size_t known = ahead.entries.size() + (stream.state == State::preparing ? 0 : 1);
  if (!works || !graph || ahead.fetching || ahead.stopped || stream.ring.waiting() <= known ||
      ahead.entries.size() >= static_cast<std::size_t>(parameters_.graph_lookahead))
    return;
  ahead.fetching = true;
  ahead.entries.emplace_back();
  const Time at =
      stream.ring.fetch(socket_, ahead.entries.back().task, ahead.plain, static_cast<std::uint32_t>(known));
  socket_.schedule(at, kAheadFetched, number);
}

void TaskScheduler::handle_ahead(std::uint32_t number, std::uint32_t what) {
  Stream& stream = streams_[number];
  Ahead& ahead = stream.ahead;
  if (what == kAheadReady) {
    ++ahead.ready;
    if (stream.state == State::preparing) begin_ready(number);
    return;
  }
  Ahead::Entry& entry = ahead.entries.back();
  if (what == kAheadFetched) {
    entry.fetched = socket_.now();
    const Time at = std::max(socket_.now(), next_decode_);
    next_decode_ = at + parameters_.entry_interval;
    return socket_.schedule(at + parameters_.entry_latency, kAheadDecoded, number);
  }
  entry.decoded = socket_.now();
  ahead.fetching = false;
  const bool kernel = ahead.plain && entry.task.type == CM384_TASK_KERNEL;
  if (!kernel || (entry.task.flags & CM384_TASK_GRAPH) == 0) {
    // It is fetched again when it has its turn.
    ahead.entries.pop_back();
    ahead.stopped = true;
    if (stream.state == State::preparing && ahead.entries.empty()) {
      stream.state = State::idle;
      ahead.stopped = false;
      release_slot(stream);
      make_ready(number);
    }
    return;
  }
  socket_.schedule(socket_.now() + parameters_.kernel_setup, kAheadReady, number);
  look_ahead(number);
}

// The entry at the head has completed: goes on with the next one, if that was looked at; false if not.
bool TaskScheduler::begin_next_ahead(std::uint32_t number) {
  Stream& stream = streams_[number];
  if (stream.ahead.entries.empty()) {
    stream.ahead.stopped = false;
    return false;
  }
  stream.state = State::preparing;
  if (stream.ahead.ready > 0) begin_ready(number);
  return true;
}

void TaskScheduler::begin_ready(std::uint32_t number) {
  Stream& stream = streams_[number];
  const Ahead::Entry entry = stream.ahead.entries.front();
  stream.ahead.entries.pop_front();
  --stream.ahead.ready;
  stream.entry = entry.task;
  stream.state = State::working;
  stream.record = TaskRecord{};
  stream.record.stream = number;
  stream.record.turn = socket_.now();
  stream.record.fetched = entry.fetched;
  stream.record.decoded = entry.decoded;
  stream.record.type = stream.entry.type;
  stream.record.number = stream.entry.number;
  ++statistics_.tasks;
  socket_.progressed();
  cores_.task_decoded(stream.record);
  if (start_kernel(number)) dispatchable(number);
  look_ahead(number);
}

}  // namespace cm384::npu
