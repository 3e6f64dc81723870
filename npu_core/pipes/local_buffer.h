// A local buffer of a core (UBuffer, L1, L0A, ...), with one payload tag for every 32 B block.
//
// Bytes stand in pages of 512 B that come into being when plain bytes are first written: a supernode has
// 36,864 UBuffers (7 GB), most of which hold nothing but tags in payload mode `control`. A page nobody wrote
// reads as zeros; a payload block's bytes are whatever was there and must be read through load(), which gives
// the stand-in. Where plain bytes are written into a part of a payload block, that part is plain until the
// block becomes payload again.
//
// All cores of a die load the same tables, which grow with the number of ranks: a page of a table that
// another core has loaded alike stands once for both, until one of them writes something else there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
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

  // Buffers of one size whose cores run on the same worker: which buffer loaded each page last.
  class Siblings {
   public:
    explicit Siblings(std::uint32_t bytes) : pages_(bytes / kPageBytes) {}

   private:
    friend class LocalBuffer;
    // Loads that found no sibling's page alike, modulo 256. Where many in a row did, few look for one.
    static constexpr std::uint8_t kTries = 32;
    struct Loaded {
      LocalBuffer* by = nullptr;
      std::uint8_t misses = 0;
    };
    std::vector<Loaded> pages_;
  };
  // Before its first byte; both live equally long.
  void join(Siblings& siblings) { siblings_ = &siblings; }
  // A copy's last `bytes`, at most a page, have got as far as `end`: a page that ends there may be shared
  // with siblings.
  void loaded(std::uint32_t end, std::uint32_t bytes) {
    const std::uint32_t page = end / kPageBytes;  // behind the one that is complete
    if (siblings_ != nullptr && page != (end - bytes) / kPageBytes && pages_[page - 1]) share(page - 1);
  }

  // Which pages have been written: for the search for loops that change nothing.
  using Pages = std::array<std::uint64_t, 6>;       // bit k: page k of the UBuffer
  void note_writes(Pages* into) { noted_ = into; }  // null: no more
  std::uint64_t digest(const Pages& pages) const;   // of what they hold

  // Bytes of one page for reading or writing; a range handed out this way ends at the page's end.
  const std::byte* read(std::uint32_t offset) const {
    const auto& page = pages_[offset / kPageBytes];
    return (page ? page.bytes() : zero_page().data()) + offset % kPageBytes;
  }
  std::byte* write(std::uint32_t offset) {
    auto& page = pages_[offset / kPageBytes];
    if (!page || shares(offset)) [[unlikely]]
      make_own(offset);
    if (noted_ != nullptr) [[unlikely]]
      note(offset);
    return page.bytes() + offset % kPageBytes;
  }

  // Copies any range inside the buffer; load() puts the stand-in for bytes of payload blocks.
  void load(std::uint32_t offset, std::byte* to, std::uint32_t bytes) const;
  void store(std::uint32_t offset, const std::byte* from, std::uint32_t bytes);
  void fill_zero(std::uint32_t offset, std::uint32_t bytes);
  // Repeats a word over a range of whole 32 B blocks.
  void fill(std::uint32_t offset, std::uint32_t bytes, std::uint32_t word);

  // True once any block has been tagged: in payload mode `full` it stays false.
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

  // Pages that hold bytes; those of them that a sibling has too.
  std::uint32_t pages() const;
  std::uint32_t shared_pages() const;

  // Asks the host's cache for the tags and bytes at `offset`.
  void prefetch(std::uint32_t offset) const {
    if (offset >= bytes_) return;
    __builtin_prefetch(&payload_[offset / sim::kBlockBytes / 64], 1);
    if (const auto& page = pages_[offset / kPageBytes])
      __builtin_prefetch(page.bytes() + offset % kPageBytes, 1);
  }

 private:
  using Page = std::array<std::byte, kPageBytes>;
  static const Page& zero_page();
  // A reference to a page that several buffers of one worker may share.
  class PageOwner {
   public:
    PageOwner() = default;
    PageOwner(PageOwner&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
    PageOwner& operator=(PageOwner&& other) noexcept {
      std::swap(owned_, other.owned_);
      return *this;
    }
    ~PageOwner() { drop(); }
    explicit operator bool() const { return owned_ != nullptr; }
    std::byte* bytes() const { return owned_->bytes.data(); }
    bool shares() const { return owned_->owners > 1; }
    bool is(const PageOwner& other) const { return owned_ == other.owned_; }
    // A page of zeros, or a copy of one's own, that nobody else has.
    void make() { own(new Owned{}); }
    void make_copy() { own(new Owned{owned_->bytes, 1}); }
    void join(const PageOwner& other) {
      ++other.owned_->owners;
      own(other.owned_);
    }

   private:
    struct Owned {
      Page bytes{};
      std::uint32_t owners = 1;
    };
    void own(Owned* page) {
      drop();
      owned_ = page;
    }
    void drop() {
      if (owned_ != nullptr && --owned_->owners == 0) delete owned_;
    }
    Owned* owned_ = nullptr;
  };
  // A payload block of which some bytes are plain: bit k stands for byte k.
  struct Part {
    std::uint32_t block, plain;
  };
  void note(std::uint32_t offset) {
    const std::uint32_t page = offset / kPageBytes;
    (*noted_)[page / 64] |= std::uint64_t{1} << page % 64;
  }
  // Whether its page may have other owners.
  bool shares(std::uint32_t offset) const {
    const std::uint32_t page = offset / kPageBytes;
    return siblings_ != nullptr && (shared_[page / 64] >> page % 64 & 1) != 0;
  }
  void make_own(std::uint32_t offset);
  void share(std::uint32_t page);
  bool any(std::uint32_t first, std::uint32_t last) const;
  bool any_byte(std::uint32_t offset, std::uint32_t bytes) const;
  std::uint32_t plain_bytes(std::uint32_t block) const;
  void make_plain(std::uint32_t offset, std::uint32_t bytes);
  void make_part_plain(std::uint32_t offset, std::uint32_t bytes);

  std::uint32_t bytes_;
  std::vector<PageOwner> pages_;
  std::vector<std::uint64_t> payload_;
  std::vector<Part> parts_;  // in order of blocks
  Pages* noted_ = nullptr;
  Siblings* siblings_ = nullptr;  // of UBuffers
  Pages shared_{};                // pages that may have other owners
  bool tagged_ = false;
};

}  // namespace cm384::npu
