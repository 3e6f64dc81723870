// First-fit allocator of ranges of a memory. While nothing was freed each range lies behind the one before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace cm384::host {

class MemoryRanges {
 public:
  struct Range {
    std::uint64_t begin = 0, bytes = 0;
  };

  // Where `bytes` (0 counts as 1) begin, a multiple of `alignment` (a power of two); nothing where `capacity`
  // has no room.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t capacity);
  // The range that allocate() gave at `begin` is free again, with what lay before it for its alignment.
  // Returns it; nothing where none begins there.
  std::optional<Range> release(std::uint64_t begin);
  // Whether all of [begin, begin + bytes) is allocated.
  bool holds(std::uint64_t begin, std::uint64_t bytes) const;
  // Bytes allocated, padding for alignment included.
  std::uint64_t used() const;

 private:
  struct Taken {
    std::uint64_t bytes = 0, before = 0;  // `before`: for alignment
  };
  std::map<std::uint64_t, Taken> taken_;          // by begin
  std::map<std::uint64_t, std::uint64_t> holes_;  // bytes by begin; neighbours are one
  std::uint64_t end_ = 0;                         // of all that was given out
};

}  // namespace cm384::host
