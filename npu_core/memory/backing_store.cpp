#include "npu_core/memory/backing_store.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/text/error.h"
#include "npu_core/memory/atomic.h"

namespace cm384::npu {
namespace {

constexpr std::uint32_t kBlock = sim::kBlockBytes;

// Bits [first, last) of a mask.
constexpr std::uint32_t bits(std::uint32_t first, std::uint32_t last) {
  return static_cast<std::uint32_t>(((std::uint64_t{1} << last) - 1) & ~((std::uint64_t{1} << first) - 1));
}

}  // namespace

const BackingStore::Page BackingStore::kPlain{};
const BackingStore::Page BackingStore::kPayload = [] {
  Page page;
  std::ranges::fill(page.tags, std::uint16_t{0xffff});
  return page;
}();

const BackingStore::Page* BackingStore::find(std::uint64_t offset) const {
  if (directory_.empty()) return nullptr;
  const std::uint64_t page = offset / kPageBytes;
  const auto& leaf = directory_[page / (kGroupPages * kLeafGroups)];
  if (!leaf) return nullptr;
  const auto& group = (*leaf)[page / kGroupPages % kLeafGroups];
  if (!group) return nullptr;
  const std::uint32_t index = (*group)[page % kGroupPages];
  if (index == kPayloadPage) return &kPayload;
  return index == 0 ? nullptr : &pages_[index - 1];
}

BackingStore::Group BackingStore::payload_group_ = [] {
  Group made;
  made.fill(kPayloadPage);
  return made;
}();

BackingStore::GroupPointer& BackingStore::group_of(std::uint64_t offset) {
  constexpr std::uint64_t leaf_bytes = std::uint64_t{kLeafGroups} * kGroupBytes;
  if (directory_.empty()) directory_.resize((capacity_ + leaf_bytes - 1) / leaf_bytes);
  auto& leaf = directory_[offset / leaf_bytes];
  if (!leaf) leaf = std::make_unique<Leaf>();
  return (*leaf)[offset / kGroupBytes % kLeafGroups];
}

std::uint32_t& BackingStore::index_in(GroupPointer& group, std::uint64_t offset) {
  if (!group) {
    group.reset(new Group());
  } else if (is_shared(group)) {
    group.reset(new Group(payload_group_));
  }
  return (*group)[offset / kPageBytes % kGroupPages];
}

BackingStore::Page& BackingStore::page_at(std::uint32_t& index) {
  if (index != 0 && index != kPayloadPage) return pages_[index - 1];
  const Page& fresh = index == 0 ? kPlain : kPayload;
  if (free_pages_.empty()) {
    pages_.push_back(fresh);
    index = static_cast<std::uint32_t>(pages_.size());
  } else {
    index = free_pages_.back();
    free_pages_.pop_back();
    pages_[index - 1] = fresh;
  }
  return pages_[index - 1];
}

void BackingStore::release_if_payload(std::uint32_t& index) {
  const Page& page = pages_[index - 1];
  if (std::memcmp(&page, &kPayload, sizeof page) != 0) return;
  free_pages_.push_back(index);
  index = kPayloadPage;
}

std::uint32_t BackingStore::Slab::allocate() {
  if (!free_.empty()) {
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }
  if (used_ == kMost)
    throw MachineError(
        "memory: more than 128 GiB of one die or CPU socket have been written; no more are kept");
  if (used_ % kTogether == 0)
    chunks_.push_back(std::make_unique<std::byte[]>(std::size_t{kTogether} * bytes_));
  return ++used_;
}

void BackingStore::Slab::clear() {
  chunks_.clear();
  free_.clear();
  used_ = 0;
}

void BackingStore::copy_out(Place line, std::uint32_t begin, std::byte* into, std::uint32_t bytes) const {
  if (line.whole) {
    std::memcpy(into, lines_.at(line.place) + begin, bytes);
    return;
  }
  std::memset(into, 0, bytes);
  if (line.place == 0) return;
  const std::uint32_t from = std::max(begin, line.pair * kPairBytes);
  const std::uint32_t to = std::min(begin + bytes, (line.pair + 1) * kPairBytes);
  if (from < to) std::memcpy(into + (from - begin), pairs_.at(line.place) + from % kPairBytes, to - from);
}

std::byte* BackingStore::make_room(Place& line, std::uint32_t begin, std::uint32_t bytes) {
  const std::uint32_t pair = begin / kPairBytes;
  const bool in_pair = (begin + bytes - 1) / kPairBytes == pair;
  if (line.place == 0 && in_pair)
    line = {.whole = 0, .pair = pair & 7, .place = pairs_.allocate() & 0xfffffff};
  if (!line.whole && line.place != 0 && in_pair && line.pair == pair)
    return pairs_.at(line.place) + begin % kPairBytes;
  if (!line.whole) {
    const Place before = line;
    line = {.whole = 1, .pair = 0, .place = lines_.allocate() & 0xfffffff};
    if (before.place != 0) {
      std::byte* const old = pairs_.at(before.place);
      std::memcpy(lines_.at(line.place) + before.pair * kPairBytes, old, kPairBytes);
      std::memset(old, 0, kPairBytes);
      pairs_.release(before.place);
    }
  }
  return lines_.at(line.place) + begin;
}

sim::TagMask BackingStore::read_in_line(std::uint64_t offset, std::byte* into, std::uint32_t bytes) const {
  const Page* page = find(offset);
  if (page == nullptr) {
    std::memset(into, 0, bytes);
    return 0;
  }
  const std::uint32_t line = static_cast<std::uint32_t>(offset % kPageBytes) / kLineBytes;
  const std::uint32_t begin = static_cast<std::uint32_t>(offset % kLineBytes);
  const std::uint32_t first = begin / kBlock;
  const std::uint32_t last = (begin + bytes + kBlock - 1) / kBlock;
  const std::uint32_t touched = bits(first, last);
  const std::uint32_t tags = page->tags[line] & touched;
  if (tags == touched) {
    std::memset(into, static_cast<int>(sim::kStandIn), bytes);
    return tags;
  }
  copy_out(page->line[line], begin, into, bytes);
  for (std::uint32_t left = tags; left != 0; left &= left - 1) {
    const std::uint32_t block = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint32_t from = std::max(block * kBlock, begin);
    const std::uint32_t to = std::min((block + 1) * kBlock, begin + bytes);
    std::memset(into + (from - begin), static_cast<int>(sim::kStandIn), to - from);
  }
  return tags;
}

void BackingStore::write_in_line(std::uint64_t offset, const std::byte* from, std::uint32_t bytes,
                                 std::uint32_t payload_blocks) {
  const std::uint32_t line = static_cast<std::uint32_t>(offset % kPageBytes) / kLineBytes;
  const std::uint32_t begin = static_cast<std::uint32_t>(offset % kLineBytes);
  const std::uint32_t touched = bits(begin / kBlock, (begin + bytes + kBlock - 1) / kBlock);
  const std::uint32_t whole_first = (begin + kBlock - 1) / kBlock;
  const std::uint32_t whole_last = std::max((begin + bytes) / kBlock, whole_first);
  const bool whole_blocks_stay = (bits(whole_first, whole_last) & ~payload_blocks) == 0;
  GroupPointer& group = group_of(offset);
  if (whole_blocks_stay && is_shared(group)) return;
  std::uint32_t& index = index_in(group, offset);
  if (whole_blocks_stay && index == kPayloadPage) return;
  Page& page = page_at(index);
  std::uint32_t tags = page.tags[line];
  tags &= ~(bits(whole_first, whole_last) & ~payload_blocks);
  tags |= payload_blocks & touched;
  if (!lent_lines_.empty() && tags != 0) invalidate_line(offset);
  page.tags[line] = static_cast<std::uint16_t>(tags);
  const std::uint32_t plain = touched & ~tags;
  if (plain == 0) return;
  // From the first plain block to the last. Payload blocks between are written too: nobody can read them.
  const std::uint32_t first = std::max(begin, static_cast<std::uint32_t>(std::countr_zero(plain)) * kBlock);
  const std::uint32_t last =
      std::min(begin + bytes, static_cast<std::uint32_t>(std::bit_width(plain)) * kBlock);
  std::memcpy(make_room(page.line[line], first, last - first), from + (first - begin), last - first);
}

sim::TagMask BackingStore::read(std::uint64_t offset, std::byte* into, std::uint32_t bytes) const {
  assert(bytes <= sim::kRequestBytes && contains(offset, bytes));
  const std::uint32_t shift = static_cast<std::uint32_t>(offset % kBlock);
  const std::uint32_t begin = static_cast<std::uint32_t>(offset % kLineBytes);
  std::uint64_t blocks = 0;  // store blocks from the one that holds `offset`
  if (begin + bytes <= kLineBytes) {
    blocks = read_in_line(offset, into, bytes) >> (begin / kBlock);
  } else {
    const std::uint32_t head = kLineBytes - begin;
    blocks = read_in_line(offset, into, head) >> (begin / kBlock);
    blocks |= std::uint64_t{read_in_line(offset + head, into + head, bytes - head)}
              << (kBlocksPerLine - begin / kBlock);
  }
  if (shift == 0) return static_cast<sim::TagMask>(blocks);
  // Request block k spans store blocks k and k + 1.
  return static_cast<sim::TagMask>(blocks | (blocks >> 1)) & sim::all_tags(bytes);
}

void BackingStore::write(std::uint64_t offset, const std::byte* from, std::uint32_t bytes,
                         sim::TagMask tags) {
  assert(bytes <= sim::kRequestBytes && contains(offset, bytes));
  if (bytes == 0) return;
  const std::uint32_t shift = static_cast<std::uint32_t>(offset % kBlock);
  const std::uint32_t begin = static_cast<std::uint32_t>(offset % kLineBytes);
  const std::uint32_t first = begin / kBlock;
  tags &= sim::all_tags(bytes);
  if (tags == sim::all_tags(bytes)) {
    mark_payload(offset, bytes);
    return;
  }
  std::uint64_t blocks = tags;
  if (shift != 0) {
    blocks |= blocks << 1;
    // The last request block may be short and end inside its first store block.
    blocks &= (std::uint64_t{1} << ((shift + bytes + kBlock - 1) / kBlock)) - 1;
  }
  if (begin + bytes <= kLineBytes) {
    write_in_line(offset, from, bytes, static_cast<std::uint32_t>(blocks << first));
  } else {
    const std::uint32_t head = kLineBytes - begin;
    const std::uint32_t in_head = kBlocksPerLine - first;
    write_in_line(offset, from, head, static_cast<std::uint32_t>((blocks << first) & 0xffff));
    write_in_line(offset + head, from + head, bytes - head, static_cast<std::uint32_t>(blocks >> in_head));
  }
}

sim::TagMask BackingStore::atomic_add(std::uint64_t offset, const std::byte* operand, std::uint32_t bytes,
                                      sim::TagMask tags, sim::Operation operation, std::byte* old) {
  const Atomic atomic = atomic_of(operation);
  assert(offset % atomic.element_bytes == 0 && bytes % atomic.element_bytes == 0 &&
         bytes <= sim::kRequestBytes);
  std::byte before[sim::kRequestBytes];
  const sim::TagMask before_tags = read(offset, before, bytes);
  if (old != nullptr) std::memcpy(old, before, bytes);
  std::byte after[sim::kRequestBytes];
  if (operand != nullptr) atomic.apply(before, operand, after, bytes);
  write(offset, after, bytes, tags | before_tags);
  return before_tags;
}

void BackingStore::read_bytes(std::uint64_t offset, std::byte* into, std::uint64_t bytes) const {
  assert(contains(offset, bytes));
  while (bytes != 0) {
    const auto piece =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kLineBytes - offset % kLineBytes));
    read_in_line(offset, into, piece);
    offset += piece, into += piece, bytes -= piece;
  }
}

