// Tags of a die's L2: set-associative lines of 512 B with sectors, true LRU, made on first touch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "base/text/units.h"
#include "hw/parameters/memory.h"
#include "npu_core/memory/divider.h"

namespace cm384::npu {

// One line of L2: its state of sectors, bit k is the line's k-th. Its holds stand in HeldLines.
class L2Line {
 public:
  std::uint8_t valid = 0;
  std::uint8_t dirty = 0;

 private:
  friend class L2Cache;
  std::uint32_t tag() const { return std::uint32_t{tag_[1]} << 16 | tag_[0]; }
  void set_tag(std::uint32_t tag) {
    tag_ = {static_cast<std::uint16_t>(tag), static_cast<std::uint16_t>(tag >> 16)};
  }
  std::array<std::uint16_t, 2> tag_{};  // 1 + line number, 0 empty; in halves, for a size of 6 B
};
static_assert(sizeof(L2Line) == 6);

class L2Cache {
 public:
  struct Victim {
    std::uint32_t line = 0;
    std::uint8_t dirty = 0;  // sectors to write back; 0 when there is nothing to do
  };

  // Throws InputError when the capacity is not a whole number of sets.
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
  // same line and gave null. The new line is empty.
  L2Line& allocate(std::uint32_t line, Victim& victim);
  // Sectors that a write-back is still owed for; looks at every line.
  std::uint64_t dirty_sectors() const;

 private:
  static constexpr std::uint32_t kMaxWays = 16;
  static constexpr std::uint32_t kSetsPerGroup = 64;
  static constexpr std::uint32_t kSpanShift = 5'231;  // a prime

  static constexpr std::uint32_t kNear = 3;

  // The ways filled first stand in the set itself, the others come into being with their first line: an
  // operator touches most sets and few ways, and an access needs one line of the host's cache.
  struct alignas(32) Set {
    std::uint64_t order = 0;  // ways by nibble, least recently used in the highest used
    std::uint32_t far = 0;    // 1 + number of the other ways, 0 before they are needed
    std::array<L2Line, kNear> near{};
  };
  static_assert(sizeof(Set) == 32);
  using Far = std::array<L2Line, kMaxWays - kNear>;
  static constexpr std::uint32_t kFarPerChunk = 64;

  // Room for all sets, taken with the first one made: in huge pages, untouched room of an idle die would be
  // resident beside what its neighbours touch. Sets are made in groups of a page.
  struct Release {
    void operator()(Set* sets) const { ::operator delete (sets, std::align_val_t{alignof(Set)}); }
  };
  std::uint32_t groups() const { return (sets_ + kSetsPerGroup - 1) / kSetsPerGroup; }
  bool is_made(std::uint32_t group) const { return made_[group / 64] >> (group % 64) & 1; }
  void make(std::uint32_t group);

  std::uint32_t index_of(std::uint32_t line) const;
  Set& set_of(std::uint32_t line);
  void touch(Set& set, std::uint32_t way) const;
  L2Line& line_of(Set& set, std::uint32_t way);
  Far& far_of(const Set& set) const {
    return far_[(set.far - 1) / kFarPerChunk][(set.far - 1) % kFarPerChunk];
  }

  std::uint32_t ways_;
  std::uint32_t sets_;
  Divider by_sets_;
  std::uint64_t first_order_ = 0;  // of an empty set: way 0 is the first to be filled
  std::unique_ptr<Set, Release> set_;
  std::vector<std::uint64_t> made_;  // groups, a bit each
  std::vector<std::unique_ptr<Far[]>> far_;
  std::uint32_t fars_ = 0;
  Set* last_ = nullptr;  // of the last find()
};

}  // namespace cm384::npu
