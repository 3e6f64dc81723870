// Tags of a die's L2: set-associative lines of 512 B with sectors, true LRU, made on first touch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/parameters/memory.h"
#include "hw/units.h"

namespace cm384::npu {

// One line of L2. Sector masks: bit k is the line's k-th sector.
struct L2Line {
  Time free{};  // its hold by `holder` ends; `free - hold` is when the line's data was last ready
  std::uint8_t valid = 0;
  std::uint8_t dirty = 0;
  std::uint16_t holder = 0;  // requester that used it last
};

class L2Cache {
 public:
  struct Victim {
    std::uint32_t line = 0;
    std::uint8_t dirty = 0;  // sectors to write back; 0 when there is nothing to do
  };

  // Throws InputError when the capacity is no whole number of sets.
  explicit L2Cache(const hw::L2& parameters);

  std::uint32_t sets() const { return sets_; }
  // Line number (offset / 512), or null; a found line becomes the most recently used.
  L2Line* find(std::uint32_t line);
  // Asks the host's cache for the line's set.
  void prefetch(std::uint32_t line) const;
  // Takes the least recently used place of the line's set; requires that the call before was find() of the
  // same line and gave null. The new line is empty, free at time 0.
  L2Line& allocate(std::uint32_t line, Victim& victim);

 private:
  static constexpr std::uint32_t kMaxWays = 16;
  static constexpr std::uint32_t kSetsPerGroup = 64;
  static constexpr std::uint32_t kSpanShift = 5'231;  // a prime

  struct alignas(64) Set {
    std::array<std::uint32_t, kMaxWays> tag{};  // 1 + line number, 0 empty
    std::uint64_t order = 0xfedcba9876543210;   // ways by nibble, least recently used in the highest used
    std::array<L2Line, kMaxWays> line{};
  };

  std::uint32_t index_of(std::uint32_t line) const;
  Set& set_of(std::uint32_t line);
  void touch(Set& set, std::uint32_t way) const;

  std::uint32_t ways_;
  std::uint32_t sets_;
  std::vector<std::unique_ptr<Set[]>> groups_;
  Set* last_ = nullptr;  // of the last find()
};

}  // namespace cm384::npu