void BackingStore::write_bytes(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
  assert(contains(offset, bytes));
  while (bytes != 0) {
    const auto piece =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kLineBytes - offset % kLineBytes));
    write_in_line(offset, from, piece, 0);
    offset += piece, from += piece, bytes -= piece;
  }
}

void BackingStore::mark_payload(std::uint64_t offset, std::uint64_t bytes) {
  assert(contains(offset, bytes));
  while (bytes != 0) {
    const auto begin = static_cast<std::uint32_t>(offset % kLineBytes);
    const auto piece = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kLineBytes - begin));
    GroupPointer& group = group_of(offset);
    if (is_shared(group) || (!group && offset % kGroupBytes == 0 && bytes >= kGroupBytes)) {
      group.reset(&payload_group_);
      const std::uint64_t rest = std::min(bytes, kGroupBytes - offset % kGroupBytes);
      offset += rest, bytes -= rest;
      continue;
    }
    std::uint32_t& index = index_in(group, offset);
    if (index == 0 && offset % kPageBytes == 0 && bytes >= kPageBytes) index = kPayloadPage;
    if (index == kPayloadPage) {
      const std::uint64_t rest = std::min(bytes, kPageBytes - offset % kPageBytes);
      offset += rest, bytes -= rest;
      continue;
    }
    if (!lent_lines_.empty()) invalidate_line(offset);
    std::uint16_t& tags = page_at(index).tags[(offset % kPageBytes) / kLineBytes];
    tags = static_cast<std::uint16_t>(tags | bits(begin / kBlock, (begin + piece + kBlock - 1) / kBlock));
    if (tags == 0xffff) release_if_payload(index);
    offset += piece, bytes -= piece;
  }
}

