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
#include <memory>
#include <mutex>
#include <vector>

#include "base/engine/worker.h"
#include "base/text/error.h"

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

// Slab of 512 B chunks. One pool a machine; indices and places stay valid until released. Each worker has a
// list of free ones.
class PayloadPool {
 public:
  void set_workers(unsigned workers) { lists_.set_workers(workers); }

  std::uint32_t allocate() {
    List& list = lists_.mine();
    ++list.taken;
    if (!list.free.empty()) {
      const std::uint32_t index = list.free.back();
      list.free.pop_back();
      return index;
    }
    if (list.fresh == list.end) grow(list);
    return list.fresh++;
  }
  void release(Payload& p) {
    if (p.chunk == kNoChunk) return;
    List& list = lists_.mine();
    --list.taken;
    list.free.push_back(p.chunk);
    p.chunk = kNoChunk;
  }
  std::byte* bytes(std::uint32_t chunk) { return pages_[chunk / kPage][chunk % kPage].data(); }
  std::size_t in_use() const {
    std::ptrdiff_t sum = 0;
    lists_.each([&](const List& list) { sum += list.taken; });
    return static_cast<std::size_t>(sum);
  }
  // Chunks go from those who send to those who receive: gives the worker with the shortest list half of what
  // the one with the longest has more. While no worker runs.
  void balance() {
    constexpr std::size_t kSlack = 1024;
    List* longest = &lists_.of(0);
    List* shortest = longest;
    lists_.each([&](List& list) {
      if (list.free.size() > longest->free.size()) longest = &list;
      if (list.free.size() < shortest->free.size()) shortest = &list;
    });
    const std::size_t more = longest->free.size() - shortest->free.size();
    if (more < kSlack) return;
    const auto half = longest->free.end() - static_cast<std::ptrdiff_t>(more / 2);
    shortest->free.insert(shortest->free.end(), half, longest->free.end());
    longest->free.erase(half, longest->free.end());
  }

 private:
  using Chunk = std::array<std::byte, kRequestBytes>;
  static constexpr std::uint32_t kPage = 4096;   // chunks: 2 MiB
  static constexpr std::uint32_t kPages = 8192;  // at most: 16 GiB
  struct List {
    std::vector<std::uint32_t> free;
    std::uint32_t fresh = 0, end = 0;  // never handed out yet
    std::ptrdiff_t taken = 0;
  };
  void grow(List& list) {
    const std::lock_guard lock(*growing_);
    if (used_ == kPages) throw MachineError("more than 16 GiB of payload in flight");
    pages_[used_] = std::make_unique_for_overwrite<Chunk[]>(kPage);
    list.fresh = used_++ * kPage;
    list.end = list.fresh + kPage;
  }

  PerWorker<List> lists_;
  std::unique_ptr<std::mutex> growing_ = std::make_unique<std::mutex>();
  std::uint32_t used_ = 0;  // pages
  // Never moves: others read it while one grows.
  std::unique_ptr<std::unique_ptr<Chunk[]>[]> pages_ = std::make_unique<std::unique_ptr<Chunk[]>[]>(kPages);
};

}  // namespace cm384::sim
