// The caches of one scalar unit. Made when the core first runs, so that idle cores stay small.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/engine/payload.h"
#include "hw/parameters/scalar_core.h"

namespace cm384::npu {

// Set-associative tags, replaced round robin within a set. A slot is set * ways + way.
class CacheTags {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint64_t kInvalid = ~std::uint64_t{0};

  CacheTags(Bytes size, int ways, Bytes line)
      : ways_(static_cast<std::uint32_t>(ways)),
        sets_(static_cast<std::uint32_t>(size.count / line.count / ways)),
        lines_(std::size_t{ways_} * sets_, kInvalid),
        next_(sets_, 0) {}

  std::uint32_t slots() const { return ways_ * sets_; }
  std::uint32_t find(std::uint64_t line) const {
    const std::uint32_t first = set_of(line) * ways_;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (lines_[first + way] == line) return first + way;
    }
    return kNone;
  }
  // The slot a missing line goes to: an empty one, or the next in turn. Asking does not change the turn.
  std::uint32_t victim(std::uint64_t line) const {
    const std::uint32_t empty = find_in_set(set_of(line), kInvalid);
    return empty != kNone ? empty : set_of(line) * ways_ + next_[set_of(line)];
  }
  std::uint64_t line(std::uint32_t slot) const { return lines_[slot]; }
  void set(std::uint32_t slot, std::uint64_t line) {
    lines_[slot] = line;
    if (line == kInvalid) return;
    std::uint8_t& next = next_[slot / ways_];
    if (slot % ways_ == next) next = static_cast<std::uint8_t>((next + 1u) % ways_);
  }
  void clear() {
    lines_.assign(lines_.size(), kInvalid);
    next_.assign(next_.size(), 0);
  }

 private:
  std::uint32_t set_of(std::uint64_t line) const { return static_cast<std::uint32_t>(line % sets_); }
  std::uint32_t find_in_set(std::uint32_t set, std::uint64_t line) const {
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (lines_[set * ways_ + way] == line) return set * ways_ + way;
    }
    return kNone;
  }

  std::uint32_t ways_, sets_;
  std::vector<std::uint64_t> lines_;
  std::vector<std::uint8_t> next_;
};

// The host's shortcut to a 64 B piece of the data cache: where the tag fits, the line is in the cache (and,
// for stores, dirty), holds no payload, and its bytes stand at `host`. No part of the timing.
struct Shortcut {
  static constexpr std::uint64_t kBytes = 64;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t load_tag = kNone;
  std::uint64_t store_tag = kNone;
  std::byte* host = nullptr;
};

struct CoreCaches {
  static constexpr std::size_t kShortcuts = 128;
  static constexpr std::size_t kFetchShortcuts = 256;

  explicit CoreCaches(const hw::ScalarCoreParameters& p)
      : instruction(p.instruction_cache, p.instruction_cache_ways, p.instruction_cache_line),
        data(p.data_cache, p.data_cache_ways, p.data_cache_line),
        dirty(data.slots(), false),
        line_bytes(static_cast<std::uint32_t>(p.data_cache_line.count)) {
    fetched.fill(CacheTags::kInvalid);
  }

  // Empties the data cache and completes prefetches in flight; the instruction cache keeps its lines.
  void drop_data() {
    drop_all_shortcuts();
    data.clear();
    dirty.assign(dirty.size(), false);
    under_way.clear();
  }

  Shortcut& shortcut(std::uint64_t address) { return shortcuts[address / Shortcut::kBytes % kShortcuts]; }
  void drop_shortcuts(std::uint64_t address, std::uint64_t bytes) {
    for (std::uint64_t a = address; a < address + bytes; a += Shortcut::kBytes) shortcut(a) = Shortcut{};
  }
  void drop_all_shortcuts() { shortcuts.fill(Shortcut{}); }

  // GM lines have data of their own.
  std::byte* gm_line(std::uint32_t slot) { return gm(slot).bytes.get(); }
  sim::TagMask& gm_tag(std::uint32_t slot) { return gm(slot).tags; }

  std::size_t footprint() const {
    const std::size_t bytes = sizeof *this + 9 * (std::size_t{instruction.slots()} + data.slots()) +
                              gm_place.size() * sizeof gm_place[0] +
                              gm_lines.size() * (sizeof(GmLine) + line_bytes);
    return bytes;
  }

  std::array<Shortcut, kShortcuts> shortcuts{};
  // Lines known to be in the instruction cache.
  std::array<std::uint64_t, kFetchShortcuts> fetched{};
  CacheTags instruction;
  // Lines of the instruction cache that a prefetch still brings, with the cycle at which they are there.
  std::vector<std::pair<std::uint64_t, std::int64_t>> under_way;
  CacheTags data;
  std::vector<bool> dirty;
  struct GmLine {
    std::unique_ptr<std::byte[]> bytes;
    sim::TagMask tags = 0;
  };
  std::vector<std::uint32_t> gm_place;  // by slot: 1 + number of its GmLine, 0 none yet
  std::deque<GmLine> gm_lines;          // stay where they are
  std::uint32_t line_bytes;

 private:
  GmLine& gm(std::uint32_t slot) {
    if (gm_place.empty()) gm_place.resize(data.slots(), 0);
    std::uint32_t& place = gm_place[slot];
    if (place == 0) {
      gm_lines.push_back({std::make_unique<std::byte[]>(line_bytes), 0});
      place = static_cast<std::uint32_t>(gm_lines.size());
    }
    return gm_lines[place - 1];
  }
};

}  // namespace cm384::npu
