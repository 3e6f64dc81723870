// Tags of a die's L2: set-associative lines of 512 B with sectors, true LRU, made on first touch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "hw/parameters/memory.h"
#include "hw/units.h"
#include "npu_core/memory/divider.h"

namespace cm384::npu {

// One line of L2. Sector masks: bit k is the line's k-th sector.
struct L2Line {
  Time free{};            // its hold by `holder` ends; `free - hold` is when the line's data was last ready
  std::uint32_t tag = 0;  // 1 + line number, 0 empty; L2Cache's own
  std::uint16_t holder = 0;  // requester that used it last
  std::uint8_t valid = 0;
  std::uint8_t dirty = 0;
};

class L2Cache {
 public:
  struct Victim {
    std::uint32_t line = 0;
    std::uint8_t dirty = 0;  // sectors to write back; 0 when there is nothing to do
  };

  // Throws InputError when the capacity is no whole number of sets.
  explicit L2Cache(const hw::L2& parameters);
  ~L2Cache();
  L2Cache(const L2Cache&) = delete;
  L2Cache& operator=(const L2Cache&) = delete;

  std::uint32_t sets() const { return sets_; }
  // Line number (offset / 512), or null; a found line becomes the most recently used.
  L2Line* find(std::uint32_t line);
  // Asks the host's cache for the line's set.
  void prefetch(std::uint32_t line) const;
  // The same for the ways that do not stand in the set itself, once the set is there.
  void prefetch_far(std::uint32_t line) const;
  // Takes the least recently used place of the line's set; requires that the call before was find() of the
  // same line and gave null. The new line is empty, free at time 0.
  L2Line& allocate(std::uint32_t line, Victim& victim);
  // Sectors that a write-back is still owed for; looks at every line.
  std::uint64_t dirty_sectors() const;

 private:
  static constexpr std::uint32_t kMaxWays = 16;
  static constexpr std::uint32_t kSetsPerGroup = 64;
  static constexpr std::uint32_t kSpanShift = 5'231;  // a prime

  static constexpr std::uint32_t kNear = 3;

  // The ways filled first stand in the set itself, the others come into being with their first line: an
  // operator touches most sets and few ways, and a host's cache line holds what an access needs.
  struct alignas(64) Set {
    std::uint64_t order = 0;  // ways by nibble, least recently used in the highest used
    std::unique_ptr<std::array<L2Line, kMaxWays - kNear>> far;
    std::array<L2Line, kNear> near{};
  };
  static_assert(sizeof(Set) == 64);

  // Room for all sets, whose pages the host gives when they are touched; sets are made in groups of a page.
  struct Release {
    void operator()(Set* sets) const { ::operator delete (sets, std::align_val_t{alignof(Set)}); }
  };
  bool is_made(std::uint32_t group) const { return made_[group / 64] >> (group % 64) & 1; }
  void make(std::uint32_t group);

  std::uint32_t index_of(std::uint32_t line) const;
  Set& set_of(std::uint32_t line);
  void touch(Set& set, std::uint32_t way) const;
  L2Line& line_of(Set& set, std::uint32_t way) const;

  std::uint32_t ways_;
  std::uint32_t sets_;
  Divider by_sets_;
  std::uint64_t first_order_ = 0;  // of an empty set: way 0 is the first to be filled
  std::unique_ptr<Set, Release> set_;
  std::vector<std::uint64_t> made_;  // groups, a bit each
  Set* last_ = nullptr;              // of the last find()
};

}  // namespace cm384::npu
