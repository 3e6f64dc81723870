// Bytes in flight, and the tags that stand for tensor payload in payload mode `control`.
//
// Memory, UBuffers and packets know two kinds of 32 B blocks: plain blocks, which have bytes, and payload
// blocks, which in mode `control` have only a tag. A block that any payload byte was copied or computed into
// is a payload block. Reading a payload block gives kStandIn bytes. In mode `full` nothing is tagged.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cm384::sim {

inline constexpr std::uint32_t kBlockBytes = 32;     // grain of a tag: the UBuffer's DataBlock
inline constexpr std::uint32_t kRequestBytes = 512;  // grain of a memory or Unified Bus request
inline constexpr std::byte kStandIn{0x3c};           // every byte of a payload block reads as this

// Bit k set: bytes [32 k, 32 k + 32) of a request (counted from its first byte) are payload. A request has at
// most 512 B.
using TagMask = std::uint32_t;

// All blocks of a request of `bytes` bytes.
constexpr TagMask all_tags(std::uint32_t bytes) {
  return static_cast<TagMask>((std::uint64_t{1} << ((bytes + kBlockBytes - 1) / kBlockBytes)) - 1);
}

inline constexpr std::uint32_t kNoChunk = 0xffffffff;

// What a request carries: a chunk of the pool with its bytes (absent when every block is tagged) and its
// tags.
struct Payload {
  std::uint32_t chunk = kNoChunk;
  TagMask tags = 0;
};

// Slab of 512 B chunks. One pool a machine; indices stay valid until released.
class PayloadPool {
 public:
  std::uint32_t allocate() {
    if (free_.empty()) {
      slab_.emplace_back();
      return static_cast<std::uint32_t>(slab_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void release(Payload& p) {
    if (p.chunk != kNoChunk) free_.push_back(p.chunk);
    p.chunk = kNoChunk;
  }
  std::byte* bytes(std::uint32_t chunk) { return slab_[chunk].data(); }
  std::size_t in_use() const { return slab_.size() - free_.size(); }

 private:
  std::deque<std::array<std::byte, kRequestBytes>> slab_;
  std::vector<std::uint32_t> free_;
};

}  // namespace cm384::sim
