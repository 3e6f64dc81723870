#include "npu_core/memory/held_lines.h"

#include <algorithm>
#include <utility>

namespace cm384::npu {

HeldLines::Hold& HeldLines::make_room(std::uint32_t line, Time now) {
  if (sets_.size() < kMostSets) {
    grow(now);
    return of(line, now);
  }
  return overflow_.emplace_back(Hold{{}, line + 1, 0});
}

HeldLines::Hold* HeldLines::find_overflow(std::uint32_t line, Time now) {
  std::erase_if(overflow_, [&](const Hold& hold) { return hold.free <= now && hold.key != line + 1; });
  const auto found = std::ranges::find(overflow_, line + 1, &Hold::key);
  return found == overflow_.end() ? nullptr : &*found;
}

void HeldLines::grow(Time now) {
  --shift_;
  const std::vector<Set> before = std::exchange(sets_, std::vector<Set>(std::size_t{1} << (32 - shift_)));
  // Two sets of the new table take what one of the old had.
  for (const Set& set : before) {
    for (const Hold& hold : set) {
      if (hold.free > now) of(hold.key - 1, now) = hold;
    }
  }
}

}  // namespace cm384::npu
