// The bytes of one die's HBM (or of a CPU socket's DRAM), sparse, in both payload modes
// (base/engine/payload.h).
//
// A directory of 4 KiB pages made on first touch; a page holds a tag for each 32 B block and up to eight
// lines of 512 B, each made when a plain block of it is first written. A line of which only one pair of
// blocks was written keeps that pair alone: of what an operator writes in mode `control` most is a few bytes
// beside payload. Memory nobody wrote reads 0 and is plain.
//
// Tags when a write does not cover whole blocks: payload wins. A block that gets any payload byte becomes
// payload, and a plain write to a part of a payload block leaves it payload (its bytes cannot be read back);
// only a plain write of the whole block makes it plain again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

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

  // Adds elements to memory, or takes the larger or smaller ones, by an atomic operation: at most 512 B,
  // offset and bytes multiples of its element. One that is payload on either side leaves payload. `old` (may
  // be null) gets what was there before; returns its tags.
  sim::TagMask atomic_add(std::uint64_t offset, const std::byte* operand, std::uint32_t bytes,
                          sim::TagMask tags, sim::Operation operation, std::byte* old);

  // Asks the host's cache for the tags at `offset`.
  void prefetch(std::uint64_t offset) const {
    if (const Page* page = find(offset)) __builtin_prefetch(page, 1);
  }

  // Any length, for the host. read_bytes gives kStandIn for payload; write_bytes writes plain bytes.
  void read_bytes(std::uint64_t offset, std::byte* into, std::uint64_t bytes) const;
  void write_bytes(std::uint64_t offset, const std::byte* from, std::uint64_t bytes);
  // Makes every block payload that [offset, offset + bytes) touches (mode `control`).
  void mark_payload(std::uint64_t offset, std::uint64_t bytes);
  // True when a block of [offset, offset + bytes) is payload.
  bool has_payload(std::uint64_t offset, std::uint64_t bytes) const;
  // A direct pointer to the 512 B line of `offset` (TLM's DMI); null where a block of it is payload. The
  // pointer is valid until a block of the line becomes payload, or until clear().
  std::byte* lend_line(std::uint64_t offset);
  // Offsets of lines whose direct pointers have become invalid since the last call.
  std::vector<std::uint64_t> pop_invalidated_lines() { return std::exchange(invalidated_lines_, {}); }
  // Releases [offset, offset + bytes): its bytes read 0 and are plain, except for a block of payload that
  // reaches beyond the range.
  void forget(std::uint64_t offset, std::uint64_t bytes);
  // Resets the store: all bytes are 0 and plain.
  void clear();

  // Host memory held, in bytes.
  std::uint64_t footprint() const;

 private:
  static constexpr std::uint32_t kPageBytes = 4096;
  static constexpr std::uint32_t kLineBytes = sim::kRequestBytes;
  static constexpr std::uint32_t kLinesPerPage = kPageBytes / kLineBytes;
  static constexpr std::uint32_t kBlocksPerLine = kLineBytes / sim::kBlockBytes;
  // Pages that a group covers, 256 KiB, and groups that a leaf of the directory covers, 16 MiB.
  static constexpr std::uint32_t kGroupPages = 64, kLeafGroups = 64;
  static constexpr std::uint64_t kGroupBytes = std::uint64_t{kGroupPages} * kPageBytes;
  static constexpr std::uint32_t kPairBytes = 2 * sim::kBlockBytes;

  // Places of one size, zero when they are handed out first; named by 1 + index.
  class Slab {
   public:
    explicit Slab(std::uint32_t bytes) : bytes_(bytes) {}
    // Throws MachineError where no more can be named.
    std::uint32_t allocate();
    // Its bytes must be zero.
    void release(std::uint32_t place) { free_.push_back(place); }
    std::byte* at(std::uint32_t place) const {
      return chunks_[(place - 1) / kTogether].get() + std::size_t{(place - 1) % kTogether} * bytes_;
    }
    void clear();
    std::uint64_t footprint() const {
      return chunks_.size() * kTogether * bytes_ + free_.capacity() * sizeof free_[0];
    }

   private:
    static constexpr std::uint32_t kTogether = 32;
    static constexpr std::uint32_t kMost = (1u << 28) - 1;  // what a Place can name
    std::uint32_t bytes_;
    std::uint32_t used_ = 0;
    std::vector<std::unique_ptr<std::byte[]>> chunks_;
    std::vector<std::uint32_t> free_;
  };

  // Where a line's bytes stand: nowhere (all zero), a pair of its blocks, or the whole line.
  struct Place {
    std::uint32_t whole : 1 = 0;
    std::uint32_t pair : 3 = 0;    // which one, where not whole
    std::uint32_t place : 28 = 0;  // in lines_ or pairs_; 0 nowhere
  };
  static_assert(sizeof(Place) == 4);

  struct Page {
    std::uint16_t tags[kLinesPerPage] = {};  // bit k: block k of the line is payload
    Place line[kLinesPerPage] = {};
  };

  // The index of a page that is payload as a whole and has no place of its own; what stands for such a page
  // and for one that nobody wrote.
  static constexpr std::uint32_t kPayloadPage = UINT32_MAX;
  static const Page kPayload, kPlain;

  using Group = std::array<std::uint32_t, kGroupPages>;  // 1 + index in pages_, 0 untouched
  // All groups of payload alone are one, which nobody writes: weights and caches are most of what a die has.
  struct FreeGroup {
    void operator()(Group* group) const {
      if (group != &payload_group_) delete group;
    }
  };
  using GroupPointer = std::unique_ptr<Group, FreeGroup>;
  using Leaf = std::array<GroupPointer, kLeafGroups>;

  const Page* find(std::uint64_t offset) const;
  void invalidate_line(std::uint64_t offset);
  // After a line of the page became payload: its place is free for another page where all of it is.
  void release_if_payload(std::uint32_t& index);
  static Group payload_group_;
  static bool is_shared(const GroupPointer& group) { return group.get() == &payload_group_; }
  // Of a page; may be empty, or that of payload.
  GroupPointer& group_of(std::uint64_t offset);
  // The page's index in its group, which is made where it is not there or is shared.
  static std::uint32_t& index_in(GroupPointer& group, std::uint64_t offset);
  std::uint32_t& index_of(std::uint64_t offset) { return index_in(group_of(offset), offset); }
  Page& page_at(std::uint32_t& index);
  Page& touch(std::uint64_t offset) { return page_at(index_of(offset)); }
  // Within a line: copies bytes out; makes room for bytes to be written.
  void copy_out(Place line, std::uint32_t begin, std::byte* into, std::uint32_t bytes) const;
  std::byte* make_room(Place& line, std::uint32_t begin, std::uint32_t bytes);
  sim::TagMask read_in_line(std::uint64_t offset, std::byte* into, std::uint32_t bytes) const;
  void write_in_line(std::uint64_t offset, const std::byte* from, std::uint32_t bytes,
                     std::uint32_t payload_blocks);

  std::uint64_t capacity_;
  std::vector<std::unique_ptr<Leaf>> directory_;
  std::vector<Page> pages_;
  std::vector<std::uint32_t> free_pages_;  // indices
  Slab lines_{kLineBytes}, pairs_{kPairBytes};
  std::set<std::uint64_t> lent_lines_;  // offsets of lines
  std::vector<std::uint64_t> invalidated_lines_;
};

}  // namespace cm384::npu
