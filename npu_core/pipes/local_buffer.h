// A local buffer of a core (UBuffer, L1, L0A, ...), with one payload tag for every 32 B block.
//
// Bytes stand in pages of 512 B that come into being when plain bytes are first written: a supernode has
// 36,864 UBuffers (7 GB), most of which hold nothing but tags in payload mode `control`. A page nobody wrote
// reads as zeros; a payload block's bytes are whatever was there and must be read through load(), which gives
// the stand-in. Where plain bytes are written into a part of a payload block, that part is plain until the
// block becomes payload again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/engine/payload.h"

namespace cm384::npu {

class LocalBuffer {
 public:
  static constexpr std::uint32_t kPageBytes = 512;

  // `bytes`: a multiple of 2048.
  explicit LocalBuffer(std::uint32_t bytes)
      : bytes_(bytes),
        pages_((bytes + kPageBytes - 1) / kPageBytes),
        payload_((bytes / sim::kBlockBytes + 63) / 64) {}

  std::uint32_t bytes() const { return bytes_; }

  // Which pages have been written, for whoever looks for loops that change nothing.
  using Pages = std::array<std::uint64_t, 6>;       // bit k: page k of the UBuffer
  void note_writes(Pages* into) { noted_ = into; }  // null: no more
  std::uint64_t digest(const Pages& pages) const;   // of what they hold

  // Bytes of one page for reading or writing; a range handed out this way ends at the page's end.
  const std::byte* read(std::uint32_t offset) const {
    const auto& page = pages_[offset / kPageBytes];
    return (page ? page->data() : zero_page().data()) + offset % kPageBytes;
  }
  std::byte* write(std::uint32_t offset) {
    auto& page = pages_[offset / kPageBytes];
    if (!page) page = std::make_unique<Page>();
    if (noted_ != nullptr) [[unlikely]]
      note(offset);
    return page->data() + offset % kPageBytes;
  }

  // Copies any range inside the buffer; load() puts the stand-in for bytes of payload blocks.
  void load(std::uint32_t offset, std::byte* to, std::uint32_t bytes) const;
  void store(std::uint32_t offset, const std::byte* from, std::uint32_t bytes);
  void fill_zero(std::uint32_t offset, std::uint32_t bytes);
  // Repeats a word over a range of whole 32 B blocks.
  void fill(std::uint32_t offset, std::uint32_t bytes, std::uint32_t word);

  // True once any block has been tagged since reset_tags(): in payload mode `full` it stays false.
  bool tagged() const { return tagged_; }
  // Whether any byte of [offset, offset + bytes) is payload. bytes > 0.
  bool payload(std::uint32_t offset, std::uint32_t bytes) const {
    return tagged_ && any(offset / sim::kBlockBytes, (offset + bytes - 1) / sim::kBlockBytes) &&
           (parts_.empty() || any_byte(offset, bytes));
  }
  // Makes every block the range touches payload (or plain).
  void set_payload(std::uint32_t offset, std::uint32_t bytes, bool payload);
  // Plain bytes have been written: other bytes of the blocks at both ends stay what they are.
  void set_plain(std::uint32_t offset, std::uint32_t bytes) {
    if (tagged_ && bytes != 0) make_plain(offset, bytes);
  }
  // Tags of the 32 B pieces of [offset, offset + bytes), counted from `offset`; bytes <= 512.
  sim::TagMask tags(std::uint32_t offset, std::uint32_t bytes) const;
  // Adds tags of 32 B pieces counted from `offset` to the blocks they fall on.
  void add_tags(std::uint32_t offset, std::uint32_t bytes, sim::TagMask tags);
  void reset_tags();

  // Pages that hold bytes, for reports on memory.
  std::uint32_t pages() const;

  // Asks the host's cache for the tags and bytes at `offset`.
  void prefetch(std::uint32_t offset) const {
    if (offset >= bytes_) return;
    __builtin_prefetch(&payload_[offset / sim::kBlockBytes / 64], 1);
    if (const auto& page = pages_[offset / kPageBytes]) __builtin_prefetch(&(*page)[offset % kPageBytes], 1);
  }

 private:
  using Page = std::array<std::byte, kPageBytes>;
  static const Page& zero_page();
  // A payload block of which some bytes are plain: bit k stands for byte k.
  struct Part {
    std::uint32_t block, plain;
  };
  void note(std::uint32_t offset) {
    const std::uint32_t page = offset / kPageBytes;
    (*noted_)[page / 64] |= std::uint64_t{1} << page % 64;
  }
  bool any(std::uint32_t first, std::uint32_t last) const;
  bool any_byte(std::uint32_t offset, std::uint32_t bytes) const;
  std::uint32_t plain_bytes(std::uint32_t block) const;
  void make_plain(std::uint32_t offset, std::uint32_t bytes);
  void make_part_plain(std::uint32_t offset, std::uint32_t bytes);

  std::uint32_t bytes_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<std::uint64_t> payload_;
  std::vector<Part> parts_;  // in order of blocks
  Pages* noted_ = nullptr;
  bool tagged_ = false;
};

}  // namespace cm384::npu
