// Bytes in flight, and the tags that stand for tensor payload in payload mode `control`.
//
// Memory, UBuffers and packets know two kinds of 32 B blocks: plain blocks, which have bytes, and payload
// blocks, which in mode `control` have only a tag. A block that any payload byte was copied or computed into
// is a payload block. Reading a payload block gives kStandIn bytes. In mode `full` nothing is tagged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/engine/slab.h"

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

inline constexpr std::uint32_t kNoChunk = kNoRecord;

// What a request carries: a chunk of the pool with its bytes (absent when every block is tagged) and its
// tags.
struct Payload {
  std::uint32_t chunk = kNoChunk;
  TagMask tags = 0;
};

using Chunk = std::array<std::byte, kRequestBytes>;

// Chunks of all requests in flight: one pool a machine, 2 MiB at a time, up to 16 GiB. Indices and places
// stay valid until released.
class PayloadPool : public Slab<Chunk, 1u << 12, 1u << 25> {
 public:
  PayloadPool() : Slab("more than 16 GiB of payload in flight") {}

  // No effect where it holds none.
  void release(Payload& p) {
    if (p.chunk == kNoChunk) return;
    Slab::release(p.chunk);
    p.chunk = kNoChunk;
  }
  std::byte* bytes(std::uint32_t chunk) { return (*this)[chunk].data(); }
};

}  // namespace cm384::sim
