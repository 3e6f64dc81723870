// One turn of a loop that may do nothing but look at memory again and again: does the next turn do the same?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cm384::npu {

struct Turn {
  // Registers (bits as in OperandUse) whose values come from a counter of time or of instructions. Nothing of
  // the turn may depend on them.
  std::uint64_t timed = 0;
  // Of those, the ones that still hold what the turn before left in them. To read one is to carry time from
  // turn to turn.
  std::uint64_t stale = 0;
  // At its begin.
  std::array<std::uint64_t, 33> x{};
  std::array<std::uint32_t, 32> f{};
  std::uint32_t fcsr = 0;
  // What stood in private memory before each store, in their order.
  struct Stored {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    std::array<std::byte, 8> before{};
  };
  std::vector<Stored> stored;
};

}  // namespace cm384::npu
