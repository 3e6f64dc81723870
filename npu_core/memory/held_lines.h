// L2 lines that are in use by a requester or being filled from HBM. Holds that have ended delay nobody and
// are dropped: a die holds a thousand lines at a time, its L2 has hundreds of thousands.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/text/units.h"

namespace cm384::npu {

class HeldLines {
 public:
  static constexpr std::size_t kMostSets = std::size_t{1} << 16;  // 4 MiB

  struct Hold {
    Time free{};               // it ends; `free - hold` is when the line's data was last ready
    std::uint32_t key = 0;     // 1 + line number, 0 empty; HeldLines's own
    std::uint16_t holder = 0;  // requester that used it last
    bool whole = false;        // and asked for all of it
  };

  // The hold of a line, which has ended at time 0 if none is known; until the next call. Nobody asks about a
  // time before `now` in later calls: holds that have ended by then are forgotten.
  Hold& of(std::uint32_t line, Time now) {
    Set& set = sets_[set_of(line)];
    Hold* over = nullptr;
    for (Hold& hold : set) {
      if (hold.key == line + 1) return hold;
      if (hold.free <= now) over = &hold;
    }
    if (!overflow_.empty()) [[unlikely]] {
      if (Hold* const hold = find_overflow(line, now)) return *hold;
    }
    if (over == nullptr) [[unlikely]]
      return make_room(line, now);
    *over = Hold{{}, line + 1, 0};
    return *over;
  }
  std::size_t sets() const { return sets_.size(); }
  // Holds that are kept outside the table because their lines share a full set of the largest one.
  std::size_t overflow_size() const { return overflow_.size(); }
  // Asks the host's cache for it.
  void prefetch(std::uint32_t line) const { __builtin_prefetch(&sets_[set_of(line)], 1); }

 private:
  static constexpr unsigned kWays = 4;
  struct alignas(64) Set : std::array<Hold, kWays> {};

  std::uint32_t set_of(std::uint32_t line) const { return line * 0x9e3779b1u >> shift_; }
  // Makes room for a hold: in a table of twice the sets, or outside of it.
  Hold& make_room(std::uint32_t line, Time now);
  void grow(Time now);
  // The hold of a line that is kept outside the table, or null; drops those that have ended.
  Hold* find_overflow(std::uint32_t line, Time now);

  unsigned shift_ = 32 - 6;
  std::vector<Set> sets_ = std::vector<Set>(std::size_t{1} << (32 - shift_));
  std::vector<Hold> overflow_;
};

}  // namespace cm384::npu