bool BackingStore::has_payload(std::uint64_t offset, std::uint64_t bytes) const {
  assert(contains(offset, bytes));
  while (bytes != 0) {
    const std::uint32_t begin = static_cast<std::uint32_t>(offset % kLineBytes);
    const auto piece = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kLineBytes - begin));
    const Page* page = find(offset);
    const std::uint32_t touched = bits(begin / kBlock, (begin + piece + kBlock - 1) / kBlock);
    if (page != nullptr && (page->tags[(offset % kPageBytes) / kLineBytes] & touched) != 0) return true;
    offset += piece, bytes -= piece;
  }
  return false;
}

std::byte* BackingStore::lend_line(std::uint64_t offset) {
  const std::uint64_t start = offset - offset % kLineBytes;
  assert(contains(start, kLineBytes));
  if (has_payload(start, kLineBytes)) return nullptr;
  lent_lines_.insert(start);
  return make_room(touch(start).line[start % kPageBytes / kLineBytes], 0, kLineBytes);
}

void BackingStore::invalidate_line(std::uint64_t offset) {
  const std::uint64_t start = offset - offset % kLineBytes;
  if (lent_lines_.erase(start) != 0) invalidated_lines_.push_back(start);
}

void BackingStore::forget(std::uint64_t offset, std::uint64_t bytes) {
  assert(contains(offset, bytes));
  constexpr std::byte kZeros[kLineBytes] = {};
  for (const std::uint64_t end = offset + bytes; offset < end;) {
    if (find(offset) == nullptr) {
      // On to the next page that may be there.
      const std::uint64_t leaf = offset / (kLeafGroups * kGroupBytes);
      const std::uint64_t bare = leaf >= directory_.size() || !directory_[leaf] ? kLeafGroups * kGroupBytes
                                 : (*directory_[leaf])[offset / kGroupBytes % kLeafGroups] ? kPageBytes
                                                                                           : kGroupBytes;
      offset = (offset / bare + 1) * bare;
      continue;
    }
    GroupPointer& group = group_of(offset);
    if (is_shared(group) && offset % kGroupBytes == 0 && end - offset >= kGroupBytes) {
      group.reset();
      offset += kGroupBytes;
      continue;
    }
    if (std::uint32_t& index = index_in(group, offset);
        index == kPayloadPage && offset % kPageBytes == 0 && end - offset >= kPageBytes) {
      index = 0;
      offset += kPageBytes;
      continue;
    }
    const std::uint64_t next = std::min(end, (offset / kLineBytes + 1) * kLineBytes);
    if (next - offset < kLineBytes) {
      write_bytes(offset, kZeros, next - offset);
    } else {
      Page& page = touch(offset);
      const std::size_t line = offset % kPageBytes / kLineBytes;
      const Place place = page.line[line];
      page.tags[line] = 0;
      if (place.place != 0) {
        Slab& slab = place.whole ? lines_ : pairs_;
        std::memset(slab.at(place.place), 0, place.whole ? kLineBytes : kPairBytes);
        if (!lent_lines_.contains(offset)) {  // whoever has a pointer keeps it
          slab.release(place.place);
          page.line[line] = {};
        }
      }
    }
    offset = next;
  }
}

void BackingStore::clear() {
  invalidated_lines_.insert(invalidated_lines_.end(), lent_lines_.begin(), lent_lines_.end());
  lent_lines_.clear();
  directory_.clear();
  pages_.clear();
  free_pages_.clear();
  lines_.clear();
  pairs_.clear();
}

std::uint64_t BackingStore::footprint() const {
  std::uint64_t bytes = sizeof(*this) + directory_.capacity() * sizeof(directory_[0]) +
                        pages_.capacity() * sizeof(Page) + free_pages_.capacity() * sizeof(free_pages_[0]) +
                        lines_.footprint() + pairs_.footprint();
  for (const auto& leaf : directory_) {
    if (!leaf) continue;
    bytes += sizeof(Leaf);
    for (const auto& group : *leaf) bytes += group && !is_shared(group) ? sizeof(Group) : 0;
  }
  return bytes;
}

}  // namespace cm384::npu
