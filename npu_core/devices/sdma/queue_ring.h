// A pair of submission and completion queue in a die's memory, as the unit that consumes it sees it: where
// the rings are, and how far each side has got. Counters as in firmware/abi/queue.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "firmware/abi/queue.h"
#include "npu_core/devices/device_socket.h"

namespace cm384::npu {

class QueueRing {
 public:
  QueueRing() = default;
  // Offsets in the die's memory, multiples of 64; depth at least 1.
  QueueRing(std::uint64_t entries, std::uint64_t completions, std::uint32_t depth)
      : entries_(entries), completions_(completions), depth_(depth) {}

  bool exists() const { return depth_ != 0; }
  std::uint32_t depth() const { return depth_; }
  std::uint32_t head() const { return head_; }
  std::uint32_t tail() const { return tail_; }
  bool empty() const { return head_ == tail_; }
  // Entries submitted and not completed.
  std::uint32_t waiting() const { return tail_ - head_; }

  // A doorbell's new tail; false when it lies before the tail or further than `depth` after the head.
  bool ring(std::uint32_t tail) {
    const bool legal = tail - head_ <= depth_ && tail - head_ >= tail_ - head_;
    if (legal) tail_ = tail;
    return legal;
  }
  // The reader has consumed `count` completions; false where that is more than were written.
  bool taken(std::uint32_t count) {
    const bool legal = count - taken_ <= written_ - taken_;
    if (legal) taken_ = count;
    return legal;
  }
  std::uint32_t completions() const { return written_; }
  bool completions_full() const { return written_ - taken_ >= depth_; }

  std::uint64_t entry_offset(std::uint32_t counter) const {
    return entries_ + std::uint64_t{counter % depth_} * CM384_QUEUE_ENTRY_BYTES;
  }

  std::uint64_t completions_offset() const { return completions_; }

  // Reads the entry at the head, or `ahead` entries behind it; returns when it is there. False in `plain`
  // where tensor payload stands.
  Time fetch(DeviceSocket& socket, cm384_task& entry, bool& plain, std::uint32_t ahead = 0) const {
    std::byte bytes[CM384_QUEUE_ENTRY_BYTES] = {};
    sim::TagMask tags = 0;
    const Time at = socket.read(entry_offset(head_ + ahead), bytes, sizeof bytes, tags, true);
    plain = tags == 0;
    std::memcpy(&entry, bytes, sizeof entry);
    return at;
  }

  // The entry at the head is completed.
  void advance() { ++head_; }
  // Writes the next completion; returns when it is in memory. Requires !completions_full().
  Time complete(DeviceSocket& socket, std::uint32_t task, std::uint32_t status, std::uint64_t fault) {
    cm384_completion c{};
    c.number = ++written_;
    c.task = task;
    c.status = status;
    c.head = head_;
    c.fault = fault;
    c.sys_count = socket.sys_count();
    std::byte bytes[CM384_QUEUE_ENTRY_BYTES];
    std::memcpy(bytes, &c, sizeof bytes);
    return socket.write(completions_ + std::uint64_t{(written_ - 1) % depth_} * CM384_QUEUE_ENTRY_BYTES,
                        bytes, sizeof bytes, 0, 0);
  }

 private:
  std::uint64_t entries_ = 0, completions_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t head_ = 0, tail_ = 0;
  std::uint32_t written_ = 0, taken_ = 0;  // completions
};

}  // namespace cm384::npu
