// The bytes of one die's HBM (or of a CPU socket's DRAM), sparse, in both payload modes (sim/payload.h).
//
// A directory of 4 KiB pages made on first touch; a page holds a tag for each 32 B block and up to eight
// lines of 512 B, each made when a plain block of it is first written. Memory nobody wrote reads 0 and is
// plain.
//
// Tags when a write does not cover whole blocks: payload wins. A block that gets any payload byte becomes
// payload, and a plain write to a part of a payload block leaves it payload (its bytes cannot be read back);
// only a plain write of the whole block makes it plain again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/units.h"
#include "sim/payload.h"
#include "sim/transaction.h"

namespace cm384::npu {

class BackingStore {
 public:
  // `capacity` in bytes, a multiple of 512. Allocates nothing.
  explicit BackingStore(Bytes capacity) : capacity_(static_cast<std::uint64_t>(capacity.count)) {}

  std::uint64_t capacity() const { return capacity_; }
  // True when all of [offset, offset + bytes) lies inside. Every other function requires it.
  bool contains(std::uint64_t offset, std::uint64_t bytes) const {
    return bytes <= capacity_ && offset <= capacity_ - bytes;
  }

  // One request of at most 512 B at any alignment. Tags count 32 B from the request's first byte; where
  // request and store blocks do not coincide a request block is payload if any of its bytes is.
  sim::TagMask read(std::uint64_t offset, std::byte* into, std::uint32_t bytes) const;
  // `from` may be null when every block is tagged.
  void write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes, sim::TagMask tags);

  // Adds `bytes / 4` elements of s32 (wrapping) or f32 to memory, at most 512 B, offset a multiple of 4. An
  // element that is payload on either side leaves payload. `old` (may be null) gets what was there before;
  // returns its tags.
  sim::TagMask atomic_add(std::uint64_t offset, const std::byte* operand, std::uint32_t bytes,
                          sim::TagMask tags, bool floating, std::byte* old);

  // Asks the host's cache for the tags at `offset`.
  void prefetch(std::uint64_t offset) const {
    if (const Page* page = find(offset)) __builtin_prefetch(page, 1);
  }

  // Any length, for the host. read_bytes gives kStandIn for payload; write_bytes writes plain bytes.
  void read_bytes(std::uint64_t offset, std::byte* into, std::uint64_t bytes) const;
  void write_bytes(std::uint64_t offset, const std::byte* from, std::uint64_t bytes);
  // Makes every block that [offset, offset + bytes) touches payload (mode `control`).
  void mark_payload(std::uint64_t offset, std::uint64_t bytes);
  // True when a block of [offset, offset + bytes) is payload.
  bool has_payload(std::uint64_t offset, std::uint64_t bytes) const;
  // Forgets everything: all bytes 0 and plain.
  void clear();

  // Causality for replay by dependency: who wrote a 512 B line last. Costs nothing until enabled.
  void enable_last_writer() { keep_last_writer_ = true; }
  void set_last_writer(std::uint64_t offset, sim::TransactionId writer);
  // 0 when not enabled or never written.
  sim::TransactionId last_writer(std::uint64_t offset) const;

  // Host memory held, in bytes.
  std::uint64_t footprint() const;

 private:
  static constexpr std::uint32_t kPageBytes = 4096;
  static constexpr std::uint32_t kLineBytes = sim::kRequestBytes;
  static constexpr std::uint32_t kLinesPerPage = kPageBytes / kLineBytes;
  static constexpr std::uint32_t kBlocksPerLine = kLineBytes / sim::kBlockBytes;
  static constexpr std::uint32_t kLeafPages = 4096;     // pages a leaf of the directory covers: 16 MiB
  static constexpr std::uint32_t kLinesPerChunk = 128;  // lines allocated together

  struct Page {
    std::uint16_t tags[kLinesPerPage] = {};  // bit k: block k of the line is payload
    std::uint32_t line[kLinesPerPage] = {};  // 1 + index of the line's bytes, 0 while it has none
  };

  const Page* find(std::uint64_t offset) const;
  Page& touch(std::uint64_t offset);
  std::byte* line_bytes(std::uint32_t line) const {
    return chunks_[(line - 1) / kLinesPerChunk].get() + std::size_t{(line - 1) % kLinesPerChunk} * kLineBytes;
  }
  std::byte* touch_line(Page& page, std::uint32_t index);
  sim::TagMask read_in_line(std::uint64_t offset, std::byte* into, std::uint32_t bytes) const;
  void write_in_line(std::uint64_t offset, const std::byte* from, std::uint32_t bytes,
                     std::uint32_t payload_blocks);

  std::uint64_t capacity_;
  bool keep_last_writer_ = false;
  std::vector<std::unique_ptr<std::uint32_t[]>> directory_;  // leaves: 1 + index in pages_, 0 untouched
  std::vector<Page> pages_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::uint32_t lines_ = 0;
  std::vector<sim::TransactionId> last_writers_;  // by page index and line
};

}  // namespace cm384::npu
