#include "npu_core/pipes/local_buffer.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>

namespace cm384::npu {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

// Bits first..last of the 64-bit word that holds block `word * 64` on.
std::uint64_t word_mask(std::uint32_t word, std::uint32_t first, std::uint32_t last) {
  const std::uint64_t from = word == first / 64 ? kAll << (first % 64) : kAll;
  const std::uint64_t to = word == last / 64 ? kAll >> (63 - last % 64) : kAll;
  return from & to;
}

// Of the block that holds `offset`, the bytes of [offset, end) that lie in it: bit k stands for byte k.
std::uint32_t bytes_in_block(std::uint32_t offset, std::uint32_t end) {
  const std::uint32_t first = offset % sim::kBlockBytes;
  const std::uint32_t count = std::min(end - offset, sim::kBlockBytes - first);
  return static_cast<std::uint32_t>(((std::uint64_t{1} << count) - 1) << first);
}
std::uint32_t block_end(std::uint32_t offset) {
  return (offset / sim::kBlockBytes + 1) * sim::kBlockBytes;
}

}  // namespace

const LocalBuffer::Page& LocalBuffer::zero_page() {
  static const Page page{};
  return page;
}

void LocalBuffer::make_own(std::uint32_t offset) {
  const std::uint32_t number = offset / kPageBytes;
  PageOwner& page = pages_[number];
  if (!page) {
    page.make();
  } else if (page.shares()) {
    page.make_copy();
  }
  if (siblings_ != nullptr) shared_[number / 64] &= ~(std::uint64_t{1} << number % 64);
}

void LocalBuffer::share(std::uint32_t page) {
  Siblings::Loaded& last = siblings_->pages_[page];
  LocalBuffer* const other = std::exchange(last.by, this);
  if (other == nullptr || other == this || !other->pages_[page] || other->pages_[page].is(pages_[page]))
    return;
  if (last.misses++ >= Siblings::kTries) return;
  if (std::memcmp(other->pages_[page].bytes(), pages_[page].bytes(), kPageBytes) != 0) return;
  last.misses = 0;
  pages_[page].join(other->pages_[page]);
  for (LocalBuffer* const buffer : {this, other}) buffer->shared_[page / 64] |= std::uint64_t{1} << page % 64;
}

void LocalBuffer::load(std::uint32_t offset, std::byte* to, std::uint32_t bytes) const {
  const std::uint32_t begin = offset;
  for (std::uint32_t done = 0; done < bytes;) {
    const std::uint32_t n = std::min(bytes - done, kPageBytes - offset % kPageBytes);
    std::memcpy(to + done, read(offset), n);
    done += n;
    offset += n;
  }
  if (bytes == 0 || !payload(begin, bytes)) return;
  for (std::uint32_t at = begin; at < begin + bytes;) {
    const std::uint32_t end = std::min(begin + bytes, block_end(at));
    const std::uint32_t block = at / sim::kBlockBytes;
    if (any(block, block)) {
      const std::uint32_t plain = plain_bytes(block);
      for (; at < end; ++at) {
        if ((plain >> at % sim::kBlockBytes & 1u) == 0) to[at - begin] = sim::kStandIn;
      }
    }
    at = end;
  }
}

void LocalBuffer::store(std::uint32_t offset, const std::byte* from, std::uint32_t bytes) {
  for (std::uint32_t done = 0; done < bytes;) {
    const std::uint32_t n = std::min(bytes - done, kPageBytes - offset % kPageBytes);
    // A table that is loaded anew stays shared.
    if (!shares(offset) || noted_ != nullptr || std::memcmp(read(offset), from + done, n) != 0)
      std::memcpy(write(offset), from + done, n);
    done += n;
    offset += n;
  }
}

void LocalBuffer::fill_zero(std::uint32_t offset, std::uint32_t bytes) {
  for (std::uint32_t done = 0; done < bytes;) {
    const std::uint32_t n = std::min(bytes - done, kPageBytes - offset % kPageBytes);
    if (pages_[offset / kPageBytes]) std::memset(write(offset), 0, n);
    done += n;
    offset += n;
  }
}

void LocalBuffer::fill(std::uint32_t offset, std::uint32_t bytes, std::uint32_t word) {
  if (word == 0) return fill_zero(offset, bytes);
  std::array<std::uint32_t, kPageBytes / sizeof word> words;
  words.fill(word);
  for (std::uint32_t done = 0; done < bytes;) {
    const std::uint32_t n = std::min(bytes - done, kPageBytes - offset % kPageBytes);
    std::memcpy(write(offset), words.data(), n);
    done += n;
    offset += n;
  }
}

bool LocalBuffer::any(std::uint32_t first, std::uint32_t last) const {
  for (std::uint32_t w = first / 64; w <= last / 64; ++w) {
    if ((payload_[w] & word_mask(w, first, last)) != 0) return true;
  }
  return false;
}

std::uint32_t LocalBuffer::plain_bytes(std::uint32_t block) const {
  const auto part = std::ranges::lower_bound(parts_, block, {}, &Part::block);
  return part != parts_.end() && part->block == block ? part->plain : 0;
}

bool LocalBuffer::any_byte(std::uint32_t offset, std::uint32_t bytes) const {
  const std::uint32_t end = offset + bytes;
  for (std::uint32_t at = offset; at < end; at = block_end(at)) {
    const std::uint32_t block = at / sim::kBlockBytes;
    if (any(block, block) && (bytes_in_block(at, end) & ~plain_bytes(block)) != 0) return true;
  }
  return false;
}

