// Lines of L2 whose use by somebody, or whose way from HBM, is not over. What is over delays nobody and is
// forgotten: a die holds a thousand lines at a time, its L2 has hundreds of thousands.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace cm384::npu {

class HeldLines {
 public:
  struct Hold {
    Time free{};               // it ends; `free - hold` is when the line's data was last ready
    std::uint32_t key = 0;     // 1 + line number, 0 empty; HeldLines's own
    std::uint16_t holder = 0;  // requester that used it last
    bool whole = false;        // and asked for all of it
  };

  // The hold of a line, which has ended at time 0 if none is known; until the next call. `now` never falls
  // from call to call: holds that have ended by then are forgotten.
  Hold& of(std::uint32_t line, Time now) {
    Set& set = sets_[set_of(line)];
    Hold* over = nullptr;
    for (Hold& hold : set) {
      if (hold.key == line + 1) return hold;
      if (hold.free <= now) over = &hold;
    }
    if (over == nullptr) [[unlikely]] {
      grow(now);
      return of(line, now);
    }
    *over = Hold{{}, line + 1, 0};
    return *over;
  }
  // Asks the host's cache for it.
  void prefetch(std::uint32_t line) const { __builtin_prefetch(&sets_[set_of(line)], 1); }

 private:
  static constexpr unsigned kWays = 4;
  struct alignas(64) Set : std::array<Hold, kWays> {};

  std::uint32_t set_of(std::uint32_t line) const { return line * 0x9e3779b1u >> shift_; }
  // Twice the sets, until each has room.
  void grow(Time now);

  unsigned shift_ = 32 - 6;
  std::vector<Set> sets_ = std::vector<Set>(std::size_t{1} << (32 - shift_));
};

}  // namespace cm384::npu
