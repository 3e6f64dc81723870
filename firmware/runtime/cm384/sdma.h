// Copies by the SDMA engine, submitted by this core: entries in a queue in memory, a doorbell, a flag or a
// completion to poll. A queue belongs to one core (Runtime::create_sdma_queue on the host).
#pragma once

#include "cm384/data_copy.h"
#include "cm384/system.h"
#include "firmware/abi/queue.h"

namespace AscendC {

class SdmaQueue {
 public:
  SdmaQueue() = default;
  // `queue`: GM address of its struct cm384_queue. `scratch`: 64 B of UBuffer to poll with.
  CM384_INLINE SdmaQueue(uint64_t queue, uint32_t scratch) : scratch_(scratch) {
    const cm384_queue q = *reinterpret_cast<const cm384_queue*>(queue);
    entries_ = q.entries;
    completions_ = q.completions;
    doorbell_ = q.doorbell;
    depth_ = q.depth;
    tail_ = q.tail;
  }

  // Entries that were written so far, those of kernels before this one inside.
  CM384_INLINE uint32_t tail() const { return tail_; }
  // Writes an entry; Ring() makes it known. At most `depth` may be under way.
  CM384_INLINE void Copy(uint64_t destination, uint64_t source, uint32_t bytes, bool completion = false) {
    Put(CM384_SDMA_COPY, destination, source, bytes, completion);
  }
  // Into the own die's L2.
  CM384_INLINE void Prefetch(uint64_t source, uint32_t bytes, bool completion = false) {
    Put(CM384_SDMA_PREFETCH, 0, source, bytes, completion);
  }
  // Posts 8 B at `flag` to become `value` when all entries before are complete. `arena`: 8 B of the own die
  // that stay as they are until then.
  CM384_INLINE void PostFlag(uint64_t flag, uint64_t value, uint64_t arena) {
    *reinterpret_cast<uint64_t*>(arena) = value;
    dcci(arena, 8);
    Copy(flag, arena, 8);
  }
  CM384_INLINE void Ring() {
    reinterpret_cast<uint32_t*>(doorbell_)[0] = tail_;
    dcci(doorbell_, 8);
  }

  // Returns when the flag, of the own die and 32 B aligned, is `value`.
  CM384_INLINE void WaitFlagValue(uint64_t flag, uint64_t value) {
    while (Load<uint64_t>(flag, 32).GetValue(0) != value) PollMark(flag, 32);
    PollEnd(flag);
  }
  // Returns the next completion when it is there, and gives its place back.
  CM384_INLINE cm384_completion WaitCompletion() {
    const uint64_t address = completions_ + taken_ % depth_ * sizeof(cm384_completion);
    ++taken_;
    for (;;) {
      const LocalTensor<uint32_t> words = Load<uint32_t>(address, sizeof(cm384_completion));
      if (words.GetValue(0) == taken_) {
        PollEnd(address);
        cm384_completion c{};
        c.number = taken_;
        c.task = words.GetValue(1);
        c.status = words.GetValue(2);
        c.head = words.GetValue(3);
        c.fault = words.GetValue(4) | static_cast<uint64_t>(words.GetValue(5)) << 32;
        reinterpret_cast<uint32_t*>(doorbell_)[1] = taken_;
        dcci(doorbell_, 8);
        return c;
      }
      PollMark(address, sizeof(cm384_completion));
    }
  }

 private:
  CM384_INLINE void Put(uint8_t operation, uint64_t destination, uint64_t source, uint32_t bytes,
                        bool completion) {
    const uint64_t address = entries_ + tail_ % depth_ * CM384_QUEUE_ENTRY_BYTES;
    uint64_t* words = reinterpret_cast<uint64_t*>(address);
    words[0] = CM384_TASK_SDMA | (completion ? uint64_t{CM384_TASK_WRITE_COMPLETION} << 8 : 0) |
               static_cast<uint64_t>(operation) << 16 | static_cast<uint64_t>(tail_) << 32;
    words[1] = source;
    words[2] = destination;
    words[3] = bytes;
    dcci(address, CM384_QUEUE_ENTRY_BYTES);
    ++tail_;
  }
  template <typename T>
  CM384_INLINE LocalTensor<T> Load(uint64_t address, uint32_t bytes) {
    const LocalTensor<T> tensor(scratch_, bytes / sizeof(T));
    DataCopy(tensor, GlobalAt<T>(address), bytes / sizeof(T));
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    return tensor;
  }

  uint64_t entries_ = 0, completions_ = 0, doorbell_ = 0;
  uint32_t depth_ = 0, tail_ = 0, taken_ = 0, scratch_ = 0;
};

}  // namespace AscendC
