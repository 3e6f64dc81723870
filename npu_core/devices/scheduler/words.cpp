// Events and notifies: words in memory that entries write, and wait for.
#include <algorithm>
#include <cstring>

#include "firmware/abi/memory_map.h"
#include "npu_core/devices/scheduler/task_scheduler.h"

namespace cm384::npu {
namespace {

bool is_event(const cm384_task& entry) {
  return entry.type == CM384_TASK_EVENT_RECORD || entry.type == CM384_TASK_EVENT_WAIT;
}
std::uint32_t word_bytes(const cm384_task& entry) {
  return is_event(entry) ? 8 : 4;
}

}  // namespace

void TaskScheduler::record_word(std::uint32_t number) {
  const cm384_task& entry = streams_[number].entry;
  const std::uint64_t address = entry.u.word.address, value = entry.u.word.value;
  const std::uint32_t bytes = word_bytes(entry);
  if (!cm384_is_gm(address)) return done_at(number, socket_.now(), CM384_STATUS_WRITE_FAULT, address);
  if (address % bytes != 0) return done_at(number, socket_.now(), CM384_STATUS_BAD_ENTRY, address);
  std::byte word[8];
  std::memcpy(word, &value, sizeof word);
  if (!socket_.is_local(address)) {
    sim::Request request;
    request.address = address;
    request.at = socket_.now();
    request.bytes = bytes;
    request.tag = number;
    request.operation = is_event(entry) ? sim::Operation::write : sim::Operation::atomic_add_s32;
    request.payload.chunk = socket_.payloads().allocate();
    std::memcpy(socket_.payloads().bytes(request.payload.chunk), word, bytes);
    return socket_.submit(request);
  }
  const std::uint64_t offset = cm384_gm_offset(address);
  if (!socket_.contains(offset, bytes))
    return done_at(number, socket_.now(), CM384_STATUS_WRITE_FAULT, address);
  done_at(number, is_event(entry) ? socket_.write(offset, word, bytes, 0, 0)
                                  : socket_.add(offset, static_cast<std::uint32_t>(value)));
}

// A record on another die is done when that die has acknowledged it.
void TaskScheduler::completed(const sim::Completion& completion) {
  sim::Payload payload = completion.payload;
  socket_.payloads().release(payload);
  const bool fault = completion.outcome != sim::Outcome::done;
  const std::uint64_t address = streams_[completion.tag].entry.u.word.address;
  done_at(completion.tag, socket_.now(), fault ? CM384_STATUS_WRITE_FAULT : CM384_STATUS_DONE,
          fault ? address : 0);
}

void TaskScheduler::wait_word(std::uint32_t number) {
  Stream& stream = streams_[number];
  const std::uint64_t address = stream.entry.u.word.address;
  const std::uint32_t bytes = word_bytes(stream.entry);
  if (!cm384_is_gm(address) || !socket_.is_local(address) || address % bytes != 0)
    return done_at(number, socket_.now(), CM384_STATUS_BAD_ENTRY, address);
  const std::uint64_t offset = cm384_gm_offset(address);
  if (!socket_.contains(offset, bytes))
    return done_at(number, socket_.now(), CM384_STATUS_READ_FAULT, address);
  // From here on a write to the word brings another reading.
  if (stream.state != State::waiting) park(number);
  stream.touched = false;
  stream.reading = true;
  stream.word = 0;
  std::byte word[8] = {};
  sim::TagMask tags = 0;
  Time at = socket_.read(offset, word, bytes, tags, true);
  std::memcpy(&stream.word, word, bytes);
  // Looking and taking are one access, so that no two streams take the same.
  if (!is_event(stream.entry) && stream.word >= stream.entry.u.word.value)
    at = socket_.add(offset, 0u - static_cast<std::uint32_t>(stream.entry.u.word.value));
  socket_.schedule(at, kRead, number);
}

void TaskScheduler::word_read(std::uint32_t number) {
  Stream& stream = streams_[number];
  stream.reading = false;
  const bool reached = stream.word >= stream.entry.u.word.value;
  if (!reached) {
    if (stream.touched) return wait_word(number);
    return release_slot(stream);  // the wait is the stream's alone
  }
  std::erase(parked_, number);
  watch_again();
  stream.state = State::working;
  done_at(number, socket_.now());
}

void TaskScheduler::park(std::uint32_t number) {
  streams_[number].state = State::waiting;
  parked_.push_back(number);
  watch_again();
}

void TaskScheduler::watch_again() {
  watched_.low = UINT64_MAX;
  watched_.high = 0;
  for (const std::uint32_t number : parked_) {
    const std::uint64_t offset = cm384_gm_offset(streams_[number].entry.u.word.address);
    watched_.low = std::min(watched_.low, offset);
    watched_.high = std::max(watched_.high, offset + 8);
  }
}

void TaskScheduler::wake(std::uint64_t offset, std::uint64_t bytes) {
  for (const std::uint32_t number : std::vector(parked_)) {
    Stream& stream = streams_[number];
    const std::uint64_t word = cm384_gm_offset(stream.entry.u.word.address);
    if (offset >= word + word_bytes(stream.entry) || offset + bytes <= word) continue;
    stream.touched = true;
    if (!stream.reading) wait_word(number);
  }
}

}  // namespace cm384::npu
