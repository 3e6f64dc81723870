// One engine between global memory and a local buffer (MTE2 reads, MTE3 and FIX write): cuts instructions
// into requests, bounds what is outstanding, and knows when each instruction is complete.
//
// One event per request. Requests leave at least an interval apart; an instruction costs an overhead of issue
// time on top, and its set-up hides behind the requests of the one before it. A request never crosses a 512 B
// boundary of global memory; the die's memory moves the whole sectors it touches. What is outstanding to the
// own die is bounded in bytes of sectors, whose buffer frees in order; to memory outside in requests.
//
// A write to memory outside that covers part of a 32 B block is, where MteTiming::merges, a read of the whole
// blocks, whose answer goes back with the write's bytes in their place: one such write at a time an engine.
// Nothing keeps others from writing the block in between; so must the kernels.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/engine/transaction.h"
#include "base/text/units.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/core_socket.h"
#include "npu_core/pipes/local_buffer.h"
#include "npu_core/pipes/request_window.h"

namespace cm384::npu {

// References to the counters of its owner's statistics that an engine updates.
struct MteCounters {
  std::uint64_t& busy_ps;  // from an instruction's turn to issue to its last request
  std::uint64_t& local_requests;
  std::uint64_t& remote_requests;
  std::uint64_t& bytes;        // of the kernel's bursts, without padding and rounding
  std::uint64_t& window_full;  // requests that waited for a place in a window
  std::uint64_t& merged;       // writes to memory outside that had to read first
};

// One direction of hw::Mte, converted to picoseconds, for all cores of a die.
struct MteTiming {
  std::int64_t overhead_ps = 0;
  std::int64_t interval_ps = 0;
  std::int64_t window_bytes = 0;
  std::uint32_t remote_window = 0;
  std::int64_t sector_ps = 0;  // least time of a request for each 128 B that it touches
  bool merges = false;         // hw::Mte::remote_partial_write
};

MteTiming mte_timing(const Clock& clock, double overhead, double interval, Bytes window, int remote,
                     std::string_view partial_write = "byte-enable");

struct MteCopy {
  std::uint64_t gm = 0;
  std::uint32_t local = 0;  // offset in the local buffer
  std::uint32_t burst_bytes = 0;
  std::uint32_t bursts = 0;
  std::int64_t gm_stride = 0;  // bytes from burst to burst
  std::uint32_t local_stride = 0;
  // Bytes from one 32 B block of a burst to the next in the local buffer: more than 32 scatters (ND2NZ).
  std::uint32_t block_stride = sim::kBlockBytes;
  sim::Operation operation = sim::Operation::read;
  bool allocate = true;
  std::uint8_t lane = 0;
  // Bytes around each burst in the local buffer, filled with elements of `pad_size` bytes (0: none).
  std::uint8_t pad_left = 0, pad_right = 0, pad_size = 0;
  std::uint32_t pad_value = 0;
  std::uint64_t pc = 0;
  sim::TransactionId transaction = 0;  // its id, where a trace gives it

  std::uint32_t padded() const {
    return (pad_left + burst_bytes + pad_right + sim::kBlockBytes - 1) / sim::kBlockBytes * sim::kBlockBytes;
  }
};

class MteEngine {
 public:
  // `tag_base` and above (up to 4096 more) are the low halves of the tags of the engine's requests (the epoch
  // stands in the high half). `event` is its `what`.
  MteEngine(bool reads, std::uint16_t core, std::uint32_t event, std::uint32_t tag_base,
            const MteTiming& timing, CoreSocket& socket, LocalBuffer& buffer, const MteCounters& counters);

  // Takes an instruction whose first request may leave at `ready`, which holds set-up. Requires !busy().
  void start(const MteCopy& copy, Time ready);
  // An instruction is issuing requests.
  bool busy() const { return busy_; }
  // The event: one request leaves. Returns true when it was the instruction's last.
  bool request(Time now);
  // A remote completion. Returns true when an instruction's last request left through the place it freed.
  bool completed(const sim::Completion& completion, Time now);
  // Asks the host's cache for what the next request, a completion, will touch: stage 1 its lists, 2
  // the request's data.
  void prefetch(int stage) const;
  void prefetch_completion(std::uint32_t tag) const;
  // Time of the last request of the last instruction that is no longer issuing.
  Time last_request() const { return last_request_; }

