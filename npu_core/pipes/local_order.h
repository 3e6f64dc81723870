// The order between the scalar unit and the pipes that the compiler of Ascend C makes unless told otherwise
// (its option --cce-auto-sync): a scalar access to the local buffer waits for the instructions of V, MTE2 and
// MTE3 before it that touch its bytes, a vector instruction for the vector instructions before it that do.
// Nothing else is ordered: copies with each other and with V are the kernel's own, by flags.
//
// Keeps which bytes the instructions touch that have left their queues, and when each is complete. An
// instruction is complete when a flag set right after it would fire. What it touches is known to the byte;
// two that only read do not meet.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <vector>

#include "npu_core/pipes/pipe_queue.h"

namespace cm384::npu {

// Bytes [begin, end) of the local buffer.
struct LocalRange {
  std::uint32_t begin = 0, end = 0;
  bool write = false;

  bool meets(const LocalRange& other) const {
    return (write || other.write) && begin < other.end && other.begin < end;
  }
};
// The ranges that one instruction touches; adjacent ones are merged.
class LocalRanges {
 public:
  void add(std::uint32_t offset, std::uint32_t bytes, bool write);
  bool meet(const LocalRange& other) const;
  bool meet(const LocalRanges& other) const;

 private:
  std::vector<LocalRange> ranges_;
  std::uint32_t begin_ = std::numeric_limits<std::uint32_t>::max(), end_ = 0;  // of all
};

// Waits that the order has added, by the place of the program that waited.
struct OrderPlace {
  std::uint32_t pc = 0;
  int pipe = 0;          // waited for
  bool by_pipe = false;  // V waited, not the scalar unit
  bool write = false;

  auto operator<=>(const OrderPlace&) const = default;
};
struct OrderWait {
  std::uint64_t count = 0;
  std::int64_t cycles = 0;
};
using OrderWaits = std::map<OrderPlace, OrderWait>;

class LocalOrder {
 public:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

  // An instruction of the pipe leaves its queue. Nobody will ask for what is complete at `from` any more.
  void left(int pipe, LocalRanges touched, std::int64_t complete, std::int64_t from);
  // The oldest one of the pipe that is not known to be complete is so at `cycle`.
  void completed(int pipe, std::int64_t cycle);
  // When the last one of the pipe that meets these bytes is complete; 0: none does, kUnknown: not known yet.
  template <class Bytes>
  std::int64_t complete(int pipe, const Bytes& bytes) const {
    const auto& works = works_[static_cast<std::size_t>(pipe)];
    for (auto work = works.rbegin(); work != works.rend(); ++work) {
      if (work->touched.meet(bytes)) return work->complete;
    }
    return 0;
  }

  void waited(const OrderPlace& at, std::int64_t cycles) {
    OrderWait& wait = waits_[at];
    ++wait.count;
    wait.cycles += cycles;
  }
  const OrderWaits& waits() const { return waits_; }

 private:
  struct Work {
    LocalRanges touched;
    std::int64_t complete = kUnknown;
  };
  std::array<std::deque<Work>, kMostPipes> works_;  // in order; so are the cycles at which they are complete
  OrderWaits waits_;
};

}  // namespace cm384::npu
