// What happens in traced dies, as a sequence of short entries of 64-bit words: the simulation writes them,
// TraceLogReader reads them, in another thread or later, and finds out who waited for whom.
//
// So the simulation pays for a few stores an event, and the order of entries alone decides what comes out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace cm384::npu {

// The first word of an entry: kind, words behind it, and three small numbers of the kind's own.
struct TraceEntry {
  enum Kind : std::uint8_t {
    // A core's observer; `small` holds pipe and flag.
    parked,
    pushed,
    left,
    issued,
    flag_set,
    cross_set,
    waited_flag,
    waited_cross,
    waited_all,
    waited_pipe,
    polled,
    // A die.
    cores,
    block_begun,
    block_ended,
    begun,
    completed,
    filled,
    arrived,
    read,
    written,
    poll_woken,
    barrier_set,
    barrier,
    group_set,
    for_cube,
    reaches_cube,
    // Its SDMA engine and its scheduler.
    first_of_devices,
    written_by_device = first_of_devices,
    copy_begun,
    copy_ended,
    rung,
    task_begun,
    task_ended,
    // What it is given from outside: kind, start, end, and words of the kind's own.
    host,
    // Only in a log with requests (DieTracer): for an explanation.
    first_of_requests,
    submitted = first_of_requests,
    answered,
    came,
    served,
    local,
    poll_turn,
    hop,
    counted,
    link,
  };
  Kind kind{};
  std::uint8_t words = 0;
  std::uint16_t die = 0, core = 0, small = 0;
};

class TraceLog {
 public:
  static constexpr std::size_t kChunkWords = 1u << 16;
  using Chunk = std::unique_ptr<std::uint64_t[]>;

  virtual ~TraceLog() = default;

  template <class... Words>
  void append(TraceEntry entry, Words... words) {
    constexpr std::size_t kWords = sizeof...(Words) + 1;
    if (static_cast<std::size_t>(end_ - at_) < kWords) turn();
    *at_++ = std::uint64_t{entry.kind} | std::uint64_t{sizeof...(Words)} << 8 |
             std::uint64_t{entry.die} << 16 | std::uint64_t{entry.core} << 32 |
             std::uint64_t{entry.small} << 48;
    ((*at_++ = static_cast<std::uint64_t>(words)), ...);
  }
  // The same with words that are counted only now: at most 255.
  void append_all(TraceEntry entry, std::span<const std::uint64_t> words) {
    if (static_cast<std::size_t>(end_ - at_) < words.size() + 1) turn();
    *at_++ = std::uint64_t{entry.kind} | std::uint64_t{words.size()} << 8 | std::uint64_t{entry.die} << 16 |
             std::uint64_t{entry.core} << 32 | std::uint64_t{entry.small} << 48;
    at_ = std::copy(words.begin(), words.end(), at_);
  }
  static TraceEntry entry_of(std::uint64_t word) {
    return {static_cast<TraceEntry::Kind>(word & 0xff), static_cast<std::uint8_t>(word >> 8),
            static_cast<std::uint16_t>(word >> 16), static_cast<std::uint16_t>(word >> 32),
            static_cast<std::uint16_t>(word >> 48)};
  }

 protected:
  // Consumes a chunk whose first `words` words are written (it may be null) and returns an empty one of
  // kChunkWords words.
  virtual Chunk exchange(Chunk full, std::size_t words) = 0;
  // Hands the words written so far to exchange().
  void turn() {
    const auto words = static_cast<std::size_t>(at_ - chunk_.get());
    chunk_ = exchange(std::move(chunk_), words);
    at_ = chunk_.get();
    end_ = at_ + kChunkWords;
  }

 private:
  Chunk chunk_;
  std::uint64_t* at_ = nullptr;
  std::uint64_t* end_ = nullptr;
};

}  // namespace cm384::npu