  // In-order list of what is not known to be complete: copies, and the marks (flags to set) behind them.
  struct Mark {
    std::uint8_t kind = 0;  // 0: copy; otherwise the owner's
    bool issued = false;
    std::uint32_t outstanding = 0;
    std::uint64_t operand = 0;
    std::uint64_t pc = 0;
    std::int64_t cycle = 0;  // not before this cycle (marks)
    std::int64_t complete_ps = 0;
    sim::TransactionId transaction = 0;
  };
  void mark(std::uint8_t kind, std::uint64_t operand, std::uint64_t pc, std::int64_t cycle);
  // Takes copies known to be complete off the list; then the mark in front, if any, else nullptr.
  const Mark* front_mark();
  void pop_mark() { ++first_; }
  bool all_complete();
  // When everything taken off the list is complete.
  Time complete() const { return {complete_ps_}; }

  std::uint32_t remote_outstanding() const { return remote_outstanding_; }
  std::uint64_t oldest_pc();
  // Resets the engine; events and completions from before carry an older epoch and are to be ignored.
  void reset();
  std::uint64_t epoch() const { return epoch_; }

 private:
  enum class Merge : std::uint8_t { none, reads, writes };
  struct RemoteSlot {
    std::uint32_t local = 0;
    std::uint16_t bytes = 0;
    std::uint8_t lane = 0;
    Merge merge = Merge::none;  // of a write that covers part of a block: what is under way
    std::uint64_t sequence = 0;
    std::uint64_t address = 0;
    std::uint32_t block_stride = 0;
  };

  Mark& entry(std::uint64_t sequence) { return marks_[sequence & (marks_.size() - 1)]; }
  const Mark& entry(std::uint64_t sequence) const { return marks_[sequence & (marks_.size() - 1)]; }
  Mark& append();
  void begin_burst();
  void plan_piece();
  bool next_piece(Time now);
  void schedule_next(std::int64_t earliest_ps);
  void local_request(Time now);
  void remote_request(Time now);
  std::uint32_t tag_of(std::uint16_t slot) const {
    return static_cast<std::uint32_t>(epoch_ << 16) | (tag_base_ + slot);
  }
  bool merges() const;
  bool remote_waits() const;
  void submit_remote(std::uint16_t slot, sim::Operation operation, Time now);
  void write_merged(std::uint16_t slot, const sim::Payload& old, Time now);
  std::uint32_t local_place() const;
  void read_into(const RemoteSlot& place, const std::byte* bytes, sim::TagMask tags);
  void prepare_burst();
  void pad_burst();

  const bool reads_;
  const std::uint16_t core_;
  const std::uint32_t event_;
  const std::uint32_t tag_base_;
  const MteTiming& timing_;
  CoreSocket& socket_;
  LocalBuffer& buffer_;
  MteCounters counters_;

  // The instruction that is issuing.
  MteCopy copy_;
  std::uint64_t last_start_ = 0;  // GM address the last copy began at
  bool busy_ = false;
  bool local_ = false;             // the burst lies in the own die's memory
  bool waits_for_window_ = false;  // for a remote completion
  std::uint32_t done_ = 0;         // bytes of the burst
  std::uint32_t piece_ = 0;        // bytes of the next request
  std::uint64_t request_address_ = 0;
  std::uint64_t sequence_ = 0;  // its entry in marks_
  sim::TransactionId transaction_ = 0;
  std::int64_t cursor_ps_ = 0;  // the next request may leave
  std::int64_t turn_ps_ = 0;    // the instruction's turn to issue began
  Time last_request_;

  RequestWindow window_;  // local requests outstanding

  std::vector<RemoteSlot> slots_;
  std::vector<std::uint16_t> free_slots_;
  std::uint32_t remote_outstanding_ = 0;
  bool merging_ = false;  // one write is

  std::vector<Mark> marks_;  // ring, a power of two
  std::uint64_t first_ = 0, last_ = 0;
  std::int64_t complete_ps_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace cm384::npu
