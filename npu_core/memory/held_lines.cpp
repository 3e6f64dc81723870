#include "npu_core/memory/held_lines.h"

#include <utility>

namespace cm384::npu {

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