void LocalBuffer::make_plain(std::uint32_t offset, std::uint32_t bytes) {
  const std::uint32_t end = offset + bytes;
  const std::uint32_t first = (offset + sim::kBlockBytes - 1) / sim::kBlockBytes * sim::kBlockBytes;
  const std::uint32_t last = end / sim::kBlockBytes * sim::kBlockBytes;
  if (first < last) set_payload(first, last - first, false);
  if (offset < first) make_part_plain(offset, std::min(end, first) - offset);
  if (last < end && last >= first) make_part_plain(last, end - last);
}

void LocalBuffer::make_part_plain(std::uint32_t offset, std::uint32_t bytes) {
  const std::uint32_t block = offset / sim::kBlockBytes;
  if (!any(block, block)) return;
  auto part = std::ranges::lower_bound(parts_, block, {}, &Part::block);
  if (part == parts_.end() || part->block != block) part = parts_.insert(part, {block, 0});
  part->plain |= bytes_in_block(offset, offset + bytes);
  if (part->plain == UINT32_MAX) set_payload(offset, bytes, false);
}

void LocalBuffer::set_payload(std::uint32_t offset, std::uint32_t bytes, bool payload) {
  if (bytes == 0 || (!payload && !tagged_)) return;
  tagged_ = true;
  if (noted_ != nullptr) [[unlikely]] {
    for (std::uint32_t at = offset / kPageBytes * kPageBytes; at < offset + bytes; at += kPageBytes) note(at);
  }
  const std::uint32_t first = offset / sim::kBlockBytes;
  const std::uint32_t last = (offset + bytes - 1) / sim::kBlockBytes;
  if (!parts_.empty()) {
    const auto from = std::ranges::lower_bound(parts_, first, {}, &Part::block);
    parts_.erase(from, std::ranges::upper_bound(from, parts_.end(), last, {}, &Part::block));
  }
  for (std::uint32_t w = first / 64; w <= last / 64; ++w) {
    const std::uint64_t mask = word_mask(w, first, last);
    payload_[w] = payload ? payload_[w] | mask : payload_[w] & ~mask;
  }
}

sim::TagMask LocalBuffer::tags(std::uint32_t offset, std::uint32_t bytes) const {
  if (!tagged_ || bytes == 0) return 0;
  // Up to 17 blocks from `first` on: two words hold them.
  const std::uint32_t first = offset / sim::kBlockBytes;
  const std::uint32_t word = first / 64;
  const std::uint32_t shift = first % 64;
  std::uint64_t bits = payload_[word] >> shift;
  if (shift != 0 && word + 1 < payload_.size()) bits |= payload_[word + 1] << (64 - shift);
  const std::uint32_t blocks = (offset + bytes - 1) / sim::kBlockBytes - first + 1;
  bits &= (std::uint64_t{1} << blocks) - 1;
  if (offset % sim::kBlockBytes != 0) bits |= bits >> 1;
  auto mask = static_cast<sim::TagMask>(bits) & sim::all_tags(bytes);
  if (mask == 0 || parts_.empty()) return mask;
  for (std::uint32_t k = 0; k * sim::kBlockBytes < bytes; ++k) {
    const std::uint32_t at = k * sim::kBlockBytes;
    if ((mask >> k & 1u) != 0 && !any_byte(offset + at, std::min(sim::kBlockBytes, bytes - at)))
      mask &= ~(sim::TagMask{1} << k);
  }
  return mask;
}

void LocalBuffer::add_tags(std::uint32_t offset, std::uint32_t bytes, sim::TagMask tags) {
  if (tags == 0) return;
  if (tags == sim::all_tags(bytes)) {
    set_payload(offset, bytes, true);
    return;
  }
  for (std::uint32_t k = 0; k * sim::kBlockBytes < bytes; ++k) {
    if ((tags >> k & 1u) == 0) continue;
    const std::uint32_t begin = k * sim::kBlockBytes;
    set_payload(offset + begin, std::min(sim::kBlockBytes, bytes - begin), true);
  }
}

std::uint64_t LocalBuffer::digest(const Pages& pages) const {
  std::uint64_t sum = 0;
  for (std::size_t word = 0; word < pages.size(); ++word) {
    for (std::uint64_t left = pages[word]; left != 0; left &= left - 1) {
      const auto page =
          static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(std::countr_zero(left));
      std::array<char, kPageBytes> bytes;
      load(page * kPageBytes, reinterpret_cast<std::byte*>(bytes.data()), kPageBytes);
      const std::uint64_t of_page = std::hash<std::string_view>{}({bytes.data(), bytes.size()});
      // Where it stands matters.
      sum = std::rotl(sum, 7) ^ (of_page + tags(page * kPageBytes, kPageBytes));
    }
  }
  return sum;
}

std::uint32_t LocalBuffer::pages() const {
  return static_cast<std::uint32_t>(
      std::count_if(pages_.begin(), pages_.end(), [](const PageOwner& page) { return bool{page}; }));
}

std::uint32_t LocalBuffer::shared_pages() const {
  return static_cast<std::uint32_t>(std::count_if(
      pages_.begin(), pages_.end(), [](const PageOwner& page) { return page && page.shares(); }));
}

}  // namespace cm384::npu
