#include "system/host/host_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "traces/host_words.h"

namespace cm384::host {
namespace {

using traces::HostCallKind;

// What a call that submits hands to the driver by itself. Entries of a captured graph were handed over when
// it was instantiated, and those of events and notifies are words without operands.
bool is_handed_over(const cm384_task& entry) {
  return entry.type == CM384_TASK_SDMA ||
         (entry.type == CM384_TASK_KERNEL && (entry.flags & CM384_TASK_GRAPH) == 0);
}

std::uint64_t word_of(HostCallKind kind) {
  return static_cast<std::uint64_t>(kind);
}

// Of a call that brings an entry to a stream.
std::vector<std::uint64_t> words_of(HostCallKind kind, const HostCall& call) {
  std::vector<std::uint64_t> words(2 + traces::kEntryWords);
  static_assert(sizeof call.entry == traces::kEntryWords * sizeof words[0]);
  words[0] = word_of(kind);
  words[1] = call.stream;
  std::memcpy(&words[2], &call.entry, sizeof call.entry);
  return words;
}

}  // namespace

HostThread::HostThread(supernode::Supernode& machine, int die)
    : parameters_(machine.parameters().host),
      aicpu_(machine.parameters().aicpu),
      die_(machine.die(die)),
      unit_(machine.attach(die, *this)),
      unfinished_(machine.unfinished()) {}

std::size_t HostThread::new_task() {
  tasks_.emplace_back();
  return tasks_.size() - 1;
}

void HostThread::count(const std::shared_ptr<HostBarrier>& barrier) {
  barrier->counter = this;
  barrier->number = barriers_.size();
  barriers_.push_back(barrier);
}

void HostThread::call(HostCall call, Time at) {
  ++unfinished_;
  if (in_function_) {
    calls_.insert(calls_.begin() + static_cast<std::ptrdiff_t>(insert_at_++), std::move(call));
    return;
  }
  calls_.push_back(std::move(call));
  if (calls_.size() == 1 && !armed_ && !waiting_) go_on(std::max(at, free_));
}

HostThread::StreamState& HostThread::state(std::uint32_t stream) {
  if (streams_.size() <= stream) streams_.resize(stream + std::size_t{1});
  return streams_[stream];
}

void HostThread::go_on(Time at) {
  armed_ = true;
  die_.queue().push(std::max(at, die_.now()), unit_, kNext);
}

void HostThread::handle(int, const sim::Event& event) {
  const auto number = static_cast<std::uint32_t>(event.argument);
  switch (static_cast<What>(event.what)) {
    case kNext:
      armed_ = false;
      return next();
    case kArrives:
      return arrive(under_way_, event.at);
    case kArrivesFromAicpu:
      return arrive(by_aicpu_, event.at);
    case kUnfold:
      aicpu_armed_ = false;
      return unfold();
    case kSeen:
      return seen(number);
    case kAtBarrier:
      return meet(*barriers_[event.argument]);
    case kLeaveBarrier:
      waiting_ = false;
      done(calls_.front(), event.at, event.at);
      calls_.pop_front();
      --unfinished_;
      die_.progressed();
      if (!calls_.empty()) go_on(event.at);
      return;
  }
}

// Works off the call in front, or leaves it there, waiting.
void HostThread::next() {
  if (calls_.empty()) return;
  const Time now = die_.now();
  die_.progressed();
  HostCall& call = calls_.front();
  free_ = now + parameters_.call;
  switch (call.kind) {
    case HostCall::Kind::submit:
      if (is_handed_over(call.entry)) free_ = now + std::max(parameters_.call, parameters_.submit_latency);
      waiting_ = !submit(call);
      break;
    case HostCall::Kind::synchronize:
      waiting_ = !drained(call.stream);
      break;
    case HostCall::Kind::compute:
      free_ = now + call.time;
      break;
    case HostCall::Kind::unfold:
      free_ = now + std::max(parameters_.call, parameters_.submit_latency);
      hand_over(call);
      break;
    case HostCall::Kind::function: {
      free_ = now;
      in_function_ = true;
      insert_at_ = 1;
      const std::function<void()> function = std::move(call.function);
      function();
      in_function_ = false;
      break;
    }
    case HostCall::Kind::barrier: {
      waiting_ = true;
      HostThread& counter = *call.met->counter;
      counter.die_.queue().push_from(die_.queue(), now + parameters_.message_latency, counter.unit_,
                                     kAtBarrier, call.met->number);
      return;
    }
  }
  if (waiting_) return;
  done(calls_.front(), now, free_);  // what a function has put behind itself moved the list's entries
  calls_.pop_front();
  --unfinished_;
  if (!calls_.empty()) go_on(free_);
}

// A call is done with, and still stands in front: what is called meanwhile comes behind it. Functions are not
// written down, only the calls that they make.
void HostThread::done(const HostCall& call, Time begin, Time end) {
  if (call_done) call_done(call, begin, end);
  npu::DieTracer* const tracer = die_.transactions().tracer();
  if (tracer == nullptr || call.kind == HostCall::Kind::function) return;
  for (const HostCall& one : call.unfolded)
    tracer->host(npu::HostPoint::Kind::call, begin, begin, words_of(HostCallKind::entry, one));
  std::vector<std::uint64_t> words;
  switch (call.kind) {
    case HostCall::Kind::submit:
      words = words_of(HostCallKind::submit, call);
      break;
    case HostCall::Kind::synchronize:
      words = {word_of(HostCallKind::synchronize), call.stream};
      break;
    case HostCall::Kind::compute:
      words = {word_of(HostCallKind::compute), static_cast<std::uint64_t>(call.time.ps)};
      break;
    case HostCall::Kind::unfold:
      words = {word_of(HostCallKind::unfold), call.unfolded.size()};
      break;
    default:
      words = {word_of(HostCallKind::barrier), static_cast<std::uint64_t>(call.met->counter->die_.number()),
               call.met->number, call.met->expected};
  }
  tracer->host(npu::HostPoint::Kind::call, begin, end, words);
}

bool HostThread::has_room(std::uint32_t stream) {
  return state(stream).unseen < die_.scheduler().ring(stream).depth();
}

void HostThread::send(const HostCall& call, std::deque<HostCall>& way, Time latency, What arrives) {
  StreamState& stream = state(call.stream);
  ++stream.unseen;
  // A kernel counts once more, until its last block has ended.
  unfinished_ += call.entry.type == CM384_TASK_KERNEL ? 2 : 1;
  stream.sent.push_back(call.task);
  way.push_back(call);
  die_.queue().push(die_.now() + latency, unit_, arrives);
}

void HostThread::arrive(std::deque<HostCall>& way, Time at) {
  const HostCall call = std::move(way.front());
  way.pop_front();
  tasks_[call.task].arrived = at;
  die_.scheduler().submit(call.stream, call.entry);
}

// False while the stream's queue is full, as far as the host has seen.
bool HostThread::submit(const HostCall& call) {
  if (!has_room(call.stream)) return false;
  tasks_[call.task].called = die_.now();
  send(call, under_way_, parameters_.submit_latency + parameters_.doorbell_latency, kArrives);
  return true;
}

void HostThread::hand_over(const HostCall& call) {
  const bool idle = unfolding_.empty();
  for (const HostCall& one : call.unfolded) {
    tasks_[one.task].called = die_.now();
    ++state(one.stream).promised;
    ++unfinished_;
    unfolding_.push_back(one);
  }
  if (!idle || unfolding_.empty()) return;
  aicpu_armed_ = true;
  die_.queue().push(
      die_.now() + parameters_.submit_latency + parameters_.doorbell_latency + aicpu_.start + aicpu_.entry,
      unit_, kUnfold);
}

// The AICPU has the next entry ready; it waits while the stream's queue is full, as far as has been seen.
void HostThread::unfold() {
  if (!has_room(unfolding_.front().stream)) return;
  const HostCall call = std::move(unfolding_.front());
  unfolding_.pop_front();
  --state(call.stream).promised;
  --unfinished_;
  send(call, by_aicpu_, aicpu_.doorbell_latency, kArrivesFromAicpu);
  if (unfolding_.empty()) return;
  aicpu_armed_ = true;
  die_.queue().push(die_.now() + aicpu_.entry, unit_, kUnfold);
}

bool HostThread::drained(std::uint32_t stream) const {
  const auto empty = [](const StreamState& s) { return s.unseen == 0 && s.promised == 0; };
  if (stream != HostCall::kAllStreams) return stream >= streams_.size() || empty(streams_[stream]);
  return std::all_of(streams_.begin(), streams_.end(), empty);
}

void HostThread::task_finished(int, const npu::TaskRecord& record) {
  if (record.stream >= streams_.size() || streams_[record.stream].sent.empty()) return;  // no host's task
  StreamState& stream = streams_[record.stream];
  HostTask& task = tasks_[stream.sent.front()];
  stream.sent.pop_front();
  task.record = record;
  task.finished = true;
  task.seen = record.completed + parameters_.completion_latency;
  // One that did not even begin.
  if (record.type == CM384_TASK_KERNEL && record.status != CM384_STATUS_DONE) --unfinished_;
  die_.queue().push(task.seen, unit_, kSeen, record.stream);
}

void HostThread::seen(std::uint32_t number) {
  StreamState& stream = streams_[number];
  --stream.unseen;
  --unfinished_;
  die_.scheduler().completions_taken(number, ++stream.seen);
  if (!aicpu_armed_ && !unfolding_.empty() && unfolding_.front().stream == number) unfold();
  if (!waiting_ || calls_.front().kind == HostCall::Kind::barrier) return;
  waiting_ = false;
  go_on(die_.now());
}

// This thread counts those that have come; the last one's message lets all go.
void HostThread::meet(HostBarrier& barrier) {
  if (++barrier.arrived < barrier.expected) return;
  for (HostThread* thread : barrier.threads)
    thread->die_.queue().push_from(die_.queue(), die_.now() + parameters_.message_latency, thread->unit_,
                                   kLeaveBarrier);
}

std::string HostThread::report(int) const {
  if (calls_.empty()) return {};
  static constexpr const char* kKinds[] = {"for room in a stream",   "for a stream to drain",
                                           "for its own work",       "for a function",
                                           "for other host threads", "for nothing"};
  const HostCall& call = calls_.front();
  return fmt::format("host thread of die {}: waits {}{}, {} calls left\n", die_.number(),
                     kKinds[static_cast<std::size_t>(call.kind)],
                     call.stream == HostCall::kAllStreams ? "" : fmt::format(", stream {}", call.stream),
                     calls_.size());
}

}  // namespace cm384::host
